/**
 * A process that claims to have the control library: with a greeting of 32 bytes and a slot that it wrote itself, and
 * without the library.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { audit, type AuditView } from '../../src/agent/slices/audit/audit.js';
import { MappedLibraries } from '../../src/agent/slices/audit/mapped-libraries.js';
import { processStat } from '../../src/host/process-stat.js';
import { mappedNameOf } from '../../src/host/mapped-files.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { scratchDirectory } from '../scratch.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

async function running(t: Teardown): Promise<ChildProcess> {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  await once(child, 'spawn');
  await eventually(() => libcIn(child.pid ?? 0) !== undefined, 'the program to run');
  return child;
}

const libcIn = (pid: number): string | undefined =>
  /\S+\/libc[.-]\S*so\S*$/m.exec(readFileSync(`/proc/${pid}/maps`, 'latin1'))?.[0];

/** A file that every program of this machine has mapped. */
function libcOf(pid: number): string {
  const path = libcIn(pid);
  if (path === undefined) throw new Error('no C library is mapped');
  return path;
}

test('the agent recognises the library by the mapped file, not by the claim of a process or the name of a file', async (t) => {
  const child = await running(t);
  const pid = child.pid ?? 0;
  const { startTicks } = processStat(pid) ?? { startTicks: 0 };
  const clock = new ManualClock();
  const own = libcOf(pid);
  const copy = join(await scratchDirectory(t), 'libcuda.so.1');
  writeFileSync(copy, readFileSync(own));
  t.equal(new MappedLibraries(() => [own], clock).has(pid, startTicks), true);
  t.equal(
    new MappedLibraries(() => [copy, own], clock).has(pid, startTicks),
    true,
    'any version of the library counts',
  );
  t.equal(
    new MappedLibraries(() => [copy], clock).has(pid, startTicks),
    false,
    'another file with the same bytes does not count',
  );
  t.equal(new MappedLibraries(() => [], clock).has(pid, startTicks), null, 'without a library the agent knows nothing');
  t.equal(
    new MappedLibraries(() => [own], clock).has(2 ** 22 + 1, 1),
    null,
    'the agent knows nothing of an ended process',
  );
  t.equal(mappedNameOf(own), mappedNameOf(own));
  t.not(mappedNameOf(own), mappedNameOf(copy));
});

test('a result about a process does not apply to the next process with its pid, and expires', async (t) => {
  const child = await running(t);
  const pid = child.pid ?? 0;
  const { startTicks } = processStat(pid) ?? { startTicks: 0 };
  const clock = new ManualClock();
  let paths = [libcOf(pid)];
  const libraries = new MappedLibraries(() => paths, clock);
  t.equal(libraries.has(pid, startTicks), true);
  paths = [join(await scratchDirectory(t), 'other')];
  writeFileSync(paths[0] ?? '', 'x');
  t.equal(libraries.has(pid, startTicks), true, 'the result is a minute old');
  t.equal(libraries.has(pid, startTicks + 1), false, 'another process has the pid');
  clock.advance(60_000);
  t.equal(libraries.has(pid, startTicks), false, 'the result has expired after another minute');
});

const forger = { pid: 7, name: 'forger', greeted: true, claimed: true, active: true };
const view = (changes: Partial<AuditView>): AuditView => ({
  processes: [],
  sessions: [],
  devices: [
    {
      gpuUuid: 'GPU-0',
      memoryLimitBytes: 2 ** 30,
      usedMemoryBytes: null,
      share: 10,
      launches: 0,
      samples: 0,
      wentBack: false,
      uncountedMemoryBytes: null,
      unchargedTimePpm: null,
    },
  ],
  usesOfOtherGpus: [],
  fileProblem: null,
  fileGrown: null,
  ...changes,
});

test('a greeting without the library is a finding, even with a well-formed forged slot', (t) => {
  t.match(audit(view({ processes: [{ ...forger, library: false }] })), [
    { serious: true, message: /without the control library|loaded the control library/ },
  ]);
  t.match(
    audit(
      view({
        processes: [
          { ...forger, library: false },
          { ...forger, pid: 8, library: true },
        ],
      }),
    ),
    [{ code: 'unregistered', subject: '', message: /^forger \(7\) .*but sent the greeting of the library/ }],
  );
  t.same(audit(view({ processes: [{ ...forger, library: true }] })), []);
  t.same(
    audit(view({ processes: [{ ...forger, library: null }] })),
    [],
    'the agent reports no finding where it cannot see the mapped files',
  );
  t.end();
});

test('GPU time that no correction explains is a finding of its own', (t) => {
  const [device] = view({}).devices;
  const used = (unchargedTimePpm: number, uncorrectableTimePpm: number) =>
    audit(view({ devices: [{ ...(device as NonNullable<typeof device>), unchargedTimePpm, uncorrectableTimePpm }] }));
  t.match(used(900_000, 900_000), [
    { code: 'not-enforcing', serious: true, message: /90 % of the time of GPU-0 are used and not charged/ },
  ]);
  t.same(used(150_000, 0), [], 'the charges are low, and the correction explains them');
  t.end();
});
