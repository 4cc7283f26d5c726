import { test } from 'tap';
import { readNode } from '../../../src/kube/node.js';
import { readPod } from '../../../src/kube/pod.js';
import { knownPods } from '../../../src/cluster/explain/cluster-state.js';
import { explainIn } from '../../../src/cluster/explain/why-waiting.js';
import { waitingText } from '../../../src/cluster/explain/waiting-text.js';
import { node, pod, type NodeObject, type PodObject } from '../../scheduler/objects.js';

const NOW = Date.parse('2026-10-01T10:00:00Z');

interface Changes {
  readonly spec?: object;
  readonly metadata?: object;
  readonly status?: object;
}

function changed(object: PodObject, { spec = {}, metadata = {}, status = {} }: Changes): PodObject {
  return {
    ...object,
    metadata: { ...object.metadata, ...metadata },
    spec: { ...object.spec, ...spec },
    status: { ...object.status, ...status },
  };
}

const answer = (nodes: readonly NodeObject[], pods: readonly PodObject[], wanted: PodObject) =>
  explainIn(
    { nodes: nodes.flatMap((one) => readNode(one) ?? []), pods: pods.map(readPod).map(knownPods()) },
    readPod(wanted),
    'fragmentation',
  );

test('the nearest fit names the pods that must end, when they do, and whether they may be evicted', async (t) => {
  const nodes = [node('n0', [16]), node('n1', [16])];
  const busy = [
    pod('a', [[40, 4]], { nodeName: 'n0' }),
    pod('b', [[40, 4]], { nodeName: 'n0' }),
    changed(pod('c', [[80, 4]], { nodeName: 'n1' }), {
      spec: { activeDeadlineSeconds: 1200 },
      status: { startTime: '2026-10-01T09:45:00Z' },
    }),
  ];
  const wanted = changed(pod('train', [[100, 0]]), { spec: { priority: 10 } });
  const found = await answer(nodes, [...busy, wanted], wanted);
  t.match(found.nearest, {
    node: 'n1',
    pods: [{ name: 'c', priority: 0, endsAtMs: NOW + 5 * 60_000 }],
    endsAtMs: NOW + 5 * 60_000,
    mayPreempt: true,
  });
  const text = waitingText(found, null, NOW);
  t.match(text, /nearest fit: node n1, when \S*\/c ends \(by 2026-10-01T10:05:00\.000Z, in 5 min; .*may evict/);
  t.match(text, /\nn0 +no .*whole/);

  const humble = await answer(nodes, busy, pod('humble', [[100, 0]]));
  t.match(humble.nearest, { node: 'n1', mayPreempt: false });
  const huge = await answer(nodes, busy, pod('huge', [[400, 0]]));
  t.equal(huge.nearest, null, 'no end of a pod makes four GPUs of one');
  const fitting = await answer(nodes, [], wanted);
  t.match(fitting, { nearest: null, gang: null, nodes: [{ fits: true }, { fits: true }] });
});

test('a pod group is placed as a whole: how many of its waiting pods fit at the same time', async (t) => {
  const inGroup = (name: string, more: Changes = {}) =>
    changed(pod(name, [[60, 4]]), {
      ...more,
      metadata: {
        labels: {
          'pod-group.scheduling.sigs.k8s.io': 'train',
          'pod-group.scheduling.sigs.k8s.io/min-available': '3',
        },
      },
    });
  const members = [inGroup('m0', { spec: { nodeName: 'n0' } }), inGroup('m1'), inGroup('m2')];
  const found = await answer([node('n0', [16]), node('n1', [16])], members, members[1] as PodObject);
  t.same(found.gang, { name: 'train', minimum: 3, placed: 1, waiting: 2, fitTogether: 1 });
  t.match(
    waitingText(found, null, NOW),
    /pod group train: 1 of 3 pods have a node, it needs 3 together; 1 of the 2 waiting fit at the same time/,
  );
});

test('a pod without a request for our GPUs is told so, and what converts its request', async (t) => {
  const nodes = [node('n0', [16])];
  const web = await answer(nodes, [], { metadata: { name: 'web' }, spec: { containers: [{ name: 'web' }] } });
  t.match(waitingText(web, null, NOW), /^pod default\/web: asks for no GPU, .*tencent\.com\/vcuda-core/);
  const limits = { 'nvidia.com/gpu': 1, 'nvidia.com/gpumem': 4000 };
  const foreign = await answer(nodes, [], {
    metadata: { name: 'old' },
    spec: { containers: [{ name: 'main', resources: { limits } }] },
  });
  t.match(
    waitingText(foreign, 'Job', NOW),
    /^a pod of Job default\/old: asks for nvidia\.com\/gpu, nvidia\.com\/gpumem, which .*gpu-manager convert FILE/,
  );
  t.notMatch(waitingText(foreign, null, NOW), /nodes fit|NODE/);
  t.match(waitingText(await answer(nodes, [], pod('ours', [[30, 4]])), null, NOW), /1 of 1 nodes fit/);
});

test('of a request that is divided over several GPUs it is said what each GPU needs, and how many have it', async (t) => {
  const onTwo = { annotations: { 'tencent.com/vcuda-gpus': '2' } };
  const nodes = [node('two', [16, 16]), node('one', [32])];
  const wanted = changed(pod('wanted', [[100, 16]]), { metadata: onTwo });
  t.match((await answer(nodes, [], wanted)).nodes, [
    { node: 'two', fits: true },
    { node: 'one', fits: false, reason: /asked for 50 cores and 2048 MiB on each of 2 GPUs/ },
  ]);
  const busy = pod('busy', [[60, 4]], { nodeName: 'two' });
  const found = await answer(nodes, [busy], wanted);
  const text = waitingText(found, null, NOW);
  t.match(text, /\ntwo +no .*50 cores and 2048 MiB on each of 2 GPUs.*\(annotation tencent\.com\/vcuda-gpus: 2\)/);
  t.match(found.nearest, { node: 'two', pods: [{ name: 'busy' }] }, 'the other half is free already');
  const odd = changed(pod('odd', [[101, 16]]), { metadata: onTwo });
  t.match(waitingText(await answer(nodes, [], odd), null, NOW), /101 cannot be divided evenly over 2 GPUs/);
});
