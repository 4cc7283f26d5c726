import { rm } from 'node:fs/promises';
import { test, type Test } from 'tap';
import { NO_NOTICES } from '../../src/agent/allocator/no-pods.js';
import type { ResizeStatus } from '../../src/manifests/gpu-resize.js';
import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import { eventually } from '../harness/eventually.js';
import { cards } from './gpus.js';
import { admitted, gpuIndexes, limitsOf, runPod, startedNode } from './node.js';
import { container, pod, simplePod } from './pods.js';
import { FakeContainer } from './slices/fake-gpu.js';

const BLOCK = 268_435_456;

/** A node whose GPUs have 16 blocks, and the last status that it told about each pod. */
async function resizingNode(
  t: Test,
  { allowResize = true }: { readonly allowResize?: boolean } = {},
): Promise<{ node: SimulatedNode; statusOf: (pod: { readonly name: string }) => ResizeStatus | undefined }> {
  const told = new Map<string, ResizeStatus>();
  const node = await startedNode(t, {
    gpus: cards(1, 4_096),
    knowsPods: true,
    config: { allowResize },
    seams: { notices: { ...NO_NOTICES, resized: ({ pod }, status) => void told.set(pod, status) } },
  });
  return { node, statusOf: ({ name }) => told.get(name) };
}

const asks = (cores: number, blocks: number): Record<string, string> => ({
  'tencent.com/vcuda-core-resize': String(cores),
  'tencent.com/vcuda-memory-resize': String(blocks),
});

async function untilHas(given: GivenContainer, share: number, blocks: number): Promise<void> {
  await eventually(async () => {
    const [device] = (await limitsOf(given)).devices;
    return device?.share === share && device.memoryBytes === blocks * BLOCK;
  }, `the container has ${share} cores and ${blocks} blocks`);
}

test('a running container gets more of its GPU, and others get what it gives back', async (t) => {
  const { node, statusOf } = await resizingNode(t);
  const wanted = simplePod(30, 4);
  const given = await runPod(node, wanted);
  node.kubelet.annotate(wanted.uid, asks(80, 12));
  await untilHas(given, 80, 12);
  await eventually(() => statusOf(wanted)?.cores === 80, 'the agent tells what the container has');
  t.same(statusOf(wanted), { cores: 80, memoryBlocks: 12 });
  t.match(await node.kubelet.admit(simplePod(30, 4)), { ok: false }, 'the kubelet has ids left, and the GPU no room');

  await node.stopAgent();
  await node.startAgent();
  await untilHas(given, 80, 12);
  await node.kubelet.startContainer(wanted.uid, 'main');
  await untilHas(given, 80, 12);
  t.match(
    await node.kubelet.admit(simplePod(30, 4)),
    { ok: false },
    'a restart of agent and container changes nothing',
  );

  node.kubelet.annotate(wanted.uid, asks(40, 8));
  await untilHas(given, 40, 8);
  t.same(gpuIndexes(await runPod(node, simplePod(60, 8))), [0]);
  node.kubelet.annotate(wanted.uid, {});
  await untilHas(given, 30, 4);
});

test('an agent that lost its checkpoint resizes the container again', async (t) => {
  const { node } = await resizingNode(t);
  const wanted = { ...simplePod(30, 4), annotations: asks(80, 12) };
  const given = await runPod(node, wanted);
  await untilHas(given, 80, 12);
  await node.stopAgent();
  await rm(node.config.checkpointPath, { recursive: true });
  await node.startAgent();
  await untilHas(given, 80, 12);
  await eventually(async () => !(await node.kubelet.admit(simplePod(30, 4))).ok, 'the room is taken');
});

test('a resize waits for room, and is done when the room is free', async (t) => {
  const { node, statusOf } = await resizingNode(t);
  const wanted = simplePod(30, 4);
  const given = await runPod(node, wanted);
  const other = simplePod(50, 8);
  await runPod(node, other);
  node.kubelet.annotate(wanted.uid, asks(60, 4));
  await eventually(() => statusOf(wanted) !== undefined, 'the agent tells that the resize waits');
  t.same(statusOf(wanted), {
    cores: 30,
    memoryBlocks: 4,
    pending: {
      reason: 'Deferred',
      message: 'beside other containers, GPU 0 has 50 cores and 2048 MiB for this one',
      asked: { cores: 60, memoryBlocks: 4 },
    },
  });
  t.match((await limitsOf(given)).devices, [{ share: 30 }]);
  node.kubelet.remove(other.uid);
  await node.agent.allocator.reconcile();
  await untilHas(given, 60, 4);
});

test('a node that does not allow it gives no container more than it requested', async (t) => {
  const { node, statusOf } = await resizingNode(t, { allowResize: false });
  const wanted = { ...simplePod(30, 4), annotations: asks(60, 4) };
  const given = await runPod(node, wanted);
  await eventually(() => statusOf(wanted) !== undefined, 'the agent refuses');
  t.match(statusOf(wanted), { cores: 30, pending: { reason: 'Infeasible', message: /\(--allow-resize\)/ } });
  t.match((await limitsOf(given)).devices, [{ share: 30 }]);
});

test('what no GPU has is infeasible, and a wrong value is said', async (t) => {
  const { node, statusOf } = await resizingNode(t);
  const wanted = simplePod(30, 4);
  await runPod(node, wanted);
  node.kubelet.annotate(wanted.uid, asks(60, 17));
  await eventually(() => statusOf(wanted)?.pending?.reason === 'Infeasible', 'the resize is infeasible');
  t.match(statusOf(wanted)?.pending?.message, /GPU 0 has 100 cores and 4096 MiB/);
  node.kubelet.annotate(wanted.uid, { 'tencent.com/vcuda-core-resize': 'half' });
  await eventually(
    () => statusOf(wanted)?.pending?.message.includes('"half" is not a number of cores') === true,
    'the wrong value is named',
  );
});

test('memory in use is not taken: the resize is in progress until the container has freed it', async (t) => {
  const { node, statusOf } = await resizingNode(t);
  const wanted = { ...simplePod(30, 4), annotations: asks(30, 12) };
  const given = await runPod(node, wanted);
  await untilHas(given, 30, 12);
  const program = new FakeContainer(node.config.virtualManagerPath, (await limitsOf(given)).allocation);
  program.hold(0, 0, 10 * BLOCK);
  node.kubelet.annotate(wanted.uid, asks(30, 8));
  await eventually(() => statusOf(wanted)?.pending?.reason === 'InProgress', 'the memory is in use');
  t.match(statusOf(wanted), { memoryBlocks: 12, pending: { message: '2560 MiB are in use' } });
  t.match(await node.kubelet.admit(simplePod(10, 5)), { ok: false }, 'it is not free for others');
  program.hold(0, 0, 6 * BLOCK);
  await untilHas(given, 30, 8);
  t.match(await node.kubelet.admit(simplePod(10, 8)), { ok: true });
});

test('an init container does not get what the container after it gets', async (t) => {
  const { node, statusOf } = await resizingNode(t);
  const wanted = { ...pod([container('main', 30, 4)], [container('init', 30, 4)]), annotations: asks(50, 4) };
  const [first] = admitted(await node.kubelet.admit(wanted));
  if (first === undefined) throw new Error('no container');
  await node.kubelet.startContainer(wanted.uid, 'init');
  node.kubelet.annotate(wanted.uid, asks(60, 4));
  await node.agent.allocator.settle();
  t.match((await limitsOf(first)).devices, [{ share: 30 }]);
  await node.kubelet.startContainer(wanted.uid, 'main');
  await untilHas(first, 60, 4);
  await eventually(() => statusOf(wanted) !== undefined, 'the agent tells what the container has');
  t.same(statusOf(wanted), { cores: 60, memoryBlocks: 4 });
});

test('a pod that asks for more from the start gets it after it has started', async (t) => {
  const { node } = await resizingNode(t);
  await untilHas(await runPod(node, { ...simplePod(30, 4), annotations: asks(50, 4) }), 50, 4);
});

test('a container that waits for its start learns that its node gives it no more than it requests', async (t) => {
  const { node, statusOf } = await resizingNode(t, { allowResize: false });
  const wanted = simplePod(30, 4);
  admitted(await node.kubelet.admit(wanted));
  node.kubelet.annotate(wanted.uid, asks(80, 12));
  await eventually(() => statusOf(wanted) !== undefined, 'the answer before the start');
  t.match(statusOf(wanted), {
    cores: 30,
    memoryBlocks: 4,
    pending: { reason: 'Infeasible', message: /--allow-resize/u, asked: { cores: 80, memoryBlocks: 12 } },
  });
});
