import fc from 'fast-check';
import { test } from 'tap';
import { readNodePod } from '../../../src/agent/api-server/pod-reader.js';
import { podObject, type PodSpec } from '../../kube/setting.js';

const read = (spec: PodSpec) => {
  const pod = readNodePod(podObject({ uid: 'u1', ...spec }));
  if (pod === null) throw new Error('no pod');
  return pod;
};

test('the label of its quota group is kept', (t) => {
  t.equal(read({ name: 'a', labels: { 'biz.group.resource.quota': 'vision' } }).quotaGroup, 'vision');
  t.equal(read({ name: 'a', labels: { 'biz.group.resource.quota': '' } }).quotaGroup, null);
  t.equal(read({ name: 'a' }).quotaGroup, null);
  t.end();
});

test('a pod is reduced to the fields that the agent reads', (t) => {
  const pod = read({
    name: 'train',
    namespace: 'team',
    createdAt: '2026-11-21T10:00:00Z',
    owner: { kind: 'ReplicaSet', name: 'train-5d' },
    annotations: {
      'tencent.com/gpu-assigned': 'false',
      clusterName: 'c1',
      'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(10_000),
    },
    initContainers: [{ name: 'fetch', cores: 10, memory: 4 }],
    containers: [{ name: 'main', cores: 150, memory: '1k', env: { PATH: '/bin', SUBMITTER: 'ada' } }, { name: 'log' }],
    status: {
      phase: 'Running',
      startTime: '2026-11-21T10:00:05Z',
      containerStatuses: [
        { name: 'log', state: { waiting: { reason: 'X', message: 'later' } } },
        { name: 'main', state: { running: { startedAt: 'now' } } },
      ],
    },
  });
  t.match(pod, {
    uid: 'u1',
    objectUid: 'u1',
    namespace: 'team',
    name: 'train',
    node: 'node1',
    phase: 'Running',
    createdAt: Date.UTC(2026, 10, 21, 10),
    admittedAt: Date.UTC(2026, 10, 21, 10, 0, 5),
    deletedAt: null,
    controller: { kind: 'ReplicaSet', name: 'train-5d' },
    mirror: false,
    submitter: 'ada',
  });
  t.same(
    [...pod.annotations],
    [
      ['tencent.com/gpu-assigned', 'false'],
      ['clusterName', 'c1'],
    ],
  );
  t.same(pod.initContainers, [
    { name: 'fetch', cores: 10, memoryBlocks: 4, running: false, terminated: false, waiting: '', compat32: false },
  ]);
  t.same(pod.containers, [
    { name: 'main', cores: 150, memoryBlocks: 1_000, running: true, terminated: false, waiting: '', compat32: false },
    { name: 'log', cores: 0, memoryBlocks: 0, running: false, terminated: false, waiting: 'later', compat32: false },
  ]);
  t.end();
});

test('an owner that is not the controller does not re-create the pod', (t) => {
  t.equal(read({ name: 'a', owner: { kind: 'ConfigMap', name: 'x', controller: false } }).controller, null);
  t.equal(read({ name: 'a' }).controller, null);
  t.end();
});

test('a static pod is known by the UID that the kubelet gave it', (t) => {
  const pod = read({
    name: 'static',
    annotations: { 'kubernetes.io/config.hash': 'hash', 'kubernetes.io/config.mirror': 'hash' },
  });
  t.match(pod, { uid: 'hash', objectUid: 'u1', mirror: true });
  t.equal(
    read({ name: 'a', annotations: { 'kubernetes.io/config.hash': 'forged' } }).uid,
    'u1',
    'the hash annotation alone does not make a static pod',
  );
  t.end();
});

test('the SUBMITTER variable counts in the first container only, and may be empty', (t) => {
  t.equal(read({ name: 'a', containers: [{ name: 'x' }, { name: 'y', env: { SUBMITTER: 'eve' } }] }).submitter, null);
  t.equal(read({ name: 'a', containers: [{ name: 'x', env: { SUBMITTER: '' } }] }).submitter, '');
  t.end();
});

test('limits that are not whole numbers count as absent', (t) => {
  for (const cores of ['0.5', '-3', 'many', ''])
    t.equal(read({ name: 'a', containers: [{ name: 'x', cores }] }).containers[0]?.cores, 0, cores);
  t.end();
});

test('values that are not pods are refused', (t) => {
  for (const object of [
    null,
    undefined,
    7,
    'pod',
    [],
    {},
    { metadata: null },
    { metadata: { name: 'a' } },
    { metadata: { uid: 'a' } },
  ])
    t.equal(readNodePod(object), null);
  t.end();
});

test('invalid values in any field are read without harm', (t) => {
  const field = fc.constantFrom(
    'metadata',
    'spec',
    'status',
    'annotations',
    'containers',
    'initContainers',
    'containerStatuses',
    'ownerReferences',
    'state',
    'resources',
    'limits',
    'env',
    'phase',
    'name',
    'uid',
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 6 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(field, tie('tree'), { maxKeys: 8 }),
    ),
  }));
  const object = fc.record({
    metadata: fc.record({ uid: fc.constant('u'), name: fc.constant('n'), annotations: tree, ownerReferences: tree }),
    spec: tree,
    status: tree,
  });
  const harmless = fc.property(object, (value) => {
    const pod = readNodePod(value);
    return (
      pod !== null &&
      [...pod.initContainers, ...pod.containers].every(
        (container) => container.cores >= 0 && container.memoryBlocks >= 0,
      )
    );
  });
  t.doesNotThrow(() => fc.assert(harmless, { numRuns: 500 }));
  t.end();
});
