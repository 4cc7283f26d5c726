import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test, type Test } from 'tap';
import type { BenchFile } from '../../bench/runs/run-bench.js';
import { NOTHING, WholeRun, withoutFailures, type Measured } from '../../bench/runs/whole-run.js';
import { readReport } from '../../bench/summary/regressions.js';
import { eventually } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { scratchDirectory } from '../scratch.js';

const COMMAND = fileURLToPath(new URL('../../bench/run.js', import.meta.url));

const FIGURE = "{ name: 'cost', variant: null, value: NaN, unit: 'ms', baseline: null, ratio: null }";
/** Starts a program in a session of its own that writes its pid to the file that is the benchmark's argument. */
const PROGRAM = `
  const { spawn } = await import('node:child_process');
  const { writeFileSync } = await import('node:fs');
  const program = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  program.unref();
  writeFileSync(args[0], String(program.pid));`;
const REST: Readonly<Record<string, string>> = {
  ends: '',
  refuses: "throw new Error('it has no GPU');",
  crashes: `${PROGRAM} setTimeout(() => { throw new Error('too late'); }, 10); await new Promise(() => setInterval(() => {}, 1000));`,
  dies: `${PROGRAM} process.kill(process.pid, 'SIGKILL');`,
  hangs: `${PROGRAM} await new Promise(() => setInterval(() => {}, 1000));`,
};

/** Benchmarks that report one figure and then do what their name says. */
function benches(t: Test, ...names: string[]): { readonly files: BenchFile[]; readonly pidFile: string } {
  const directory = t.testdir();
  const files = names.map((name) => {
    const path = join(directory, `${name}.mjs`);
    writeFileSync(path, `export async function run({ args, report }) { report(${FIGURE}); ${REST[name] ?? ''} }`);
    return { name, path };
  });
  return { files, pidFile: join(directory, 'pid') };
}

async function measure(whole: WholeRun, files: readonly BenchFile[], kept = NOTHING): Promise<Measured> {
  let measured = kept;
  for await (measured of whole.measure(files, kept));
  return measured;
}

const isRunning = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/\) Z /u.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));

for (const [name, failure] of [
  ['refuses', 'it has no GPU'],
  ['crashes', 'too late'],
  ['dies', 'it ended with SIGKILL'],
] as const)
  test(`a benchmark that ${name} keeps its figures and those of the others`, async (t) => {
    const { files, pidFile } = benches(t, name, 'ends');
    const whole = new WholeRun(() => ({ args: [pidFile], runs: 2 }), false);
    const { ran, results } = await measure(whole, files);
    t.match(ran, [
      { bench: name, failure },
      { bench: 'ends', failure: null },
    ]);
    t.match(results, [
      { bench: name, figures: [{ name: 'cost' }], notes: [`failed: ${failure}`] },
      { bench: 'ends', figures: [{ name: 'cost', spread: [NaN, NaN] }], notes: [] },
    ]);
    if (name !== 'refuses') t.notOk(isRunning(Number(readFileSync(pidFile, 'utf8'))), 'its program has ended');
    t.match(withoutFailures({ ran, results }), { ran: [{ bench: 'ends' }], results: [{ bench: 'ends' }] });
  });

test('a whole run that is told to end ends the benchmark that runs, and keeps what it told', async (t) => {
  const { files, pidFile } = benches(t, 'ends', 'hangs', 'refuses');
  const whole = new WholeRun(() => ({ args: [pidFile], runs: 1 }), false);
  const run = measure(whole, files);
  await eventually(() => existsSync(pidFile), 'the benchmark has started its program', timeLimit(30_000));
  whole.end('SIGTERM');
  const { ran, results } = await run;
  t.match(
    ran.map(({ bench, failure }) => [bench, failure]),
    [
      ['ends', null],
      ['hangs', 'it ended with 143'],
    ],
  );
  t.match(results[1]?.figures, [{ name: 'cost' }]);
  t.notOk(isRunning(Number(readFileSync(pidFile, 'utf8'))), 'its program has ended');
});

test('what was measured before is not measured again', async (t) => {
  const { files } = benches(t, 'ends', 'refuses');
  const whole = new WholeRun(() => ({ args: [], runs: 1 }), false);
  const kept = { ran: [{ bench: 'refuses', seconds: 1, failure: null, sections: [] }], results: [] };
  t.match((await measure(whole, files, kept)).ran, [{ bench: 'refuses', seconds: 1 }, { bench: 'ends' }]);
});

test('an ended run has written what it measured, and a later one measures the rest', async (t) => {
  const directory = await scratchDirectory(t);
  const report = join(directory, 'report.json');
  const bench = (...args: string[]) =>
    spawn(process.execPath, [COMMAND, '--report', directory, ...args], {
      env: { ...process.env, TMPDIR: directory },
      stdio: 'ignore',
    });
  const early = bench('--only', 'placement,launch-storm');
  await eventually(() => existsSync(report), 'the first benchmark is reported', timeLimit(60_000));
  early.kill('SIGTERM');
  await once(early, 'exit');
  t.equal(early.exitCode, 143);
  t.match(readReport(report).ran[0], { bench: 'placement', failure: null });
  t.match(
    readdirSync(directory).filter((name) => name.startsWith('gmb-')),
    [],
  );
  const later = bench('--only', 'placement', '--resume');
  await once(later, 'exit');
  t.equal(later.exitCode, 0);
});
