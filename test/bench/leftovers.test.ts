import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { mountTmpfs, unmount } from '../../src/host/mounts.js';
import { eventually } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { scratchDirectory } from '../scratch.js';

const COMMAND = fileURLToPath(new URL('../../bench/run.js', import.meta.url));
const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : null;
const skip = process.getuid?.() === 0 ? false : 'only root can mount';

/** The folder of a benchmark whose process has this id, with two mounts on one directory. */
function folderOf(parent: string, pid: number): string {
  const folder = mkdtempSync(join(parent, `gmb-${pid}-`));
  mkdirSync(join(folder, 'usage'));
  for (let layer = 0; layer < 2; layer += 1) mountTmpfs(join(folder, 'usage'), 65_536, 4);
  writeFileSync(join(folder, 'usage', 'file'), '');
  return folder;
}

const mountsOf = (folder: string): number =>
  readFileSync('/proc/self/mountinfo', 'utf8').split(`${folder}/`).length - 1;

/** A benchmark whose temporary files are in this folder. */
const bench = (directory: string, ...args: string[]) =>
  spawn(process.execPath, [COMMAND, ...args], { env: { ...process.env, TMPDIR: directory }, stdio: 'ignore' });

test('a benchmark unmounts and removes what a killed one left, and nothing else', { skip }, async (t) => {
  const directory = await scratchDirectory(t);
  const ended = spawnSync('true').pid;
  const [left, living] = [folderOf(directory, ended), folderOf(directory, process.pid)];
  t.teardown(() => {
    for (let layer = 0; layer < 2; layer += 1)
      for (const folder of [left, living]) if (mountsOf(folder) > 0) unmount(join(folder, 'usage'));
  });
  t.equal(mountsOf(left), 2);
  const child = bench(directory, 'placement');
  await once(child, 'exit');
  t.equal(child.exitCode, 0);
  t.equal(mountsOf(left), 0);
  t.notOk(existsSync(left));
  t.equal(mountsOf(living), 2, 'the process of this folder is alive');
});

test('a benchmark that is ended leaves neither programs nor files', async (t) => {
  const directory = await scratchDirectory(t);
  const child = bench(directory, 'launch-storm');
  const { pid = 0 } = child;
  const started = (): number[] => childrenOf(pid);
  await eventually(() => started().length > 0, 'the benchmark has started a program', timeLimit(30_000));
  const programs = started();
  t.ok(foldersOf(directory, pid).length > 0, 'it has a folder');
  child.kill('SIGTERM');
  await once(child, 'exit');
  t.equal(child.exitCode, 143);
  await eventually(
    () => programs.every((program) => !isRunning(program)),
    'the programs have ended',
    timeLimit(10_000),
  );
  t.same(foldersOf(directory, pid), []);
});

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').filter(Boolean).map(Number);

const foldersOf = (directory: string, pid: number): string[] =>
  [directory, ...(MEMORY === null ? [] : [MEMORY])].flatMap((parent) =>
    readdirSync(parent).filter((name) => name.startsWith(`gmb-${pid}-`)),
  );

function isRunning(pid: number): boolean {
  try {
    return !/\) Z /u.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
