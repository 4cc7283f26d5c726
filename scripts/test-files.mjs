// Finds, builds and runs single test files: for `npm test -- FILE...` and `npm run watch -- FILE...`.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Runs a program of this project's packages, or of the machine, in the project's folder; its exit status. */
export function execute(program, args, { mayFail = false } = {}) {
  const own = join(ROOT, 'node_modules/.bin', program);
  const { status, error } = spawnSync(existsSync(own) ? own : program, args, { cwd: ROOT, stdio: 'inherit' });
  if (error !== undefined) throw new Error(`${program} cannot be run: ${error.message}`);
  if (status !== 0 && !mayFail) throw new Error(`${program} ${args.join(' ')} failed`);
  return status ?? 1;
}

/** TypeScript and C, each as far as its sources have changed. */
export function build() {
  execute('tsc', ['--build']);
  buildNative();
}

export function buildNative() {
  execute('make', ['--silent', '-C', 'native']);
}

/** The sources of test files, relative to the project's folder; each name is a source, what it compiles to, or a folder. */
export function testFiles(names) {
  return [...new Set(names.flatMap((name) => filesOf(name)))];
}

function filesOf(name) {
  const path = relative(ROOT, resolve(name))
    .replace(/^dist\//u, '')
    .replace(/\.js$/u, '.ts');
  if (!existsSync(join(ROOT, path)))
    throw new Error(`there is no test file ${name}; expected a path such as test/host/rounds.test.ts`);
  if (path.endsWith('.e2e.ts'))
    throw new Error(`${name} needs a cluster: npm run test:e2e -- ${path.match(/[^/]+(?=\.e2e)/u)}`);
  if (!statSync(join(ROOT, path)).isDirectory()) {
    if (!path.endsWith('.test.ts')) throw new Error(`${name} is not a test file: its name does not end with .test.ts`);
    return [path];
  }
  const found = readdirSync(join(ROOT, path), { recursive: true }).filter((file) => file.endsWith('.test.ts'));
  if (found.length === 0) throw new Error(`no file below ${name} is a test file`);
  return found.map((file) => join(path, file)).sort();
}

/** Runs compiled test files, as many at once as there are processors, and prints their results; whether all passed. */
export async function runTestFiles(files) {
  const waiting = [...files];
  const failed = [];
  const worker = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift())
      if (!(await passes(file))) failed.push(file);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  if (files.length > 1) console.log(`# ${files.length - failed.length} of ${files.length} files passed`);
  for (const file of failed) console.log(`# failed: ${file}`);
  return failed.length === 0;
}

/** Runs one file in a process of its own. */
async function passes(file) {
  const began = performance.now();
  const compiled = join(ROOT, 'dist', file.replace(/\.ts$/u, '.js'));
  const { FILE_LIMIT_SECONDS } = await import('../dist/test/harness/time-factor.js');
  const child = spawn(process.execPath, ['--enable-source-maps', '--import=./test/plain-processes.mjs', compiled], {
    cwd: ROOT,
    // As in a run of all tests: tap's own limit for a file is 30 s.
    env: { ...process.env, TAP_TIMEOUT: String(FILE_LIMIT_SECONDS) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (errors += chunk));
  const status = await new Promise((settle) => child.on('close', settle));
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${withoutDetails(output)}${errors}# ${file}: ${status === 0 ? 'passed' : 'FAILED'} in ${seconds} s`);
  return status === 0;
}

/** The TAP of a file without the details of the tests that passed. */
function withoutDetails(tap) {
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
