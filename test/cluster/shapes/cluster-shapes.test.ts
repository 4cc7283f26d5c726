import { test } from 'tap';
import { nodeObject, podObject } from '../../console/cluster-objects.js';
import { generator } from '../../generator.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';
import { readPod } from '../../../src/kube/pod.js';
import { clusterShapes, readClusterNode } from '../../../src/cluster/shapes/cluster-shapes.js';
import { readNode } from '../../../src/kube/node.js';
import { fitsOnGpus, readGpuHolding } from '../../../src/cluster/shapes/gpu-holding.js';
import { shapedPod } from '../../../src/cluster/shapes/shaped-pod.js';

const GIB = 2 ** 30;
const inventory = {
  gpus: [0, 1].map((index) => ({
    gpu: { index, minor: index, uuid: `u${index}`, pciBusId: '', model: 'T4', memoryBytes: 16 * GIB, numaNode: null },
    healthy: true,
    reason: '',
    foreign: false,
    freeCores: 0,
    freeMemoryBytes: 0,
  })),
  topology: uniformTopology(2),
};

const holding = (cores: number, blocks: number, gpus: string | null, more: Record<string, string> = {}) =>
  readGpuHolding(
    readPod({
      metadata: {
        uid: 'u',
        annotations: {
          ...more,
          ...(gpus === null ? {} : { 'tencent.com/predicate-gpu-idx-0': gpus, 'tencent.com/gpu-assigned': 'true' }),
        },
      },
      spec: {
        containers: [
          {
            name: 'main',
            resources: { limits: { 'tencent.com/vcuda-core': cores, 'tencent.com/vcuda-memory': blocks } },
          },
        ],
      },
    }),
  );

test('a part of a GPU fits if one GPU has room for it, not if only the sum has', (t) => {
  const halves = [holding(60, 8, '0'), holding(60, 8, '1')];
  t.equal(fitsOnGpus(inventory, holding(50, 8, null), halves), false);
  t.equal(fitsOnGpus(inventory, holding(40, 8, null), halves), true);
  t.equal(fitsOnGpus(inventory, holding(50, 8, null), [halves[0] ?? holding(0, 0, null)]), true);
  t.equal(fitsOnGpus(inventory, holding(40, 60, null), halves), false, 'memory');
  t.end();
});

test('parts of several GPUs need room on as many, and take it there', (t) => {
  const onTwo = { 'tencent.com/vcuda-gpus': '2' };
  const both = holding(100, 32, '0,1', onTwo);
  t.equal(fitsOnGpus(inventory, holding(100, 32, null, onTwo), [both]), true, 'the other halves');
  t.equal(fitsOnGpus(inventory, holding(102, 32, null, onTwo), [both]), false);
  t.equal(fitsOnGpus(inventory, holding(50, 8, null), [both]), true);
  t.equal(fitsOnGpus(inventory, holding(100, 0, null), [both]), false);
  t.equal(
    fitsOnGpus(inventory, holding(60, 8, null, onTwo), [holding(80, 8, '0')]),
    false,
    'one of the GPUs is too full',
  );
  t.end();
});

test('whole GPUs must be free, and pods on unknown GPUs may be on any GPU', (t) => {
  t.equal(fitsOnGpus(inventory, holding(200, 0, null), []), true);
  t.equal(fitsOnGpus(inventory, holding(200, 0, null), [holding(1, 1, '1')]), false);
  t.equal(fitsOnGpus(inventory, holding(100, 0, null), [holding(100, 0, '0')]), true);
  t.equal(fitsOnGpus(inventory, holding(1, 1, null), [holding(1, 1, null)]), false);
  t.equal(fitsOnGpus(inventory, holding(0, 0, null), [holding(1, 1, null)]), true, 'it asks for no GPU');
  t.end();
});

test('free GPUs in pieces that are too small block a request that would fit by the sums', async (t) => {
  const node = readNode({
    metadata: { name: 'n1' },
    status: {
      allocatable: { pods: '10', 'tencent.com/vcuda-core': '200', 'tencent.com/vcuda-memory': '128' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  });
  const pod = (name: string, cores: number, gpu: string | null) =>
    shapedPod(
      readPod({
        metadata: {
          ...{ name, uid: name, namespace: 'a' },
          annotations:
            gpu === null ? {} : { 'tencent.com/predicate-gpu-idx-0': gpu, 'tencent.com/gpu-assigned': 'true' },
        },
        spec: {
          ...(gpu === null ? {} : { nodeName: 'n1' }),
          containers: [
            { name: 'main', resources: { limits: { 'tencent.com/vcuda-core': cores, 'tencent.com/vcuda-memory': 8 } } },
          ],
        },
        status: { phase: gpu === null ? 'Pending' : 'Running' },
      }),
    );
  const pods = [pod('p1', 60, '0'), pod('p2', 60, '1'), pod('p3', 50, null), pod('p4', 20, null)];
  const found = await clusterShapes(
    node === null ? [] : [{ ...node, inventory }],
    pods.flatMap((each) => each ?? []),
    2,
  );
  t.match(
    found.map(({ shape, fits, blockedBy }) => [shape.name, fits, [...blockedBy]]),
    [
      ['tencent.com/vcuda-core=20 tencent.com/vcuda-memory=8', 4, [['tencent.com/vcuda-core', 1]]],
      ['tencent.com/vcuda-core=50 tencent.com/vcuda-memory=8', 0, [['placement', 1]]],
    ],
    'shapes of waiting pods come first',
  );
  const [unknown] = await clusterShapes(
    node === null ? [] : [{ ...node, inventory: null }],
    [pods[2]].flatMap((p) => p ?? []),
    9,
  );
  t.equal(unknown?.fits, 4, 'without an agent only the sums are known; a pod without a node takes nothing');
});

test('of many nodes, equal ones too, the numbers are those of each node alone', async (t) => {
  const random = generator(7);
  const below = (limit: number): number => Math.floor(random() * limit);
  const nodes = Array.from({ length: 24 }, (_, at) =>
    readClusterNode(nodeObject(`n${at}`, { gpus: 1 + below(2), unhealthy: below(4) === 0 ? { 0: 'broken' } : {} })),
  ).flatMap((node) => node ?? []);
  const pods = Array.from({ length: 60 }, (_, at) =>
    podObject(`p${at}`, {
      cores: [20, 50, 60, 100][below(4)],
      blocks: [8, 80][below(2)],
      ...(below(4) === 0 ? {} : { node: `n${below(24)}`, ...(below(9) === 0 ? {} : { gpus: [0] }) }),
    }),
  ).flatMap((pod) => shapedPod(readPod(pod)) ?? []);
  const alone = await Promise.all(nodes.map((node) => clusterShapes([node], pods, 20)));
  for (const [at, { shape, fits, where, blockedBy }] of (await clusterShapes(nodes, pods, 20)).entries()) {
    const each = alone.flatMap((shapes) => shapes[at] ?? []);
    t.equal(
      fits,
      each.reduce((sum, one) => sum + one.fits, 0),
      shape.name,
    );
    t.same(
      [...where],
      each.flatMap((one) => [...one.where]),
    );
    const lacks = each.flatMap((one) => [...one.blockedBy]);
    for (const [key, places] of blockedBy) t.equal(places, lacks.filter(([name]) => name === key).length, key);
  }
});

test('other work of the program waits for few nodes only, not for all', async (t) => {
  const nodes = Array.from({ length: 400 }, (_, at) => readClusterNode(nodeObject(`n${at}`, { gpus: 8 }))).flatMap(
    (node) => node ?? [],
  );
  const pods = Array.from({ length: 2_000 }, (_, at) =>
    podObject(`p${at}`, {
      cores: 10 + 10 * (at % 5),
      blocks: 1 + (at % 7),
      ...(at % 9 === 0 ? {} : { node: `n${at % 399}`, gpus: [at % 8] }),
    }),
  ).flatMap((pod) => shapedPod(readPod(pod)) ?? []);
  let turns = 0;
  let counts = true;
  const next = (): void => {
    turns += 1;
    if (counts) setImmediate(next);
  };
  setImmediate(next);
  await clusterShapes(nodes, pods, 20);
  counts = false;
  t.ok(turns > 2, `${turns} turns of the event loop`);
});
