import { readdir, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { test } from 'tap';
import { buildAgent } from '../../src/agent/run.js';
import { NO_PODS } from '../../src/agent/allocator/no-pods.js';
import { silentLog } from '../../src/host/log.js';
import { cards } from './gpus.js';
import { admitted, gpuIndexes, limitsOf, runPod, sliceDirectory, startedNode } from './node.js';
import { container, pod, simplePod } from './pods.js';

test('both resources are registered: 100 cores and its memory blocks for each GPU', async (t) => {
  const node = await startedNode(t);
  t.equal(node.kubelet.allocatable('core'), 600);
  t.equal(node.kubelet.allocatable('memory'), 6 * 64);
});

test('parts that fill a GPU share it, and a part that does not fit goes to another GPU', async (t) => {
  const node = await startedNode(t);
  const indexes: number[] = [];
  for (const cores of [30, 50, 20]) indexes.push(...gpuIndexes(await runPod(node, simplePod(cores, 8))));
  t.same(indexes, [0, 0, 0]);
  t.same(gpuIndexes(await runPod(node, simplePod(10, 8))), [1]);
});

test('a container gets the device nodes, environment, mounts and annotations of its own GPU', async (t) => {
  const node = await startedNode(t);
  const given = await runPod(node, simplePod(30, 16));
  t.same(
    given.deviceNodes.map((entry) => entry.containerPath),
    ['/dev/nvidia0', '/dev/nvidiactl', '/dev/nvidia-uvm'],
  );
  t.match(given.environment, {
    LD_LIBRARY_PATH: '/usr/local/nvidia/lib64',
    NVIDIA_VISIBLE_DEVICES: /^GPU-0000000[0-9a-f]/,
  });
  t.same(
    given.mounts.map((mount) => [mount.containerPath, mount.readOnly]),
    [
      ['/etc/vcuda', true],
      ['/etc/vcuda/usage/vgpu.usage', false],
      ['/etc/vcuda/usage/vgpu.activity', false],
    ],
  );
  t.equal(given.annotations['tencent.com/vcuda-core'], '30');
  t.equal(given.annotations['tencent.com/vcuda-device'], '/dev/nvidia0');
});

for (const first of ['core', 'memory'] as const) {
  test(`the limits on disk are those of the pod when the kubelet requests ${first} first`, async (t) => {
    const second = first === 'core' ? 'memory' : 'core';
    const node = await startedNode(t, { kubelet: { order: () => [first, second] } });
    for (const [cores, blocks] of [
      [30, 16],
      [50, 20],
      [20, 28],
    ] as const) {
      const given = await runPod(node, simplePod(cores, blocks));
      const limits = await limitsOf(given);
      t.equal(given.annotations['tencent.com/vcuda-memory'], String(blocks * 268_435_456));
      t.equal(limits.allocation, basename(sliceDirectory(given)));
      t.match(limits.devices, [
        { share: cores, memoryBytes: blocks * 268_435_456, uuid: given.environment.NVIDIA_VISIBLE_DEVICES },
      ]);
    }
  });
}

for (const first of ['core', 'memory'] as const) {
  test(`without pod knowledge a part goes where its memory probably fits, ${first} first`, async (t) => {
    const second = first === 'core' ? 'memory' : 'core';
    const node = await startedNode(t, { kubelet: { order: () => [first, second] } });
    const full = gpuIndexes(await runPod(node, simplePod(70, 60)));
    const given = await runPod(node, simplePod(20, 30));
    t.notSame(gpuIndexes(given), full);
    t.match((await limitsOf(given)).devices, [{ share: 20, memoryBytes: 30 * 268_435_456 }]);
  });
}

test('one whole GPU keeps subtrees of the topology whole, and two GPUs are a linked pair', async (t) => {
  const node = await startedNode(t);
  t.same(gpuIndexes(await runPod(node, simplePod(100, 0))), [4]);
  t.same(gpuIndexes(await runPod(node, simplePod(200, 0))), [0, 1]);
  t.same(gpuIndexes(await runPod(node, simplePod(200, 8))), [2, 3]);
});

for (const [cores, blocks, why] of [
  [150, 8, /vcuda-core: 150 is more than one GPU and not a multiple of 100/],
  [30, 0, /vcuda-core: 30 is a part of a GPU and needs tencent\.com\/vcuda-memory as well/],
  [0, 8, /vcuda-memory: 8 without tencent\.com\/vcuda-core/],
  [30, 65, /65 blocks of 256 MiB, but the largest GPU of this node has 64|asked for/],
  [700, 0, /asked for 7 whole GPUs; 6 of 6 are free|Requested: 700, Available: 600/],
] as const) {
  test(`${cores} cores with ${blocks} blocks are refused with the reason`, async (t) => {
    const node = await startedNode(t);
    const wanted = simplePod(cores, blocks);
    const admission = await node.kubelet.admit(wanted);
    if (!admission.ok) {
      t.match(admission.message, why);
    } else {
      // Without an API server a missing resource shows only when the container starts.
      await t.rejects(node.kubelet.startContainer(wanted.uid, 'main'), { message: why });
      node.kubelet.remove(wanted.uid);
    }
    t.same(gpuIndexes(await runPod(node, simplePod(100, 64))), [4], 'nothing of the container remains');
  });
}

test('two containers and an init container of one pod each get what they requested', async (t) => {
  const node = await startedNode(t);
  const wanted = pod([container('a', 30, 8), container('b', 40, 12)], [container('init', 50, 16)]);
  const containers = admitted(await node.kubelet.admit(wanted));
  for (const name of ['init', 'a', 'b']) await node.kubelet.startContainer(wanted.uid, name);
  for (const [at, cores, blocks] of [
    [0, 50, 16],
    [1, 30, 8],
    [2, 40, 12],
  ] as const) {
    const given = containers[at];
    if (given === undefined) throw new Error('container missing');
    t.match((await limitsOf(given)).devices, [{ share: cores, memoryBytes: blocks * 268_435_456 }], given.name);
  }
  t.equal(new Set(containers.flatMap(gpuIndexes)).size, 1, 'the containers use the GPU of the init container');
});

test('a restarted kubelet gets its plugins back, and pods keep their allocations', async (t) => {
  const node = await startedNode(t);
  const first = await runPod(node, simplePod(60, 16));
  await node.kubelet.restart();
  await node.kubelet.ready();
  t.equal(node.kubelet.allocatable('core'), 600);
  const second = await runPod(node, simplePod(60, 16));
  t.not(gpuIndexes(second)[0], gpuIndexes(first)[0]);
});

test('a restarted agent knows its allocations, with and without its checkpoint', async (t) => {
  const node = await startedNode(t);
  const running = simplePod(60, 16);
  await runPod(node, running);
  const before = [...node.agent.allocator.state.allocations.values()].map(({ id, parts }) => ({ id, parts }));
  await node.stopAgent();
  await node.startAgent();
  t.same(
    [...node.agent.allocator.state.allocations.values()].map(({ id, parts }) => ({ id, parts })),
    before,
  );
  await node.stopAgent();
  await rm(node.config.checkpointPath, { recursive: true });
  await node.startAgent();
  t.same(
    [...node.agent.allocator.state.allocations.values()].map(({ id, parts }) => ({ id, parts })),
    before,
  );
  await node.kubelet.startContainer(running.uid, 'main');
});

test('the end of a pod frees its slice and removes its directory', async (t) => {
  const node = await startedNode(t, { seams: { graceMs: 0 } });
  const over = simplePod(100, 64);
  const given = await runPod(node, over);
  node.kubelet.remove(over.uid);
  t.same(gpuIndexes(await runPod(node, simplePod(100, 64))), gpuIndexes(given), 'the device is offered again');
  t.equal((await readdir(node.config.virtualManagerPath)).length, 1);
});

test('ids that no pod holds any more are freed without a new request', async (t) => {
  const node = await startedNode(t, { seams: { graceMs: 0 } });
  const over = simplePod(30, 8);
  await runPod(node, over);
  node.kubelet.remove(over.uid);
  // The checkpoint of the kubelet still names the pod until the next admission; a pod without GPUs causes one.
  await node.kubelet.admit(pod([container('main', 0, 0)]));
  await node.agent.allocator.reconcile();
  await node.agent.allocator.reconcile();
  t.equal(node.agent.allocator.state.allocations.size, 0);
  t.same(await readdir(node.config.virtualManagerPath), []);
});

test('a kubelet before 1.26, which sends its socket path as authority, is served', async (t) => {
  const node = await startedNode(t, { kubelet: { authority: 'socket-path' } });
  t.same(gpuIndexes(await runPod(node, simplePod(30, 8))), [0]);
});

test('a kubelet that asks for no preference gets the choice of the ledger under its own ids', async (t) => {
  const node = await startedNode(t, { gpus: cards(2), kubelet: { usesPreferences: false } });
  const indexes: number[] = [];
  for (const cores of [60, 60, 40, 40]) indexes.push(...gpuIndexes(await runPod(node, simplePod(cores, 16))));
  const load = [0, 1].map((gpu) =>
    indexes.map((index, at) => (index === gpu ? ([60, 60, 40, 40][at] ?? 0) : 0)).reduce((a, b) => a + b, 0),
  );
  t.same(load, [100, 100]);
});

test('stopping leaves no socket behind', async (t) => {
  const node = await startedNode(t);
  await node.stopAgent();
  const left = (await readdir(node.config.devicePluginPath)).filter((name) => name.endsWith('.sock'));
  t.same(left, ['kubelet.sock']);
});

test('a refused pod that is still listed as waiting does not cause the refusal of another pod of the same size', async (t) => {
  const broken = simplePod(30, 0);
  const listed = { podUid: broken.uid, container: 'main', cores: 30, memoryBlocks: 0, hint: [] };
  const node = await startedNode(t, { seams: { pods: { ...NO_PODS, pending: () => [listed] } } });
  t.match(await node.kubelet.admit(broken), { ok: false, message: /needs tencent.com\/vcuda-memory as well/ });
  t.same(gpuIndexes(await runPod(node, simplePod(30, 8))), [0]);
});

test('an agent that restarts without state, before the kubelet does, asks the kubelet before it allocates', async (t) => {
  const node = await startedNode(t, { gpus: cards(2) });
  for (const gpu of [0, 1]) t.same(gpuIndexes(await runPod(node, simplePod(60, 8))), [gpu]);
  await node.stopAgent();
  await rm(node.config.checkpointPath, { recursive: true });
  await node.kubelet.stop();
  const log = silentLog();
  const agent = await buildAgent(node.config, log);
  t.teardown(() => agent.stop());
  await agent.start();
  await node.kubelet.start();
  await node.kubelet.ready();
  t.match(await node.kubelet.admit(simplePod(50, 8)), { ok: false, message: /gpu-manager: / });
});
