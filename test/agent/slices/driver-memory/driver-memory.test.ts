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

const POD = '/sys/fs/cgroup/kubepods/pod1';
const GROUP = `${POD}/c1`;

interface Setting {
  /** Limits that the driver has for a group; absent: none. */
  readonly get?: (group: string) => GroupLimits | null;
  /** Whether the kubelet has made the group of the pod; absent: no. */
  readonly hasPod?: boolean;
  /** Whether the container's group exists; absent: yes. */
  readonly exists?: () => boolean;
  readonly suspendedBytes?: () => number | null;
}

/** A slice of 1 GiB on a driver whose answer to `set` the test chooses; the runtime announced its container. */
async function oneSlice(
  t: Teardown,
  set: (limits: GroupLimits, group: string) => Promise<GroupLimited>,
  { get = () => null, hasPod = false, exists = () => true, suspendedBytes }: Setting = {},
) {
  const parsed = parseSimNode(JSON.stringify({ driverVersion: '615.1', gpus: [{}] }));
  if (!parsed.ok) throw new Error(parsed.reason);
  const gpu = { ...(parsed.node.gpus[0] as (typeof parsed.node.gpus)[number]), uuid: gpuLimits(0).uuid };
  const { driverVersion, topology } = parsed.node;
  const inventory: Inventory = { driverVersion, cudaVersion: null, gpus: [gpu], topology, excluded: [], notes: [] };
  const limiter: GroupLimiter = {
    problem: async () => null,
    set: (_uuid, group, limits) => set(limits, group),
    async get(_uuid, group) {
      const limits = get(group);
      return limits === null ? 'none' : { ...limits, usedBytes: 0 };
    },
  };
  const groups: ControlGroups = {
    problem: null,
    root: '/sys/fs/cgroup',
    hasGpuMemory: () => false,
    ofProcess: () => null,
    ofContainer: async () => null,
    ofPod: () => (hasPod ? POD : null),
    named: () => (exists() ? GROUP : null),
    exists: (path) => path === POD || exists(),
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
    ...(suspendedBytes === undefined ? {} : { suspendedBytes }),
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

/** A driver that keeps what it is told. */
function keepingDriver() {
  const limits = new Map<string, GroupLimits>();
  return {
    limits,
    get: (group: string): GroupLimits | null => limits.get(group) ?? null,
    set: async (wanted: GroupLimits, group: string): Promise<GroupLimited> => {
      limits.set(group, wanted);
      return 'set';
    },
  };
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('before a container exists the group of its pod has the limit', async (t) => {
  const driver = keepingDriver();
  const { memory } = await oneSlice(t, driver.set, { ...driver, hasPod: true, exists: () => false });
  await memory.expect(ALLOCATION);
  t.same([...driver.limits], [[POD, { softBytes: 0, hardBytes: 1024 * MIB }]]);
  await memory.stop();
});

test('the library leaves memory to the driver from a start for which the runtime waits, until the group goes', async (t) => {
  const driver = keepingDriver();
  let exists = true;
  const { memory, slice, clock } = await oneSlice(t, driver.set, { ...driver, exists: () => exists });
  memory.follow(slice);
  await settled();
  t.equal(memory.enforces(slice, gpuLimits(0).uuid), true);
  t.equal(slice.limits.memoryByDriver, false, 'a process may run already');
  await memory.starting(ALLOCATION);
  t.equal(slice.limits.memoryByDriver, true);
  clock.advance(5_000);
  await settled();
  t.equal(slice.limits.memoryByDriver, true, 'still at the comparison');
  exists = false;
  clock.advance(5_000);
  await settled();
  t.equal(slice.limits.memoryByDriver, false);
  await memory.stop();
});

test('the library counts again while another program changes the limit again and again', async (t) => {
  const driver = keepingDriver();
  const { memory, slice, clock } = await oneSlice(t, driver.set, driver);
  await memory.starting(ALLOCATION);
  for (const [attempt, dispute] of [false, false, true].entries()) {
    driver.limits.set(GROUP, { softBytes: 0, hardBytes: 8 * MIB });
    clock.advance(5_000);
    await settled();
    t.match(memory.changed(ALLOCATION), /somebody else changed .* to 8 MiB; the agent set 1024 MiB again/);
    t.same(driver.limits.get(GROUP)?.hardBytes, 1024 * MIB);
    t.equal(memory.hasDispute, dispute, `change ${attempt + 1}`);
    t.equal(slice.limits.memoryByDriver, !dispute);
  }
  clock.advance(61_000);
  await settled();
  t.equal(memory.hasDispute, false);
  await memory.stop();
});

test('a suspended container keeps room in its limit to come back, and guarantees nothing', async (t) => {
  const driver = keepingDriver();
  let suspendedBytes: number | null = null;
  const { memory, slice } = await oneSlice(t, driver.set, { ...driver, suspendedBytes: () => suspendedBytes });
  await memory.starting(ALLOCATION);
  t.same(driver.limits.get(GROUP), { softBytes: 1024 * MIB, hardBytes: 1024 * MIB });
  suspendedBytes = 700 * MIB;
  slice.resize([{ ...gpuLimits(0), memoryBytes: 512 * MIB }]);
  memory.follow(slice);
  await settled();
  t.same(driver.limits.get(GROUP), { softBytes: 0, hardBytes: 700 * MIB });
  suspendedBytes = null;
  memory.follow(slice);
  await settled();
  t.same(driver.limits.get(GROUP), { softBytes: 512 * MIB, hardBytes: 512 * MIB });
  await memory.stop();
});
