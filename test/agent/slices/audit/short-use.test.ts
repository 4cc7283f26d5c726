import { spawn } from 'node:child_process';
import { test } from 'tap';
import type { ContainerKnowledge } from '../../../../src/agent/runtimes/index.js';
import { FakeContainer, listed } from '../fake-gpu.js';
import { ALLOCATION, gpuLimits, IGNORANT, MIB, sliceSpec } from '../node-slices.js';
import { greetingBytes, ownStartTicks, say } from '../container-client.js';
import { eventually } from '../../../harness/eventually.js';
import { audited, GPU, OTHER_GPU } from './audited-node.js';

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

for (const launches of [false, true])
  test(`a program that lives for a second is ${launches ? 'no finding if it launches' : 'found by the second time if it takes the GPU without launches'}, in any phase`, async (t) => {
    for (let phase = 0; phase < 50; phase += 7) {
      const node = await audited(t, 'evict');
      const container = new FakeContainer(node.node.base, ALLOCATION);
      node.gpus.utilizationPercent = 0;
      await node.steps(120 + phase);
      for (const [at, restSteps] of [213, 90].entries()) {
        node.register(3, process.pid, ownStartTicks());
        if (launches) container.count(0, { chargedNs: (at + 1) * 400e6, launches: (at + 1) * 20 });
        const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 3, ownStartTicks()));
        await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
        node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 40)]);
        await node.steps(10);
        node.gpus.running.set(GPU, []);
        socket.destroy();
        await eventually(() => node.node.slices.sessionOf(process.pid) === null, 'the end');
        await node.steps(restSteps);
      }
      t.equal(node.auditor.counts.raised['not-enforcing'] > 0, !launches, `after ${phase} steps`);
      t.equal(node.evicted.length > 0, !launches);
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
