import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test, type Test } from 'tap';
import { REFERENCE_MS, referenceMs } from '../harness/reference-work.js';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FILE = 'test/host/listeners.test.ts';
/** What the build and this test file need; the rest of a checkout is not compiled. */
const PARTS = [
  'src',
  'test',
  'bench',
  'examples',
  'scripts',
  'native',
  'proto',
  'dist',
  'package.json',
  'tsconfig.json',
  '.taprc',
];

/** CPU seconds on a core of 2020, from an edit to the result and the types. */
const TEST_BUDGET = 5;
const WATCH_BUDGET = 5;
const DOUBT = 1.25;

/** A copy of the project as it is after `npm test`, to edit files in. */
async function copyOfProject(t: Test): Promise<string> {
  const copy = await scratchDirectory(t);
  for (const part of PARTS)
    cpSync(join(ROOT, part), join(copy, part), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
  mkdirSync(join(copy, 'build'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  // The first change that the compiler sees in another folder lets it read all packages again.
  appendFileSync(join(copy, FILE), '\n// edited\n');
  const { status } = spawnSync(process.execPath, ['scripts/compile.mjs'], { cwd: copy, stdio: 'inherit' });
  if (status !== 0) throw new Error('the copy of the project does not compile');
  return copy;
}

const slowness = () => referenceMs() / REFERENCE_MS;

/** The CPU seconds of a process and of those that it has waited for: proc_pid_stat(5). */
function cpuSeconds(pid: number | 'self', { own }: { readonly own: boolean }): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
  const hundredths = fields.slice(own ? 11 : 13, 15).reduce((sum, field) => sum + Number(field), 0);
  return hundredths / 100;
}

test('an edit of a test file shows its result, and the types, for few CPU seconds', async (t) => {
  const copy = await copyOfProject(t);
  const run = () => spawnSync(process.execPath, ['scripts/test.mjs', FILE], { cwd: copy, encoding: 'utf8' });
  t.equal(run().status, 0);
  appendFileSync(join(copy, FILE), "\ntest('a new test', async (t) => t.pass());\n");
  const before = cpuSeconds('self', { own: false });
  const { status, stdout } = run();
  const cost = (cpuSeconds('self', { own: false }) - before) / slowness();
  t.equal(status, 0);
  t.match(stdout, /^ok \d+ - a new test$/mu);
  t.ok(cost <= DOUBT * TEST_BUDGET, `${cost.toFixed(1)} of ${TEST_BUDGET} CPU seconds`);

  appendFileSync(join(copy, FILE), "test('a wrong type', async (t) => t.equal(1, 1, 2n as string));\n");
  const wrong = run();
  t.match(wrong.stdout, /^ok \d+ - a wrong type$/mu, 'the result comes all the same');
  t.match(wrong.stdout, /error TS\d+/u);
  t.equal(wrong.status, 1);
});

test('npm run watch shows the result of an edit, and the types, for few CPU seconds', async (t) => {
  const copy = await copyOfProject(t);
  const watch = spawn(process.execPath, ['scripts/watch.mjs', FILE], {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => watch.kill());
  const text = { all: '' };
  watch.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.all += chunk));
  const rounds = (count: number) =>
    new Promise<void>((settle) => {
      const look = () => text.all.split('# types: no errors').length > count && settle();
      watch.stdout.on('data', look);
      look();
    });
  await rounds(1);
  const before = cpuSeconds(watch.pid ?? 0, { own: true });
  appendFileSync(join(copy, FILE), "\ntest('a new test', async (t) => t.pass());\n");
  await rounds(2);
  const cost = (cpuSeconds(watch.pid ?? 0, { own: true }) - before) / slowness();
  t.match(text.all, /^ok \d+ - a new test$/mu);
  t.ok(cost <= DOUBT * WATCH_BUDGET, `${cost.toFixed(1)} of ${WATCH_BUDGET} CPU seconds`);
  watch.kill();
  rmSync(copy, { recursive: true });
});
