import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import * as realFs from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import type { HostFile } from '../../../src/agent/libraries/inventory.js';
import type { MirrorPlan, MirrorStep } from '../../../src/agent/libraries/mirror-plan.js';
import { applyMirror, currentVersion, type MirrorFs } from '../../../src/agent/libraries/mirror.js';
import { scratchDirectory } from '../../scratch.js';

const DIED = 'the process died';

/** A file system whose process dies at the call with the given number; -1 never. Counts the calls. */
function mortalFs(diesAt: number): { fs: MirrorFs; calls: () => number } {
  let calls = 0;
  const fs = new Proxy(realFs, {
    get(target, name: keyof MirrorFs) {
      const call = target[name] as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        if (diesAt >= 0 && calls >= diesAt) throw new Error(DIED);
        calls += 1;
        return call(...args);
      };
    },
  });
  return { fs, calls: () => calls };
}

function sourceFile(directory: string, name: string, content: string): HostFile {
  const path = join(directory, name);
  writeFileSync(path, content);
  chmodSync(path, 0o755);
  return { fileName: name, path, identity: content };
}

/** A mirror of a driver in the structure that plans have. */
function planOf(directory: string, driver: string): MirrorPlan {
  const cuda = sourceFile(directory, `libcuda.so.${driver}`, `driver ${driver}`);
  const control = sourceFile(directory, 'libcuda-control.so', 'control');
  const reason = 'test';
  const steps: MirrorStep[] = [
    { kind: 'directory', to: 'lib64', reason },
    { kind: 'link', to: `lib64/libcuda.so.${driver}`, from: cuda, reason },
    { kind: 'symlink', to: 'lib64/libcuda-origin.so.1', target: cuda.fileName, reason },
    { kind: 'copy', to: 'lib64/libcuda.so.1', from: control, reason },
    { kind: 'directory', to: 'bin', reason },
    { kind: 'copy', to: 'bin/gpu-client', from: control, reason },
  ];
  return { version: `${driver}-digest`, driverVersion: driver, steps, leftOut: [], missing: [] };
}

/** The files that a container would find now, or null when it would find none. */
function seen(directory: string): { driver: string; files: string[] } | null {
  const current = join(directory, 'current');
  if (!existsSync(current)) return null;
  return {
    driver: readFileSync(join(current, 'lib64/libcuda-origin.so.1'), 'utf8').replace('driver ', ''),
    files: [...readdirSync(join(current, 'lib64')), ...readdirSync(join(current, 'bin'))].sort(),
  };
}

const whole = (driver: string) => ({
  driver,
  files: ['gpu-client', 'libcuda-origin.so.1', 'libcuda.so.1', `libcuda.so.${driver}`],
});

test('the paths of the original lead to the current version, where the original left no directory of its own', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  mkdirSync(join(directory, 'bin'), { recursive: true });
  await applyMirror(directory, planOf(scratch, '535.1'));
  t.equal(readFileSync(join(directory, 'lib64/libcuda-origin.so.1'), 'utf8'), 'driver 535.1');
  await applyMirror(directory, planOf(scratch, '550.2'));
  t.equal(readFileSync(join(directory, 'lib64/libcuda-origin.so.1'), 'utf8'), 'driver 550.2');
  t.same(readdirSync(join(directory, 'bin')), [], 'the directories of the original stay');
});

test('a mirror is readable by every user, whatever the umask', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  const umask = process.umask(0o077);
  t.teardown(() => process.umask(umask));
  t.equal(await applyMirror(directory, planOf(scratch, '535.54.03')), '535.54.03-digest');
  t.same(seen(directory), whole('535.54.03'));
  t.equal(readlinkSync(join(directory, 'current')), 'versions/535.54.03-digest');
  t.equal(statSync(join(directory, 'current/lib64')).mode & 0o777, 0o755);
  t.equal(statSync(join(directory, 'current')).mode & 0o777, 0o755);
  t.equal(statSync(join(directory, 'current/bin/gpu-client')).mode & 0o777, 0o755);
  t.same(readdirSync(join(directory, 'versions')), ['535.54.03-digest']);
});

test('files of the host are hard links, files of this project are copies', async (t) => {
  const scratch = await scratchDirectory(t);
  await applyMirror(join(scratch, 'nvidia'), planOf(scratch, '535'));
  const mirrored = (name: string) => statSync(join(scratch, 'nvidia/current/lib64', name)).ino;
  t.equal(mirrored('libcuda.so.535'), statSync(join(scratch, 'libcuda.so.535')).ino);
  t.not(mirrored('libcuda.so.1'), statSync(join(scratch, 'libcuda-control.so')).ino);
});

test('files of a host on another file system are copied with their mode', async (t) => {
  const scratch = await scratchDirectory(t);
  const refuses: MirrorFs = {
    ...realFs,
    link: () => Promise.reject(Object.assign(new Error('cross-device'), { code: 'EXDEV' })),
  };
  await applyMirror(join(scratch, 'nvidia'), planOf(scratch, '535'), refuses);
  const copy = statSync(join(scratch, 'nvidia/current/lib64/libcuda.so.535'));
  t.not(copy.ino, statSync(join(scratch, 'libcuda.so.535')).ino);
  t.equal(copy.mode & 0o777, 0o755);
  t.same(seen(join(scratch, 'nvidia')), whole('535'));
});

test('an unchanged plan changes nothing', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  await applyMirror(directory, planOf(scratch, '535'));
  const before = lstatSync(join(directory, 'current'), { bigint: true }).ctimeNs;
  const inode = statSync(join(directory, 'current')).ino;
  await applyMirror(directory, planOf(scratch, '535'));
  t.equal(lstatSync(join(directory, 'current'), { bigint: true }).ctimeNs, before);
  t.equal(statSync(join(directory, 'current')).ino, inode);
});

test('a new version leaves the old one as its containers mounted it', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  await applyMirror(directory, planOf(scratch, '535'));
  const mounted = join(directory, readlinkSync(join(directory, 'current')));
  await applyMirror(directory, planOf(scratch, '580'));
  t.same(seen(directory), whole('580'));
  t.equal(readFileSync(join(mounted, 'lib64/libcuda.so.535'), 'utf8'), 'driver 535');
  t.equal(await currentVersion(directory), '580-digest');
});

test('a damaged version is left to its users and built anew', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  const plan = planOf(scratch, '535');
  await applyMirror(directory, plan);
  rmSync(join(directory, 'current/lib64/libcuda.so.1'));
  t.equal(await applyMirror(directory, plan), '535-digest.1');
  t.same(seen(directory), whole('535'));
  t.equal(await applyMirror(directory, plan), '535-digest.1');
});

test('a path of the original that the new version lacks does not stay as a link that leads nowhere', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  const plan = planOf(scratch, '535');
  await applyMirror(directory, plan);
  t.equal(readlinkSync(join(directory, 'bin')), 'current/bin');
  const steps = plan.steps.filter(({ to }) => !to.startsWith('bin'));
  await applyMirror(directory, { ...plan, version: '535-smaller', steps });
  t.notOk(readdirSync(directory).includes('bin'), 'so that the original can make its directory again');
  t.equal(readlinkSync(join(directory, 'lib64')), 'current/lib64');
});

test('files of the original daemon in the directory stay', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  mkdirSync(join(directory, 'lib64'), { recursive: true });
  writeFileSync(join(directory, 'lib64/libcuda.so.1'), 'the original shim');
  await applyMirror(directory, planOf(scratch, '535'));
  t.equal(readFileSync(join(directory, 'lib64/libcuda.so.1'), 'utf8'), 'the original shim');
  t.same(seen(directory), whole('535'));
});

test('a library that disappears while it is mirrored fails the update and leaves the old version', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  await applyMirror(directory, planOf(scratch, '535'));
  const next = planOf(scratch, '580');
  rmSync(join(scratch, 'libcuda.so.580'));
  await t.rejects(applyMirror(directory, next), { code: 'ENOENT' });
  t.same(seen(directory), whole('535'));
});

test('a kill at any step of the first mirror leaves none or all of it, and the next start completes it', async (t) => {
  const scratch = await scratchDirectory(t);
  const plan = planOf(scratch, '535');
  const { fs, calls } = mortalFs(-1);
  await applyMirror(join(scratch, 'counted'), plan, fs);
  const steps = calls();
  t.ok(steps > 20, `${steps} calls`);
  for (let diesAt = 0; diesAt < steps; diesAt += 1) {
    const directory = join(scratch, `died-${diesAt}`);
    await t.rejects(applyMirror(directory, plan, mortalFs(diesAt).fs), { message: DIED });
    const left = seen(directory);
    if (left !== null) t.same(left, whole('535'));
    await applyMirror(directory, plan);
    t.same(seen(directory), whole('535'));
    t.same(readdirSync(join(directory, 'versions')), ['535-digest'], 'no incomplete file remains');
  }
});

test('a kill at any step of an update leaves the old version or the new one', async (t) => {
  const scratch = await scratchDirectory(t);
  const [before, after] = [planOf(scratch, '535'), planOf(scratch, '580')];
  const counted = join(scratch, 'counted');
  await applyMirror(counted, before);
  const { fs, calls } = mortalFs(-1);
  await applyMirror(counted, after, fs);
  let switched = 0;
  for (let diesAt = 0; diesAt < calls(); diesAt += 1) {
    const directory = join(scratch, `died-${diesAt}`);
    await applyMirror(directory, before);
    await t.rejects(applyMirror(directory, after, mortalFs(diesAt).fs), { message: DIED });
    const left = seen(directory);
    t.ok(left !== null);
    t.same(left, whole(left?.driver ?? ''));
    if (left?.driver === '580') switched += 1;
    await applyMirror(directory, after);
    t.same(seen(directory), whole('580'));
  }
  t.ok(switched > 0 && switched < calls(), `${switched} of ${calls()} kills came after the switch`);
});
