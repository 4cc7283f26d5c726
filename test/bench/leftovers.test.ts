import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import { removeLeftovers } from '../../bench/agent/node.js';
import { mountTmpfs, unmount } from '../../src/host/mounts.js';

const skip = process.getuid?.() === 0 ? false : 'only root can mount';

/** The folder of a benchmark whose process has this id, with two mounts on one directory. */
function folderOf(pid: number): string {
  const folder = mkdtempSync(join(tmpdir(), `gmb-${pid}-`));
  mkdirSync(join(folder, 'usage'));
  for (let layer = 0; layer < 2; layer += 1) mountTmpfs(join(folder, 'usage'), 65_536, 4);
  writeFileSync(join(folder, 'usage', 'file'), '');
  return folder;
}

const mountsOf = (folder: string): number =>
  readFileSync('/proc/self/mountinfo', 'utf8').split(`${folder}/`).length - 1;

test('a benchmark of the agent unmounts and removes what a killed one left, and nothing else', { skip }, async (t) => {
  const ended = spawnSync('true').pid;
  const [left, living] = [folderOf(ended), folderOf(process.pid)];
  t.teardown(() => {
    for (const folder of [left, living]) unmount(join(folder, 'usage'));
    spawnSync('rm', ['-rf', left, living]);
  });
  t.equal(mountsOf(left), 2);
  await removeLeftovers();
  t.equal(mountsOf(left), 0);
  t.notOk(existsSync(left));
  t.equal(mountsOf(living), 2, 'the process of this folder is alive');
});
