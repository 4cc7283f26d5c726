// Finds, builds and runs test files: for `npm test`, `npm run test:long` and `npm run watch`.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { clearInterval, clearTimeout, setInterval, setTimeout } from 'node:timers';
import { fileURLToPath } from 'node:url';
import { compile, transpileChanged } from './compile.mjs';
import { testPrograms } from './test-programs.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const NO_DOMAIN = join(ROOT, 'scripts/no-domain.mjs');
const TAP = join(ROOT, 'node_modules/tap/dist/esm/index.js');
/** Where a test process writes its CPU seconds (test/plain-processes.mjs). */
const COST_VARIABLE = 'GPU_MANAGER_TEST_COST';
/** After a file's own limit, which names the test that hangs. */
const KILLED_AFTER_SECONDS = 30;
/** Many tests wait: while more than this part of the machine was idle for a second, another file starts. */
const IDLE_PART = 0.2;
const IDLE_PERIOD_MS = 1_000;

/** How the names of a tier's files end: what `npm test` runs, and what needs minutes or a machine for itself. */
export const TIERS = { test: '.test.ts', long: '.long.ts' };

/** Runs a program of this project's packages, or of the machine, in the project's folder; its exit status. */
export function execute(program, args, { mayFail = false } = {}) {
  const own = join(ROOT, 'node_modules/.bin', program);
  const { status, error } = spawnSync(existsSync(own) ? own : program, args, { cwd: ROOT, stdio: 'inherit' });
  if (error !== undefined) throw new Error(`${program} cannot be run: ${error.message}`);
  if (status !== 0 && !mayFail) throw new Error(`${program} ${args.join(' ')} failed`);
  return status ?? 1;
}

/** TypeScript, with its types checked, and C, each as far as its sources have changed. */
export async function build() {
  if (!(await compile())) throw new Error('TypeScript found the errors above');
  buildNative();
}

/** The same without checking types, in a part of a second after an edit. */
export async function buildQuickly() {
  await transpileChanged();
  buildNative();
}

export function buildNative() {
  execute('make', ['--silent', '-C', 'native']);
}

/**
 * The sources of test files, relative to the project's folder; each name is a source of any tier, what it compiles to, or a
 * folder, of which the files of one tier are taken.
 */
export function testFiles(names, tier = 'test') {
  return [...new Set(names.flatMap((name) => filesOf(name, TIERS[tier])))];
}

function filesOf(name, ending) {
  const path = relative(ROOT, resolve(name))
    .replace(/^dist\//u, '')
    .replace(/\.js$/u, '.ts');
  if (!existsSync(join(ROOT, path)))
    throw new Error(`there is no test file ${name}; expected a path such as test/host/rounds.test.ts`);
  if (path.endsWith('.e2e.ts'))
    throw new Error(`${name} needs a cluster: npm run test:e2e -- ${path.match(/[^/]+(?=\.e2e)/u)}`);
  if (!statSync(join(ROOT, path)).isDirectory()) {
    const endings = Object.values(TIERS);
    if (!endings.some((end) => path.endsWith(end)))
      throw new Error(`${name} is not a test file: its name does not end with ${endings.join(' or ')}`);
    return [path];
  }
  const found = readdirSync(join(ROOT, path), { recursive: true }).filter((file) => file.endsWith(ending));
  if (found.length === 0) throw new Error(`no file below ${name} ends with ${ending}`);
  return found.map((file) => join(path, file)).sort();
}

/**
 * Runs compiled test files, as many at once as there are processors, and prints their results; whether all passed.
 * Unless bundles are wanted, the tests start commands from what the compiler wrote: nothing is built first.
 */
export async function runTestFiles(files, { bundled = true } = {}) {
  const failed = [];
  await runEach(files, { jobs: availableParallelism(), flags: ['--enable-source-maps'], bundled }, (result) => {
    if (!result.passed) failed.push(result.file);
    console.log(`${withoutDetails(result.output)}${result.errors}${lineOf(result)}`);
  });
  if (files.length > 1) console.log(`# ${files.length - failed.length} of ${files.length} files passed`);
  for (const file of failed) console.log(`# failed: ${file}`);
  return failed.length === 0;
}

export const lineOf = ({ file, passed, seconds }) =>
  `# ${file}: ${passed ? 'passed' : 'FAILED'} in ${seconds.toFixed(1)} s`;

/**
 * Runs compiled test files, each in a process of its own, which `started` gets: `jobs` at once, and up to `most` while the
 * machine is idle beside them. Tells each result, with the seconds that it took and the CPU seconds of its process and
 * all that it started and waited for.
 */
export async function runEach(
  files,
  { jobs, most = jobs, flags = [], bundled = true, environment = {}, started },
  tell,
) {
  await buildQuickTap();
  const programs = bundled ? await testPrograms(files.map(compiledOf)) : {};
  const costs = mkdtempSync(join(tmpdir(), 'test-costs-'));
  const waiting = [...files];
  const running = new Set();
  const begin = () => {
    const file = waiting.shift();
    if (file === undefined) return;
    const variables = { ...programs, ...environment, [COST_VARIABLE]: join(costs, file.replaceAll('/', '-')) };
    const done = runFile(file, flags, variables, started).then((result) => {
      running.delete(done);
      tell(result);
    });
    running.add(done);
  };
  const idlePart = idleMeter();
  const timer = setInterval(() => {
    if (idlePart() > IDLE_PART && running.size < most) begin();
  }, IDLE_PERIOD_MS);
  try {
    while (waiting.length > 0 || running.size > 0) {
      while (waiting.length > 0 && running.size < jobs) begin();
      await Promise.race(running);
    }
  } finally {
    clearInterval(timer);
    rmSync(costs, { recursive: true });
  }
}

/** A function that returns which part of the processors was idle since its last call. */
function idleMeter() {
  const now = () => {
    const times = cpus().map(({ times }) => times);
    const sum = (of) => times.reduce((total, one) => total + of(one), 0);
    return {
      idle: sum(({ idle }) => idle),
      all: sum(({ user, nice, sys, irq, idle }) => user + nice + sys + irq + idle),
    };
  };
  let before = now();
  return () => {
    const after = now();
    const part = (after.idle - before.idle) / Math.max(1, after.all - before.all);
    before = after;
    return part;
  };
}

async function runFile(file, flags, environment, started) {
  const began = performance.now();
  const compiled = join(ROOT, compiledOf(file));
  const { FILE_LIMIT_SECONDS } = await import('../dist/test/harness/time-factor.js');
  const child = spawn(process.execPath, [...flags, '--import=./test/plain-processes.mjs', compiled], {
    cwd: ROOT,
    // tap's own limit for a file is 30 s.
    env: { ...process.env, ...environment, TAP_TIMEOUT: String(FILE_LIMIT_SECONDS) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started?.(child);
  // A file that does not even reach its own limit.
  const limit = setTimeout(() => child.kill('SIGKILL'), (FILE_LIMIT_SECONDS + KILLED_AFTER_SECONDS) * 1000);
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk) => (errors += chunk));
  const status = await new Promise((settle) => child.on('close', settle));
  clearTimeout(limit);
  // A file that ends before its tests writes no plan.
  const passed = status === 0 && /^1\.\.\d/mu.test(output);
  const cost = environment[COST_VARIABLE];
  const cpuSeconds = existsSync(cost) ? Number(readFileSync(cost, 'utf8')) : 0;
  return { file, passed, output, errors, seconds: (performance.now() - began) / 1000, cpuSeconds };
}

/** What a test file compiles to. */
export const compiledOf = (file) => join('dist', file.replace(/\.ts$/u, '.js'));

/**
 * tap in one file, below dist/node_modules, where compiled tests find it before the package: it loads in half the time
 * of tap's 150 modules. With the plugins of .taprc, and without hooks at every promise (`no-domain.mjs`).
 */
async function buildQuickTap() {
  const directory = join(ROOT, 'dist/node_modules/tap');
  const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules/tap/package.json'), 'utf8'));
  const builtOf = [version, ...[join(ROOT, '.taprc'), TAP, NO_DOMAIN].map((file) => readFileSync(file, 'utf8'))].join(
    '\n',
  );
  const manifest = join(directory, 'package.json');
  // tap leaves out of stacks what lies in a folder of this name.
  const main = 'node_modules/@tapjs/tap.js';
  if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).builtOf === builtOf) return;
  execute('tap', ['build']);
  const { build: bundle } = await import('esbuild');
  await bundle({
    entryPoints: [TAP],
    outfile: join(directory, main),
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
    alias: { 'async-hook-domain': NO_DOMAIN },
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
  });
  writeFileSync(manifest, JSON.stringify({ name: 'tap', type: 'module', main, builtOf }));
}

/** The TAP of a file without the details of the tests that passed. */
export function withoutDetails(tap) {
  const kept = [];
  let subtest = null;
  for (const line of tap.split('\n')) {
    if (line.startsWith('# Subtest: ')) subtest = kept.length;
    // The details of a test come before its result.
    if (line.startsWith('ok ') && subtest !== null) kept.length = subtest;
    if (/^(not )?ok /u.test(line)) subtest = null;
    if (line !== '') kept.push(line.replace(/^(ok .*) # time=\S+$/u, '$1'));
  }
  return kept.map((line) => `${line}\n`).join('');
}
