/**
 * An agent that is killed at each of its calls to the driver, once before the driver acts and once after: the next
 * agent brings every group to its limit, and leaves memory to the driver only where the driver keeps it.
 */
import { test } from 'tap';
import type { GroupLimiter, GroupLimits } from '../../../../src/agent/gpus/driver.js';
import type { Inventory } from '../../../../src/agent/gpus/index.js';
import { parseSimNode } from '../../../../src/agent/gpus/sim/node.js';
import type { ControlGroups } from '../../../../src/agent/runtimes/index.js';
import { DriverMemory } from '../../../../src/agent/slices/driver-memory/driver-memory.js';
import { GpuEnforcement } from '../../../../src/agent/slices/driver-memory/gpu-enforcement.js';
import { SliceGroups } from '../../../../src/agent/slices/driver-memory/slice-groups.js';
import { silentLog } from '../../../../src/host/log.js';
import { ManualClock } from '../../../manual-clock.js';
import type { scratchDirectory } from '../../../scratch.js';
import { ALLOCATION, gpuLimits, MIB, openSlices, sliceSpec, type TestSlices } from '../node-slices.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const ROOT = '/sys/fs/cgroup';
const POD = `${ROOT}/kubepods/pod1`;

/** The node as it is without an agent: the driver, the runtime, and the control groups. */
class World {
  readonly limits = new Map<string, GroupLimits>();
  /** The container's group; null: it does not exist. */
  container: string | null = null;
  calls = 0;
  /** The agent is killed at this call. */
  killAt = Infinity;
  actsBeforeKill = false;

  get isDead(): boolean {
    return this.calls > this.killAt;
  }

  begin(container: string): void {
    this.container = `${POD}/${container}`;
  }

  /** The runtime removes the group, and the driver forgets its limits. */
  end(): void {
    if (this.container !== null) this.limits.delete(this.container);
    this.container = null;
  }

  async call<T>(act: () => T): Promise<T> {
    if (this.isDead) return new Promise(() => undefined);
    const isLast = this.calls++ === this.killAt;
    if (!isLast) return act();
    this.calls += 1;
    if (this.actsBeforeKill) act();
    return new Promise(() => undefined);
  }
}

function agentOn(world: World, node: TestSlices) {
  const parsed = parseSimNode(JSON.stringify({ driverVersion: '615.1', gpus: [{}] }));
  if (!parsed.ok) throw new Error(parsed.reason);
  const gpu = { ...(parsed.node.gpus[0] as (typeof parsed.node.gpus)[number]), uuid: gpuLimits(0).uuid };
  const { driverVersion, topology } = parsed.node;
  const inventory: Inventory = { driverVersion, cudaVersion: null, gpus: [gpu], topology, excluded: [], notes: [] };
  const limiter: GroupLimiter = {
    problem: async () => null,
    set: (_uuid, group, wanted) =>
      world.call(() => {
        if (group !== POD && group !== world.container) return 'gone';
        world.limits.set(group, wanted);
        return 'set';
      }),
    get: (_uuid, group) =>
      world.call(() => {
        const limits = world.limits.get(group);
        return limits === undefined ? 'none' : { ...limits, usedBytes: 0 };
      }),
  };
  const groups: ControlGroups = {
    problem: null,
    root: ROOT,
    hasGpuMemory: () => false,
    ofProcess: () => null,
    ofContainer: async () => world.container,
    ofPod: () => POD,
    named: () => world.container,
    exists: (path) => path === POD || path === world.container,
  };
  const clock = new ManualClock();
  const memory = new DriverMemory({
    limiter,
    enforcement: new GpuEnforcement({ limiter, enforcement: 'auto', inventory: () => inventory, groups }),
    groups: new SliceGroups({ groups, announced: { pathsOf: () => [] }, usersOf: ({ spec }) => [spec.owner] }),
    slices: node.slices,
    notices: { note: () => undefined },
    clock,
    log: silentLog(),
  });
  return { memory, clock };
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 30; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A container starts, is resized, ends, and starts again, until the agent is killed. */
async function live(world: World, node: TestSlices, memory: DriverMemory, clock: ManualClock): Promise<void> {
  const prepare = async (): Promise<void> => {
    await node.slices.start(sliceSpec());
    void memory.expect(ALLOCATION);
    await settled();
  };
  const begin = async (container: string): Promise<void> => {
    world.begin(container);
    // The search finds the group, as the announcement would.
    clock.advance(100);
    await settled();
    void memory.starting(ALLOCATION);
    await settled();
  };
  const resize = async (mib: number): Promise<void> => {
    const slice = node.slices.started.get(ALLOCATION);
    slice?.resize([{ ...gpuLimits(0), memoryBytes: mib * MIB }]);
    if (slice !== undefined) memory.follow(slice);
    await settled();
  };
  for (const step of [
    prepare,
    () => begin('c1'),
    () => resize(512),
    () => resize(768),
    async () => {
      world.end();
      clock.advance(5_000);
      await settled();
    },
    prepare,
    () => begin('c2'),
  ]) {
    if (world.isDead) return;
    await step();
  }
}

async function run(t: Teardown, killAt: number, actsBeforeKill: boolean) {
  const world = new World();
  Object.assign(world, { killAt, actsBeforeKill });
  const node = await openSlices(t);
  const { memory, clock } = agentOn(world, node);
  await memory.start();
  await live(world, node, memory, clock);
  const { calls } = world;
  await node.slices.close();

  world.killAt = Infinity;
  const later = await node.again();
  if (node.slices.started.size === 0) await later.slices.restore(sliceSpec());
  const next = agentOn(world, later);
  await next.memory.start();
  next.clock.advance(5_000);
  await settled();
  const slice = later.slices.started.get(ALLOCATION);
  const limit = slice?.limits.live[0]?.memoryBytes ?? 0;
  const groups = world.container === null ? [POD] : [POD, world.container];
  const leftToDriver = slice?.limits.memoryByDriver === true;
  await next.memory.stop();
  return { calls, limit, groups, limits: world.limits, leftToDriver };
}

test('a killed agent is followed by one that finds every group and its limit', async (t) => {
  const { calls, leftToDriver } = await run(t, Infinity, false);
  t.ok(calls > 8, `${calls} calls`);
  t.equal(leftToDriver, true);
  for (let killAt = 0; killAt < calls; killAt += 1)
    for (const acts of [false, true]) {
      const found = await run(t, killAt, acts);
      const when = `killed ${acts ? 'after' : 'before'} call ${killAt + 1}`;
      t.same([...found.limits.keys()].sort(), [...found.groups].sort(), `${when}: the groups`);
      for (const { hardBytes } of found.limits.values()) t.equal(hardBytes, found.limit, `${when}: the limit`);
      if (found.groups.length === 1) t.equal(found.leftToDriver, false, `${when}: no container, so the library counts`);
    }
});
