// npm run test:mutants: how many of some seeded mistakes in src given test files notice.
import { Command } from 'commander';
import { build as bundle } from 'esbuild';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { clearTimeout, setTimeout } from 'node:timers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { mutated, mutationsOf } from './mutations.mjs';
import { build, compiledOf, testFiles } from './test-files.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** What a copy does without: history, results, and the packages, which it shares. */
const LEFT_OUT = new Set(['.git', '.tap', 'build', 'node_modules']);

const command = new Command('npm run test:mutants --')
  .description(
    'Makes single mistakes in sources (turns a comparison round, drops a negation or a statement, is off by one), each in ' +
      'a copy of the project, and runs test files against it until one fails. Prints each mistake and which file noticed.',
  )
  .argument('[tests...]', 'test files or folders (default: all of npm test)')
  .option('--seed <number>', 'which mistakes are drawn', Number, 1)
  .option('--count <number>', 'how many', Number, 20)
  .option('--files <paths...>', 'the sources: files, folders, or all below one as src/quota/**', ['src'])
  .option('--limit <seconds>', 'a test file that takes longer has noticed', Number, 120)
  .option('--jobs <number>', 'test files at once', Number, availableParallelism())
  .parse();

async function main(names) {
  const { seed, count, files, limit, jobs } = command.opts();
  const sources = [...new Set(files.flatMap(sourcesOf))];
  const tests = testFiles(names.length === 0 ? ['test'] : names);
  await build();
  const { generator } = await import('../dist/test/generator.js');
  const all = sources.flatMap((path) => mutationsOf(path, sourceOf(path)));
  const mistakes = draw(all, count, generator(seed));
  if (mistakes.length === 0)
    throw new Error(`nothing in ${files.join(' ')} can be broken; expected TypeScript sources`);
  const reach = await reachOf(tests);
  const copy = await Copy.make();
  // The copy goes also when somebody interrupts; nothing else was changed.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => (copy.remove(), process.exit(1)));
  try {
    const runner = new Runner(copy, limit, jobs);
    let noticed = 0;
    for (const [index, mistake] of mistakes.entries()) {
      const { path, line, before, text } = mistake;
      const file = await runner.noticedBy(mistake, nearestFirst(tests, reach, path));
      if (file !== null) noticed += 1;
      const shown = `${path}:${line}: ${shortened(before)} -> ${shortened(text)}`;
      console.log(`${index + 1} ${file === null ? `SURVIVED ${shown}` : `noticed ${shown} by ${file}`}`);
    }
    console.log(`# ${noticed} of ${mistakes.length} mistakes noticed, seed ${seed}, ${tests.length} test files`);
    for (const file of runner.unusable) console.log(`# not used, fails without a mistake too: ${file}`);
  } finally {
    copy.remove();
  }
}

const sourceOf = (path) => readFileSync(join(ROOT, path), 'utf8');

function sourcesOf(name) {
  const path = relative(ROOT, resolve(name.replace(/\/\*+$/u, '')));
  if (!existsSync(join(ROOT, path)))
    throw new Error(`there is no source ${name}; expected a file or folder such as src/quota`);
  if (!statSync(join(ROOT, path)).isDirectory()) return path.endsWith('.ts') ? [path] : [];
  return readdirSync(join(ROOT, path), { recursive: true })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(path, file))
    .sort();
}

/** `count` of them, each at most once. */
function draw(mistakes, count, random) {
  const rest = [...mistakes];
  const drawn = [];
  while (drawn.length < count && rest.length > 0) drawn.push(...rest.splice(Math.floor(random() * rest.length), 1));
  return drawn;
}

const shortened = (text) => {
  const line = text.replace(/\s+/gu, ' ');
  return line.length > 60 ? `${line.slice(0, 57)}...` : line;
};

/** Of each test file what it loads, as sources. */
async function reachOf(tests) {
  const { metafile } = await bundle({
    absWorkingDir: ROOT,
    entryPoints: tests.map(compiledOf),
    outdir: 'build',
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'error',
  });
  return new Map(
    tests.map((test) => {
      const seen = new Set([compiledOf(test)]);
      for (const file of seen) for (const { path } of metafile.inputs[file]?.imports ?? []) seen.add(path);
      return [test, new Set([...seen].map((file) => file.replace(/^dist\//u, '').replace(/\.js$/u, '.ts')))];
    }),
  );
}

/** Test files that load the source come first, and of those the ones that load least beside it. */
function nearestFirst(tests, reach, path) {
  const distance = (test) => {
    const loaded = reach.get(test);
    return loaded.has(path) ? loaded.size : Infinity;
  };
  return tests
    .map((test) => ({ test, far: distance(test) }))
    .sort((one, other) => (one.far === other.far ? 0 : one.far - other.far))
    .map(({ test }) => test);
}

/** The project in a temporary folder, compiled, where sources are broken. */
class Copy {
  static async make() {
    const directory = mkdtempSync(join(tmpdir(), 'mutants-'));
    for (const name of readdirSync(ROOT))
      if (!LEFT_OUT.has(name))
        cpSync(join(ROOT, name), join(directory, name), {
          recursive: true,
          preserveTimestamps: true,
          verbatimSymlinks: true,
        });
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
    const load = (script) => import(String(pathToFileURL(join(directory, 'scripts', script))));
    const [{ transpileChanged }, { runEach }] = await Promise.all([load('compile.mjs'), load('test-files.mjs')]);
    return new Copy(directory, transpileChanged, runEach);
  }

  constructor(directory, transpileChanged, runEach) {
    this.directory = directory;
    this.transpileChanged = transpileChanged;
    this.runEach = runEach;
  }

  async write(path, text) {
    writeFileSync(join(this.directory, path), text);
    await this.transpileChanged();
  }

  remove() {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

class Runner {
  /** Files that fail without a mistake too. */
  unusable = new Set();
  #usable = new Set();

  constructor(copy, limit, jobs) {
    this.copy = copy;
    this.limit = limit;
    this.jobs = jobs;
  }

  /** The first of the files that fails with the mistake and passes without; null: none. */
  async noticedBy(mistake, files) {
    const passed = new Set();
    for (;;) {
      await this.copy.write(mistake.path, mutated(sourceOf(mistake.path), mistake));
      const left = files.filter((file) => !passed.has(file) && !this.unusable.has(file));
      const first = await this.#firstToFail(left, passed);
      await this.copy.write(mistake.path, sourceOf(mistake.path));
      if (first === null || this.#usable.has(first)) return first;
      const passes = await this.#passes(first, new Set());
      (passes ? this.#usable : this.unusable).add(first);
      if (passes) return first;
    }
  }

  async #firstToFail(files, passed) {
    const running = new Set();
    let first = null;
    const worker = async () => {
      for (let file = files.shift(); file !== undefined && first === null; file = files.shift()) {
        const passes = await this.#passes(file, running);
        if (passes) passed.add(file);
        else if (first === null) {
          first = file;
          for (const child of running) child.kill('SIGKILL');
        }
      }
    };
    await Promise.all(Array.from({ length: this.jobs }, worker));
    return first;
  }

  async #passes(file, running) {
    let passed = false;
    let child;
    let timer;
    const started = (process) => {
      child = process;
      running.add(child);
      timer = setTimeout(() => child.kill('SIGKILL'), this.limit * 1000);
    };
    // The mistake is in what the compiler wrote, not in the bundles of the commands.
    await this.copy.runEach([file], { jobs: 1, bundled: false, started }, (result) => (passed = result.passed));
    clearTimeout(timer);
    running.delete(child);
    return passed;
  }
}

try {
  await main(command.args);
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
