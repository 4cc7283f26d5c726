import { spawnSync } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { open, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { decodeLimits } from '../../../../src/abi/limits-file.js';
import { ACTIVITY, ACTIVITY_FILE, HIGH_DIRECTORY, LIMITS_FILE } from '../../../../src/abi/vgpu-abi.js';
import { UsageTmpfs } from '../../../../src/agent/slices/usage/usage-tmpfs.js';
import { PrecedenceKeeper } from '../../../../src/agent/slices/steering/precedence-keeper.js';
import { SliceDirectories } from '../../../../src/agent/slices/slice-directory.js';
import { systemClock, type Clock } from '../../../../src/host/clock.js';
import { silentLog } from '../../../../src/host/log.js';
import type { Priority } from '../../../../src/gpu/priority.js';
import { unmount } from '../../../../src/host/mounts.js';
import { eventually } from '../../../harness/eventually.js';
import { ManualClock } from '../../../manual-clock.js';
import { scratchDirectory } from '../../../scratch.js';
import { gpuLimits, openSlices, sliceSpec, type TestSlices } from '../node-slices.js';

const HIGH = '00000000000000a1';
const LOW = '00000000000000b1';

const at = (node: TestSlices, allocation: string, file: string): string => join(node.base, allocation, file);

async function limitsOf(node: TestSlices, allocation: string) {
  const decoded = decodeLimits(await readFile(at(node, allocation, LIMITS_FILE)));
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.limits.devices[0];
}

async function startSlice(node: TestSlices, allocation: string, priority: Priority): Promise<void> {
  await node.slices.start(sliceSpec({ allocation, devices: [gpuLimits(0, { priority })] }));
}

function keeperOf(node: TestSlices, clock: Clock = systemClock): PrecedenceKeeper {
  const { activity } = new SliceDirectories(node.base);
  return new PrecedenceKeeper({ slices: node.slices, activity, clock, log: silentLog() });
}

test('a low slice is linked to the high slice of its GPU and notified of it, until that slice ends', async (t) => {
  const node = await openSlices(t);
  const keeper = keeperOf(node);
  await startSlice(node, HIGH, 'high');
  await startSlice(node, LOW, 'low');
  t.match(await limitsOf(node, LOW), { priority: 'low', givesWay: undefined });
  await keeper.round();
  t.same(await readdir(at(node, LOW, HIGH_DIRECTORY)), ['00.0']);
  t.equal((await stat(at(node, LOW, `${HIGH_DIRECTORY}/00.0`))).ino, (await stat(at(node, HIGH, ACTIVITY_FILE))).ino);
  t.same((await limitsOf(node, LOW))?.givesWay, { believed: [60], floor: 500 });
  t.equal((await limitsOf(node, HIGH))?.priority, 'high');
  t.same(await readdir(at(node, HIGH, HIGH_DIRECTORY)), []);

  const sequence = node.slices.started.get(LOW)?.limits.live;
  await keeper.round();
  t.equal(node.slices.started.get(LOW)?.limits.live, sequence, 'an unchanged relation is not published again');

  node.slices.started.get(LOW)?.resize([{ memoryBytes: 1024, share: 20, softLimit: null, priority: 'low' }]);
  t.same((await limitsOf(node, LOW))?.givesWay, { believed: [60], floor: 500 }, 'other limits may change');

  await node.slices.remove(HIGH);
  await keeper.round();
  t.same(await readdir(at(node, LOW, HIGH_DIRECTORY)), []);
  t.equal((await limitsOf(node, LOW))?.givesWay, undefined);
});

test('slices that may borrow from each other are linked to each other, until one of them may no longer', async (t) => {
  const node = await openSlices(t);
  const keeper = keeperOf(node);
  for (const allocation of [HIGH, LOW])
    await node.slices.start(sliceSpec({ allocation, devices: [gpuLimits(0, { share: 30, softLimit: 90 })] }));
  await keeper.round();
  for (const [one, other] of [
    [HIGH, LOW],
    [LOW, HIGH],
  ] as const) {
    const link = await stat(at(node, one, `${HIGH_DIRECTORY}/00.0`));
    t.equal(link.ino, (await stat(at(node, other, ACTIVITY_FILE))).ino);
    t.same((await limitsOf(node, one))?.givesWay, { believed: [60], floor: 3000 });
  }
  node.slices.started.get(HIGH)?.resize([{ memoryBytes: 1024, share: 30, softLimit: null }]);
  await keeper.round();
  for (const one of [HIGH, LOW]) {
    t.same(await readdir(at(node, one, HIGH_DIRECTORY)), []);
    t.equal((await limitsOf(node, one))?.givesWay, undefined);
  }
});

test('a low slice is told of a high slice when that starts and ends, without waiting for a period', async (t) => {
  const node = await openSlices(t);
  const keeper = keeperOf(node, new ManualClock());
  keeper.start();
  await startSlice(node, LOW, 'low');
  await startSlice(node, HIGH, 'high');
  await eventually(async () => (await limitsOf(node, LOW))?.givesWay !== undefined);
  await node.slices.remove(HIGH);
  await eventually(async () => (await limitsOf(node, LOW))?.givesWay === undefined);
  await keeper.stop();
  t.pass();
});

test('slices in turns that end at once are removed completely, though each is a link of all others', async (t) => {
  const base = join(await scratchDirectory(t), 'vm');
  const directories = new SliceDirectories(base);
  const node = await openSlices(t, { base, directories });
  const errors: unknown[] = [];
  const log = { ...silentLog(), error: (...what: unknown[]) => errors.push(what) };
  const { slices } = node;
  const keeper = new PrecedenceKeeper({ slices, activity: directories.activity, clock: new ManualClock(), log });
  keeper.start();
  const ids = Array.from({ length: 24 }, (_, index) => `00000000000000${(index + 16).toString(16)}`);
  const start = (allocation: string) => slices.start(sliceSpec({ allocation, devices: [gpuLimits(0, { share: 3 })] }));
  await Promise.all(ids.map(start));
  await eventually(async () => (await limitsOf(node, ids[0] ?? ''))?.givesWay?.believed.length === ids.length - 1);
  await Promise.all(ids.map((id) => slices.remove(id)));
  await keeper.stop();
  t.same(await readdir(base), []);
  t.same(errors, [], 'that one ended while others were told of it is no error');
});

test('a container that starts again has no claim, and low slices keep reading the same file', async (t) => {
  const node = await openSlices(t);
  await startSlice(node, HIGH, 'high');
  const path = at(node, HIGH, ACTIVITY_FILE);
  t.equal((await stat(path)).size, ACTIVITY.structSize);
  const { ino } = await stat(path);
  await writeFile(path, Buffer.alloc(ACTIVITY.structSize, 7), { flag: 'r+' });
  await startSlice(node, HIGH, 'high');
  t.equal((await stat(path)).ino, ino);
  t.ok((await readFile(path)).every((byte) => byte === 0));
});

test('an activity file that its container grows is truncated and reported', async (t) => {
  const node = await openSlices(t);
  await startSlice(node, HIGH, 'high');
  const slice = node.slices.started.get(HIGH);
  t.equal(slice?.cutUsage(), null);
  const file = await open(at(node, HIGH, ACTIVITY_FILE), 'r+');
  t.teardown(() => file.close());
  await file.truncate(10 * 2 ** 20);
  t.match(slice?.cutUsage(), /the activity file has 10485760 bytes/);
  t.equal((await file.stat()).size, ACTIVITY.structSize);
  await file.truncate(0);
  t.match(slice?.cutUsage(), /the activity file has 0 bytes/);
  t.equal((await file.stat()).size, ACTIVITY.structSize);
});

test('an activity file of an agent without turns grows in place, and what it claims stays', async (t) => {
  const node = await openSlices(t);
  await startSlice(node, HIGH, 'high');
  const path = at(node, HIGH, ACTIVITY_FILE);
  const { ino } = await stat(path);
  await writeFile(path, Buffer.alloc(ACTIVITY.turns, 7));
  await node.slices.close();
  const next = await node.again();
  await next.slices.restore(sliceSpec({ allocation: HIGH, devices: [gpuLimits(0, { priority: 'high' })] }));
  const content = await readFile(path);
  t.equal((await stat(path)).ino, ino);
  t.ok(content.subarray(0, ACTIVITY.turns).every((byte) => byte === 7));
  t.same(content.subarray(ACTIVITY.turns), Buffer.alloc(ACTIVITY.structSize - ACTIVITY.turns));
  t.equal(next.slices.started.get(HIGH)?.cutUsage(), null, 'its container is not blamed for it');
  await next.slices.close();
});

const noMounts =
  process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0 ? false : 'mounting needs root';

test('in memory, links are read-only and survive the agent', { skip: noMounts }, async (t) => {
  const base = await scratchDirectory(t);
  const directories = () => new SliceDirectories(base, new UsageTmpfs(join(base, '.usage')), join(base, '.activity'));
  const first = directories();
  await first.open();
  t.teardown(async () => {
    for (const id of [HIGH, LOW]) await first.remove(id);
    unmount(join(base, '.activity'));
    await rm(base, { recursive: true, force: true });
  });
  await first.make(HIGH);
  await first.make(LOW);
  await first.activity.linkClaimants(LOW, [[HIGH]]);
  const link = join(base, LOW, HIGH_DIRECTORY, '00.0');
  await writeFile(join(base, HIGH, ACTIVITY_FILE), Buffer.alloc(ACTIVITY.structSize, 5), { flag: 'r+' });
  t.equal(readFileSync(link)[9], 5, 'the low slice reads what the high slice writes');
  t.throws(() => openSync(link, 'r+'), { code: 'EROFS' });
  first.activity.close();

  const second = directories();
  await second.open();
  await second.make(HIGH);
  t.equal(readFileSync(link)[9], 5, 'the next agent keeps the link');
  await second.make(HIGH, true);
  t.equal(readFileSync(link)[9], 0);
  await second.activity.linkClaimants(LOW, [[]]);
  t.same(await readdir(join(base, LOW, HIGH_DIRECTORY)), []);
  await second.remove(HIGH);
  t.same((await readdir(join(base, '.activity'))).sort(), ['.mounted', LOW]);
  second.activity.close();
});
