import { spawn } from 'node:child_process';
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import type { AuditPolicy } from '../../../../src/agent/slices/audit/findings.js';
import { ACTIVITY, ACTIVITY_FILE, PROCESS_SLOT, USAGE_HEADER, USAGE_LAYOUT } from '../../../../src/abi/vgpu-abi.js';
import { systemClock } from '../../../../src/host/clock.js';
import { silentLog } from '../../../../src/host/log.js';
import { Auditor } from '../../../../src/agent/slices/audit/auditor.js';
import { LegacyPods } from '../../../../src/agent/slices/compat/legacy-pods.js';
import { Monitor } from '../../../../src/agent/slices/steering/monitor.js';
import type { ContainerKnowledge } from '../../../../src/agent/runtimes/index.js';
import type { SliceNote, SliceOwner } from '../../../../src/agent/slices/ports.js';
import type { SliceSpec } from '../../../../src/agent/slices/slice.js';
import { ProcessOwners, type AdoptedContainer } from '../../../../src/agent/slices/process-owners.js';
import { ManualClock } from '../../../manual-clock.js';
import type { scratchDirectory } from '../../../scratch.js';
import { FakeContainer, FakeGpus, listed } from '../fake-gpu.js';
import { ALLOCATION, gpuLimits, IGNORANT, MIB, NO_LIMIT_ANNOTATIONS, openSlices, sliceSpec } from '../node-slices.js';
import { greetingBytes, ownStartTicks, say } from '../container-client.js';
import { eventually } from '../../../harness/eventually.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const GPU = gpuLimits(0).uuid;
const OTHER_GPU = gpuLimits(1).uuid;

/** Every process of this machine is in the one pod. */
const ONE_POD: ContainerKnowledge = {
  ...IGNORANT,
  placeOf: async () => ({ containerId: 'c', podUid: sliceSpec().owner.podUid }),
};

async function audited(
  t: Teardown,
  policy: AuditPolicy = 'report',
  usersOf: (spec: SliceSpec) => readonly SliceOwner[] = ({ owner }) => [owner],
  freeBytes: () => number | null = () => null,
  usageBounded = false,
  knowledge = ONE_POD,
  adopted: readonly AdoptedContainer[] = [],
) {
  const node = await openSlices(t, { knowledge });
  const gpus = new FakeGpus();
  const clock = new ManualClock();
  const owners = new ProcessOwners(node.slices, knowledge, usersOf, () => adopted);
  const monitor = new Monitor({
    slices: node.slices,
    owners,
    source: gpus,
    gpus: () => [GPU, OTHER_GPU],
    clock,
    log: silentLog(),
    sampleMs: 1_000,
    onSample: (gpu) => auditor.sampled(gpu),
    monotonicNs: () => BigInt(clock.now()) * 1_000_000n,
  });
  const notes: SliceNote[] = [];
  const told: string[] = [];
  const evicted: string[] = [];
  const auditor: Auditor = new Auditor({
    slices: node.slices,
    usageBounded,
    freeBytes,
    gpus: () => monitor.gpus,
    owners,
    notices: {
      note: (owner, note) => {
        notes.push(note);
        told.push(owner.pod);
      },
    },
    evictor: { evict: (owner, why) => void evicted.push(`${owner.pod}: ${why}`) },
    policy,
    clock,
    log: silentLog(),
  });
  monitor.start();
  auditor.start();
  t.teardown(async () => {
    auditor.stop();
    monitor.stop();
  });
  await node.slices.start(sliceSpec());
  const usage = join(node.base, ALLOCATION, 'usage/vgpu.usage');
  return {
    node,
    gpus,
    auditor,
    notes,
    told,
    evicted,
    usage,
    codes: () => auditor.findings(ALLOCATION).map(({ code }) => code),
    /** One turn of the checks of files. */
    turn: () => clock.advance(100),
    async seconds(count: number): Promise<void> {
      for (let second = 0; second < count; second += 1) {
        clock.advance(1_000);
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      }
    },
    /** Runs steps of 100 ms. */
    async steps(count: number, turns = 10): Promise<void> {
      for (let step = 0; step < count; step += 1) {
        clock.advance(100);
        for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      }
    },
    /** Writes the slot of a process that passed its self test, as the library does. */
    register(slot: number, pid: number, startTicks: number, selfTest = 0b11111): void {
      const file = readFileSync(usage);
      const at = USAGE_LAYOUT.slots + slot * PROCESS_SLOT.structSize;
      file.writeUInt32LE(slot + 1, USAGE_HEADER.slotHigh);
      file.writeBigUInt64LE((BigInt(startTicks) << 24n) | (BigInt(pid) << 2n) | 1n, at + PROCESS_SLOT.owner);
      file.writeUInt32LE(selfTest, at + PROCESS_SLOT.selfTest);
      file.write('test', at + PROCESS_SLOT.name);
      writeFileSync(usage, file);
    },
  };
}

test('a process that greeted with its own slot has no finding', async (t) => {
  const node = await audited(t);
  node.register(3, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 3, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
  await node.seconds(30);
  t.same(node.codes(), []);
  t.same(node.notes, []);
  socket.destroy();
});

test('a GPU process without the library is reported once while it lives, and no pod is evicted', async (t) => {
  const node = await audited(t);
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 5)]);
  await node.seconds(60);
  t.same(node.codes(), ['no-library']);
  t.match(node.notes, [
    {
      type: 'Warning',
      reason: 'GPUAudit',
      message: /^main: sleep \(\d+\) use the GPU, and no process of the container has loaded the control library/,
    },
  ]);
  t.match(node.auditor.counts, { raised: { 'no-library': 1, tampered: 0 }, evictions: 0 });
  t.same(node.evicted, []);
  node.gpus.running.set(GPU, []);
  await node.seconds(10);
  t.same(node.codes(), []);
});

for (const [load, utilizationPercent] of [
  ['a used', 50],
  ['an idle', 0],
] as const)
  test(`a bypass of one second on ${load} GPU is reported within ten seconds of its second occurrence, in any phase`, async (t) => {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    t.teardown(async () => void child.kill('SIGKILL'));
    const late: number[] = [];
    for (let phase = 0; phase < 50; phase += 1) {
      const node = await audited(t);
      node.gpus.utilizationPercent = utilizationPercent;
      await node.steps(100 + phase);
      for (const restSteps of [47, 100]) {
        node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 5)]);
        await node.steps(10);
        node.gpus.running.set(GPU, []);
        await node.steps(restSteps);
      }
      if (node.auditor.counts.raised['no-library'] !== 1) late.push(phase);
    }
    t.same(late, []);
  });

test('memory that a known process holds for a second beyond the limit is found', async (t) => {
  for (let phase = 0; phase < 50; phase += 7) {
    const node = await audited(t);
    node.register(0, process.pid, ownStartTicks());
    const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
    await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
    node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
    await node.steps(100 + phase);
    node.gpus.running.set(GPU, [listed(process.pid, 4_000 * MIB, 5)]);
    await node.steps(10);
    node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
    await node.steps(100);
    t.equal(node.auditor.counts.raised['over-limit'], 1, `after ${phase} steps`);
    socket.destroy();
  }
});

test('a known process that takes the GPU for a second without launches is found by the second time, in any phase', async (t) => {
  for (let phase = 0; phase < 50; phase += 7) {
    const node = await audited(t, 'evict');
    node.register(3, process.pid, ownStartTicks());
    const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 3, ownStartTicks()));
    await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
    const use = (percent: number): unknown => node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, percent)]);
    use(0);
    await node.steps(120 + phase);
    use(60);
    await node.steps(10);
    use(0);
    await node.steps(190);
    use(60);
    await node.steps(10);
    use(0);
    await node.steps(90);
    t.ok(node.auditor.counts.raised['not-enforcing'] > 0, `after ${phase} steps`);
    t.match(node.evicted.at(-1), / % of the time of .* used and not charged/);
    socket.destroy();
  }
});

test('a known process that launches for a moment after a rest has no finding while another GPU is busy', async (t) => {
  const busy = { ...sliceSpec().owner, podUid: 'busy', pod: 'busy' };
  const knowledge = { ...IGNORANT, placeOf: async () => ({ containerId: 'busy', podUid: busy.podUid }) };
  const node = await audited(t, 'evict', undefined, undefined, undefined, knowledge);
  const other = ALLOCATION.replaceAll('a', 'b');
  await node.node.slices.start(sliceSpec({ allocation: other, owner: busy, devices: [gpuLimits(1)] }));
  node.gpus.running.set(OTHER_GPU, [listed(4_000_000, 100 * MIB, 20)]);
  node.register(3, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 3, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  const [here, there] = [ALLOCATION, other].map((allocation) => new FakeContainer(node.node.base, allocation));
  let steps = 0;
  const pass = async (count: number): Promise<void> => {
    for (let step = 0; step < count; step += 1) {
      steps += 1;
      there?.count(0, { chargedNs: steps * 20e6, launches: Math.floor(steps / 2) });
      await node.steps(1);
    }
  };
  const use = (percent: number): unknown => node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, percent)]);
  for (let round = 1; round <= 40; round += 1) {
    here?.count(0, { chargedNs: round * 200e6, launches: round * 5 });
    use(60);
    await pass(6);
    use(0);
    await pass(31 + (round % 11));
  }
  t.same(node.notes, []);
  t.same(node.evicted, []);
  socket.destroy();
});

test('with eviction enabled its pod is evicted, and again if the eviction was refused', async (t) => {
  const node = await audited(t, 'evict');
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 5)]);
  await node.seconds(20);
  t.match(node.evicted, [/^trainer: sleep/]);
  await node.seconds(60);
  t.equal(node.evicted.length, 2);
  t.equal(node.auditor.counts.evictions, 2);
});

test('in a claim that pods share, a bypass of any of them is found, and all of them are told and evicted', async (t) => {
  const { owner } = sliceSpec();
  const first = { ...owner, podUid: 'of-another-pod', pod: 'server' };
  const node = await audited(t, 'evict', () => [first, owner, { ...owner, container: 'sidecar' }]);
  await node.node.slices.start(sliceSpec({ owner: first }));
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 5)]);
  await node.seconds(20);
  t.same(node.codes(), ['no-library']);
  t.same(node.told, ['server', 'trainer', 'trainer']);
  t.match(node.notes, [{ message: /^main: sleep/ }, { message: /^main: sleep/ }, { message: /^sidecar: sleep/ }]);
  t.match(node.evicted, [/^server: sleep/, /^trainer: sleep/]);
  t.equal(node.evicted.length, 2);
});

test('a process from before a restart of the agent is known by its slot while it is idle', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 0)]);
  await node.seconds(30);
  t.same(node.codes(), []);
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 30)]);
  await node.seconds(15);
  t.same(node.codes(), ['unregistered']);
});

test('a library that does not enforce limits is reported with the reason', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks(), 0b11101);
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  await node.seconds(15);
  t.same(node.codes(), ['not-enforcing']);
  t.match(node.notes, [{ message: /hands out functions of the driver that it does not recognise/ }]);
  socket.destroy();
});

test('a process that claims the slot of another is reported', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 7, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  await node.seconds(15);
  t.same(node.codes(), ['tampered']);
  socket.destroy();
});

test('overwriting, truncating and growing the usage file are reported, and a grown file is truncated', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
  truncateSync(node.usage, 10 * MIB);
  await node.seconds(5);
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize);
  writeFileSync(node.usage, Buffer.alloc(USAGE_LAYOUT.structSize, 0xff));
  await node.seconds(15);
  t.ok(
    node.codes().every((code) => code === 'tampered'),
    node.codes().join(),
  );
  t.match(node.notes.map(({ message }) => message).join(), /not a usage file/);
  truncateSync(node.usage, 0);
  await node.seconds(15);
  t.match(
    node.auditor
      .findings(ALLOCATION)
      .map(({ message }) => message)
      .join(),
    /0 bytes instead of/,
  );
  socket.destroy();
});

test('a container without a process on a GPU can neither fill the disk with its usage file nor forge it unnoticed', async (t) => {
  const node = await audited(t);
  await node.seconds(20);
  t.same(node.codes(), []);
  truncateSync(node.usage, 10 * MIB);
  await node.seconds(1);
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize);
  t.match(node.notes, [{ message: /it used 10485760 bytes/ }], 'reported at once');
  writeFileSync(node.usage, Buffer.alloc(USAGE_LAYOUT.structSize, 0xff));
  await node.seconds(15);
  t.same(node.codes(), ['tampered', 'tampered']);
  t.match(node.notes, [{}, { message: /not a usage file/ }]);
});

test('a file that the agent does not check in every turn is checked once the disk has less free space', async (t) => {
  let free = 100 * MIB;
  const node = await audited(t, 'report', undefined, () => free);
  const activity = join(node.node.base, ALLOCATION, ACTIVITY_FILE);
  await node.seconds(1);
  node.turn();
  const growFile = (): void => {
    truncateSync(activity, MIB);
    node.turn();
  };
  growFile();
  t.equal(statSync(activity).size, MIB, 'the disk is as full as before');
  await node.seconds(1);
  t.equal(statSync(activity).size, ACTIVITY.structSize, 'every second, all files are checked');
  growFile();
  free -= 4 * MIB;
  node.turn();
  t.equal(statSync(activity).size, ACTIVITY.structSize);
  growFile();
  free += 8 * MIB;
  node.turn();
  t.equal(statSync(activity).size, MIB, 'more free space than before');
  truncateSync(node.usage, 2 ** 31);
  node.turn();
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize, 'the length of usage files is checked in every turn');
});

test('where usage files cannot grow, all files are checked when activity files take other memory, and every five seconds', async (t) => {
  let free = 60 * MIB;
  const node = await audited(t, 'report', undefined, () => free, true);
  const activity = join(node.node.base, ALLOCATION, ACTIVITY_FILE);
  await node.seconds(1);
  truncateSync(activity, 0);
  await node.seconds(1);
  t.equal(statSync(activity).size, 0, 'as much free memory as before');
  free += 4_096;
  await node.seconds(1);
  t.equal(statSync(activity).size, ACTIVITY.structSize);
  truncateSync(activity, MIB);
  truncateSync(node.usage, USAGE_LAYOUT.structSize + 1);
  await node.seconds(5);
  t.equal(statSync(activity).size, ACTIVITY.structSize, 'a hole takes no memory');
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize);
});

test('on an unused GPU the finding takes longer', async (t) => {
  const node = await audited(t);
  node.gpus.utilizationPercent = 0;
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 0)]);
  await node.seconds(40);
  t.same(node.codes(), ['no-library']);
});

test('a container on a GPU that was not allocated to it is reported', async (t) => {
  const node = await audited(t);
  node.gpus.running.set(OTHER_GPU, [listed(process.pid, 100 * MIB, 5)]);
  await node.seconds(20);
  t.same(node.codes(), ['wrong-gpu']);
  t.match(node.notes, [{ message: new RegExp(`uses ${OTHER_GPU}, which is not allocated to the container`) }]);
});

test('memory that the driver reports beyond the limit is a finding', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 4_000 * MIB, 5)]);
  await node.seconds(20);
  t.same(node.codes(), ['over-limit']);
  socket.destroy();
});

test('in an unenforced container a bypass is no finding, and memory beyond its allocation is one that evicts', async (t) => {
  const { node, gpus, notes, evicted, ...container } = await audited(t, 'evict');
  await node.slices.start({ ...sliceSpec(), unenforced: true });
  gpus.running.set(GPU, [listed(process.pid, 512 * MIB, 30)]);
  await container.seconds(30);
  t.same(container.codes(), []);
  gpus.running.set(GPU, [listed(process.pid, 2048 * MIB, 90)]);
  await container.seconds(30);
  t.same(container.codes(), ['over-limit', 'over-share']);
  t.match(notes, [
    { reason: 'GPUAudit', message: /^main: 2048 MiB in use on GPU-\S+, the limit is 1024 MiB$/ },
    {
      reason: 'GPUAudit',
      message: /^main: 90 % of the time of GPU-\S+ in use, 30 % are allocated; the container is unenforced$/,
    },
  ]);
  t.match(evicted, [/^trainer: 2048 MiB in use/]);
});

for (const [on, rest] of [
  [2, 20],
  [4, 5.5],
  [8, 7],
] as const) {
  test(`a program that bypasses the library for ${on} s and rests ${rest} s is reported and evicted at its second occurrence`, async (t) => {
    const node = await audited(t, 'evict');
    node.gpus.utilizationPercent = 0;
    const occur = async (): Promise<void> => {
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
      t.teardown(async () => void child.kill('SIGKILL'));
      node.gpus.running.set(GPU, [listed(child.pid ?? 0, 200 * MIB, 80)]);
      await node.seconds(on);
      node.gpus.running.set(GPU, []);
      child.kill('SIGKILL');
    };
    await node.seconds(10);
    await occur();
    await node.seconds(rest);
    await occur();
    await node.seconds(Math.max(0, 10 - on));
    t.same(node.evicted.length > 0, true, 'evicted');
    t.match(node.notes, [{ reason: 'GPUAudit', message: /sleep \(\d+\) use/ }]);
  });
}

test('memory beyond the limit between two audits is reported at once when it is gross', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 500 * MIB, 5)]);
  await node.seconds(11);
  node.gpus.running.set(GPU, [listed(process.pid, 1_500 * MIB, 5)]);
  await node.seconds(2);
  node.gpus.running.set(GPU, [listed(process.pid, 500 * MIB, 5)]);
  await node.seconds(5);
  t.match(node.notes, [{ message: /1500 MiB in use/ }]);
  socket.destroy();
});

test('a process whose greeting arrives after the driver lists it, or that has just ended, is no finding', async (t) => {
  const node = await audited(t, 'evict');
  for (let round = 0; round < 5; round += 1) {
    node.register(0, process.pid, ownStartTicks());
    node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
    await node.seconds(1);
    const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
    await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
    await node.seconds(6);
    node.gpus.running.set(GPU, []);
    socket.destroy();
    await eventually(() => node.node.slices.sessionOf(process.pid) === null, 'the end');
    await node.seconds(6);
  }
  t.same(node.notes, []);
  t.same(node.evicted, []);
});

test("a pod that the original's own library serves has no findings and is not evicted, whatever it uses", async (t) => {
  const podUid = '99999999-2222-3333-4444-555555555555';
  const knowledge: ContainerKnowledge = { ...IGNORANT, placeOf: async () => ({ containerId: 'old', podUid }) };
  const node = await audited(t, 'evict', undefined, undefined, undefined, knowledge);
  const legacy = new LegacyPods({
    path: node.node.base,
    knowledge,
    limitAnnotations: NO_LIMIT_ANNOTATIONS,
    driverVersion: () => '570.86.10',
    clock: systemClock,
    log: silentLog(),
  });
  t.teardown(() => legacy.close());
  await legacy.open([{ podUid, container: 'main', cores: 30, memoryBytes: 1024 * MIB, gpuUuids: [GPU] }]);
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  for (const gpu of [GPU, OTHER_GPU]) node.gpus.running.set(gpu, [listed(child.pid ?? 0, 8_000 * MIB, 100)]);
  await node.seconds(120);
  t.same(node.notes, []);
  t.same(node.evicted, []);
  t.match(node.auditor.counts, { evictions: 0 });
});

/** A generator of numbers in [0, 1), the same in every run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** `HONEST_HOURS=1` takes a minute. */
const MINUTES = 60 * Number(process.env['HONEST_HOURS'] ?? 1 / 6);

test('processes of adopted pods raise no finding, beside a program of ours and in its pod', async (t) => {
  const OURS = sliceSpec().owner.podUid;
  const ADOPTED = '99999999-2222-3333-4444-555555555555';
  const children = Array.from({ length: 4 }, () => spawn('sleep', ['3600'], { stdio: 'ignore' }));
  t.teardown(async () => children.forEach((child) => child.kill('SIGKILL')));
  const pids = children.map(({ pid }) => pid ?? 0);
  // Two processes are of an adopted pod, two of a container of our pod that the original's plugin still gave its GPU.
  const knowledge: ContainerKnowledge = {
    ...IGNORANT,
    placeOf: async (pid) =>
      pids.indexOf(pid) < 2 ? { containerId: 'old', podUid: ADOPTED } : { containerId: 'side', podUid: OURS },
    nameOf: async (containerId) => (containerId === 'side' ? 'side' : 'main'),
  };
  const adopted = [
    { podUid: ADOPTED, container: 'main', gpuUuids: [GPU] },
    { podUid: OURS, container: 'side', gpuUuids: [GPU] },
  ];
  const node = await audited(t, 'evict', undefined, undefined, undefined, knowledge, adopted);
  node.register(3, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 3, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  const random = generator(11);
  for (let second = 0; second < 60 * MINUTES;) {
    const use = (pid: number, mostBytes: number, mostPercent: number) =>
      listed(pid, Math.floor(mostBytes * random()), Math.floor(mostPercent * random()));
    const here = pids.filter(() => random() < 0.6).map((pid) => use(pid, 16_000 * MIB, 100));
    const gone = random() < 0.2 ? [use(4_000_000 + second, 16_000 * MIB, 100)] : [];
    node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 0), ...here, ...gone]);
    const seconds = 1 + Math.floor(20 * random() ** 2);
    await node.steps(10 * seconds, 3);
    second += seconds;
  }
  t.same(node.notes, []);
  t.same(node.evicted, []);
  socket.destroy();
});
