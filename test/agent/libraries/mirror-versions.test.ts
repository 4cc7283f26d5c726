import { lutimesSync, mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import {
  planRemovals,
  removeUnusedVersions,
  REMOVAL_GRACE_MS,
  versionsInMountinfo,
} from '../../../src/agent/libraries/mirror-versions.js';
import { scratchDirectory } from '../../scratch.js';

const NONE: ReadonlySet<string> = new Set();

test('a version is removed when another replaced it long ago and no container has it mounted', (t) => {
  const state = { versions: ['a', 'b', 'c'], current: 'c', mounted: new Set(['b']), switchedAgoMs: REMOVAL_GRACE_MS };
  t.match(planRemovals(state), [{ version: 'a', reason: /c replaced it/ }]);
  t.same(planRemovals({ ...state, switchedAgoMs: REMOVAL_GRACE_MS - 1 }), []);
  t.same(planRemovals({ ...state, mounted: new Set(['a', 'b']) }), []);
  t.end();
});

test('no version is removed without a current version', (t) => {
  t.same(planRemovals({ versions: ['a'], current: null, mounted: NONE, switchedAgoMs: null }), []);
  t.end();
});

test('mounted versions are known by their directory, by one of their files, or by a removed directory under a mount', (t) => {
  const mountinfo = [
    '36 35 98:0 / / rw,noatime master:1 - ext4 /dev/root rw',
    '40 36 98:0 /etc/gpu-manager/vdriver/nvidia/versions/535-a /usr/local/nvidia ro - ext4 /dev/root rw',
    '41 36 98:0 /vdriver/nvidia/versions/535-b/lib64/libcuda.so.1 /usr/lib64/libcuda.so.1 ro - ext4 /dev/root rw',
    '42 36 98:0 /vdriver/nvidia/versions/535-c//deleted /usr/local/nvidia ro - ext4 /dev/root rw',
    '43 36 98:0 /versions/x/versions/535-d /usr/local/nvidia ro - ext4 /dev/root rw',
    '44 36 98:0 /elsewhere/535-e /usr/local/nvidia ro - ext4 /dev/root rw',
    'garbage',
    '',
  ].join('\n');
  const versions = ['535-a', '535-b', '535-c', '535-d', '535-e'];
  t.same(versionsInMountinfo(mountinfo, versions), ['535-a', '535-b', '535-c', '535-d']);
  t.same(versionsInMountinfo('', versions), []);
  t.end();
});

test('unused versions are removed from disk, used and current ones stay', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  for (const version of ['old', 'used', 'new', '.unfinished-x'])
    mkdirSync(join(directory, 'versions', version), { recursive: true });
  symlinkSync('versions/new', join(directory, 'current'));
  lutimesSync(join(directory, 'current'), 1000, 1000);
  const processes = join(scratch, 'proc');
  mkdirSync(join(processes, '17/ns'), { recursive: true });
  mkdirSync(join(processes, '18/ns'), { recursive: true });
  mkdirSync(join(processes, '19'), { recursive: true });
  mkdirSync(join(processes, 'self/ns'), { recursive: true });
  symlinkSync('pid:[4026532000]', join(processes, 'self/ns/pid'));
  symlinkSync('mnt:[1]', join(processes, '17/ns/mnt'));
  symlinkSync('mnt:[2]', join(processes, '18/ns/mnt'));
  writeFileSync(join(processes, '17/mountinfo'), '36 35 98:0 / / rw - ext4 /dev/root rw\n');
  writeFileSync(
    join(processes, '18/mountinfo'),
    '36 35 98:0 /x/versions/used /usr/local/nvidia ro - ext4 /dev/root rw\n',
  );

  t.same(
    await removeUnusedVersions(directory, 1000_000 + REMOVAL_GRACE_MS, processes),
    [],
    'an agent that does not see every process removes nothing',
  );
  rmSync(join(processes, 'self/ns/pid'));
  symlinkSync('pid:[4026531836]', join(processes, 'self/ns/pid'));
  t.same(await removeUnusedVersions(directory, 1000_000 + REMOVAL_GRACE_MS - 1, processes), []);
  t.match(await removeUnusedVersions(directory, 1000_000 + REMOVAL_GRACE_MS, processes), [{ version: 'old' }]);
  t.same(readdirSync(join(directory, 'versions')).sort(), ['.unfinished-x', 'new', 'used']);
});

const readable = (path: string): boolean => {
  try {
    readlinkSync(path);
    return true;
  } catch {
    return false;
  }
};

test(
  'no version is removed while a process is not readable',
  { skip: readable('/proc/1/ns/mnt') ? 'every process may be looked at here' : false },
  async (t) => {
    const scratch = await scratchDirectory(t);
    const directory = join(scratch, 'nvidia');
    for (const version of ['old', 'new']) mkdirSync(join(directory, 'versions', version), { recursive: true });
    symlinkSync('versions/new', join(directory, 'current'));
    mkdirSync(join(scratch, 'proc/self/ns'), { recursive: true });
    symlinkSync('pid:[4026531836]', join(scratch, 'proc/self/ns/pid'));
    symlinkSync('/proc/1', join(scratch, 'proc/1'));
    t.same(await removeUnusedVersions(directory, Date.now() + 2 * REMOVAL_GRACE_MS, join(scratch, 'proc')), []);
  },
);
