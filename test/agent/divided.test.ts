import { test } from 'tap';
import { eventually } from '../harness/eventually.js';
import { startedCluster } from './cluster.js';
import { admitted, gpuIndexes, limitsOf, only, runPod } from './node.js';
import { container, pod, simplePod } from './pods.js';

const BLOCK = 268_435_456;
const ON_TWO = { 'tencent.com/vcuda-gpus': '2' };
const gpus = JSON.stringify({ gpus: [{ model: 'Tesla T4' }, { model: 'Tesla T4' }] });

test('a container with parts of two GPUs has a limit on each, which annotations lower and restarts keep', async (t) => {
  const cluster = await startedCluster(t, { gpus });
  const { node, server } = cluster;
  const wanted = simplePod(100, 32);
  cluster.submit(wanted, { annotations: ON_TWO });
  await cluster.known(wanted);
  const given = only(admitted(await cluster.admit(wanted)));
  await node.kubelet.startContainer(wanted.uid, 'main');
  t.same(gpuIndexes(given), [0, 1]);
  const [half, less] = [
    { share: 50, memoryBytes: 16 * BLOCK },
    { share: 20, memoryBytes: 8 * BLOCK },
  ];
  t.match((await limitsOf(given)).devices, [half, half]);
  server.edit('pods', wanted.namespace, wanted.name, (object) => ({
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { ...ON_TWO, 'tencent.com/vcuda-share-limit': '20', 'tencent.com/vcuda-memory-limit': '16' },
    },
  }));
  await eventually(async () => (await limitsOf(given)).devices[0]?.share === 20);
  t.match((await limitsOf(given)).devices, [less, less], 'the share is of each GPU, the memory is the sum');
  await node.stopAgent();
  await node.startAgent();
  t.match((await limitsOf(given)).devices, [less, less]);
  const beside = await runPod(node, simplePod(50, 4));
  t.match((await limitsOf(beside)).devices, [{ share: 50 }], 'half of a GPU is left');
  const document = await (await fetch(`http://127.0.0.1:${node.agent.httpPort()}/api/node`)).json();
  t.match(document, {
    gpus: [{ allocatedCores: Number }, { allocatedCores: Number }],
    allocations: [
      {
        cores: 100,
        slices: [
          { allocatedCores: 50, share: 20 },
          { allocatedCores: 50, share: 20 },
        ],
      },
      { cores: 50, slices: [{ share: 50 }] },
    ],
  });
});

test('without an extender the agent divides a request, tells it, and refuses what cannot be divided', async (t) => {
  const cluster = await startedCluster(t, { gpus });
  const admit = async (cores: number, blocks: number, annotations: Readonly<Record<string, string>>) => {
    const wanted = simplePod(cores, blocks);
    cluster.submit(wanted, { annotations });
    await cluster.known(wanted);
    return { wanted, admission: await cluster.admit(wanted) };
  };
  const { wanted, admission } = await admit(60, 8, ON_TWO);
  t.same(gpuIndexes(only(admitted(admission))), [0, 1]);
  await cluster.node.kubelet.startContainer(wanted.uid, 'main');
  t.match(await eventually(() => cluster.eventsOn(wanted)[0]), {
    reason: 'GPUAssigned',
    message: /GPU 0, 1 of node .*: 30 of 100 cores of each, 2048 MiB/,
  });
  t.equal(await eventually(() => cluster.annotation(wanted, 'predicate-gpu-idx-0')), '0,1');
  t.match((await admit(100, 31, ON_TWO)).admission, { ok: false, message: /31 cannot be divided evenly over 2 GPUs/ });
  t.match((await admit(60, 6, { 'tencent.com/vcuda-gpus': '3' })).admission, {
    ok: false,
    message: /20 cores and 512 MiB on each of 3 GPUs; 2 of 2 have room \(0, 1\).*vcuda-gpus: 3/,
  });
  t.match((await admit(60, 8, { 'tencent.com/vcuda-gpus': 'two' })).admission, {
    ok: false,
    message: /vcuda-gpus is "two"; it can be a number of GPUs from 1 to 16/,
  });
});

test('an init container and the containers after it use the same halves, and a whole pod is divided alike', async (t) => {
  const cluster = await startedCluster(t, { gpus });
  const wanted = pod([container('main', 100, 32), container('side', 40, 8)], [container('init', 60, 16)]);
  cluster.submit(wanted, { annotations: ON_TWO });
  await cluster.known(wanted);
  admitted(await cluster.admit(wanted));
  const { allocations } = cluster.node.agent.allocator.state;
  const cores = [...allocations.values()].map(({ parts }) => parts.map(({ coreIds }) => coreIds.length));
  t.same(
    cores.toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0)),
    [
      [20, 20],
      [30, 30],
      [50, 50],
    ],
  );
  const used = await runPod(cluster.node, simplePod(30, 4));
  t.match((await limitsOf(used)).devices, [{ share: 30 }], '70 cores of each are taken: the init container added none');
});

test('each container of a pod may have another number of GPUs', async (t) => {
  const cluster = await startedCluster(t, { gpus });
  const wanted = pod([container('main', 100, 32), container('side', 40, 8)]);
  cluster.submit(wanted, { annotations: { 'tencent.com/vcuda-gpus': 'main=2' } });
  await cluster.known(wanted);
  admitted(await cluster.admit(wanted));
  for (const name of ['main', 'side']) await cluster.node.kubelet.startContainer(wanted.uid, name);
  const { allocations } = cluster.node.agent.allocator.state;
  const cores = [...allocations.values()].map(({ parts }) => parts.map(({ coreIds }) => coreIds.length));
  t.same(
    cores.toSorted((a, b) => a.length - b.length),
    [[40], [50, 50]],
  );
});

test('a pod that the agent did not know in time does not start with fewer GPUs than it asks for', async (t) => {
  const cluster = await startedCluster(t, { gpus });
  const wanted = simplePod(100, 32);
  admitted(await cluster.node.kubelet.admit(wanted));
  cluster.submit(wanted, { annotations: ON_TWO });
  await cluster.known(wanted);
  await t.rejects(
    cluster.node.kubelet.startContainer(wanted.uid, 'main'),
    /got 1 of 2 GPUs \(annotation tencent.com\/vcuda-gpus: 2\).*delete this pod/,
  );
});
