import { test } from 'tap';
import type { GroupLimited, GroupLimiter, GroupLimits } from '../../../../src/agent/gpus/driver.js';
import type { Inventory } from '../../../../src/agent/gpus/index.js';
import { parseSimNode } from '../../../../src/agent/gpus/sim/node.js';
import type { ControlGroups } from '../../../../src/agent/runtimes/index.js';
import { DriverMemory } from '../../../../src/agent/slices/driver-memory/driver-memory.js';
import { GpuEnforcement } from '../../../../src/agent/slices/driver-memory/gpu-enforcement.js';
import { SliceGroups } from '../../../../src/agent/slices/driver-memory/slice-groups.js';
import { silentLog } from '../../../../src/host/log.js';
import { ManualClock } from '../../../manual-clock.js';
import type { scratchDirectory } from '../../../scratch.js';
import { ALLOCATION, gpuLimits, MIB, openSlices, sliceSpec } from '../node-slices.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const GROUP = '/sys/fs/cgroup/kubepods/pod1/c1';

/** A slice of 1 GiB on a driver whose answer to `set` the test chooses; the runtime announced its container. */
async function oneSlice(t: Teardown, set: (limits: GroupLimits) => Promise<GroupLimited>) {
  const parsed = parseSimNode(JSON.stringify({ driverVersion: '615.1', gpus: [{}] }));
  if (!parsed.ok) throw new Error(parsed.reason);
  const gpu = { ...(parsed.node.gpus[0] as (typeof parsed.node.gpus)[number]), uuid: gpuLimits(0).uuid };
  const { driverVersion, topology } = parsed.node;
  const inventory: Inventory = { driverVersion, cudaVersion: null, gpus: [gpu], topology, excluded: [], notes: [] };
  const limiter: GroupLimiter = {
    problem: async () => null,
    set: (_uuid, _group, limits) => set(limits),
    get: async () => 'none',
  };
  const groups: ControlGroups = {
    problem: null,
    root: '/sys/fs/cgroup',
    hasGpuMemory: () => false,
    ofProcess: () => null,
    ofContainer: async () => null,
    named: () => GROUP,
    exists: () => true,
  };
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  const slice = node.slices.started.get(ALLOCATION);
  if (slice === undefined) throw new Error('the slice is not open');
  const clock = new ManualClock();
  const notes: string[] = [];
  const memory = new DriverMemory({
    limiter,
    enforcement: new GpuEnforcement({ limiter, enforcement: 'auto', inventory: () => inventory, groups }),
    groups: new SliceGroups({ groups, announced: { pathsOf: () => ['c1'] }, usersOf: ({ spec }) => [spec.owner] }),
    slices: node.slices,
    notices: { note: (_owner, { message }) => void notes.push(message) },
    clock,
    log: silentLog(),
  });
  await memory.start();
  return { memory, slice, clock, notes };
}

test('a driver that does not answer delays the start of a container by a second at most', async (t) => {
  const { memory, clock } = await oneSlice(t, () => new Promise(() => undefined));
  let started = false;
  const starting = memory.starting(ALLOCATION).then(() => (started = true));
  clock.advance(999);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(started, false);
  clock.advance(1);
  await starting;
  t.equal(started, true);
});

test('a limit that changes while an earlier one is being set is set after it', async (t) => {
  const asked: GroupLimits[] = [];
  const answers: (() => void)[] = [];
  const { memory, slice } = await oneSlice(t, (limits) => {
    asked.push(limits);
    return new Promise((resolve) => answers.push(() => resolve('set')));
  });
  const first = memory.starting(ALLOCATION);
  while (answers.length === 0) await new Promise((resolve) => setImmediate(resolve));
  slice.resize([{ ...gpuLimits(0), memoryBytes: 512 * MIB }]);
  memory.follow(slice);
  answers[0]?.();
  await first;
  while (answers.length < 2) await new Promise((resolve) => setImmediate(resolve));
  answers[1]?.();
  await memory.stop();
  t.same(
    asked.map(({ hardBytes }) => (hardBytes ?? 0) / MIB),
    [1024, 512],
  );
  t.equal(memory.enforces(slice, gpuLimits(0).uuid), true);
});

test('a refusal is one event, until the driver takes the limit', async (t) => {
  let answer: GroupLimited = { refused: 'no permission' };
  const { memory, slice, notes } = await oneSlice(t, async () => answer);
  await memory.starting(ALLOCATION);
  await memory.starting(ALLOCATION);
  t.match(notes, [/library alone enforces it: 1024 MiB on GPU-.*: no permission/]);
  t.equal(memory.enforces(slice, gpuLimits(0).uuid), false);
  answer = 'set';
  await memory.starting(ALLOCATION);
  t.equal(memory.enforces(slice, gpuLimits(0).uuid), true);
  t.equal(notes.length, 1);
  await memory.stop();
});
