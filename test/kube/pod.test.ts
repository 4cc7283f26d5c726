import { test } from 'tap';
import { readNodePod } from '../../src/agent/api-server/pod-reader.js';
import { readPodRequest } from '../../src/kube/pod-request.js';
import { readPod } from '../../src/kube/pod.js';
import { readClusterPod } from '../../src/quota-controller/arbitrator/cluster-pod.js';
import { readPodObject } from '../../src/quota-controller/workloads/pod-object.js';
import { viewPod } from '../../src/cluster/pod-view.js';

type Fields = Readonly<Record<string, unknown>>;

const container = (requests: Fields, rest: Fields = {}): Fields => ({ name: 'c', resources: { requests }, ...rest });
const pod = (spec: Fields = {}, metadata: Fields = {}, status: Fields = {}): Fields => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u', ...metadata },
  spec: { nodeName: 'n1', containers: [container({ cpu: '1', memory: '1Gi' })], ...spec },
  status,
});

/** Millicores of CPU that each program counts for a pod. */
const cpuOf = (object: unknown): readonly number[] => [
  viewPod(readPod(object)).demand.cpuMilli,
  Number(readPodObject(object)?.needs('')?.requests['cpu'] ?? 0),
  readClusterPod(object)?.uses.get('cpu') ?? 0,
];

const resized = (asked: string, held: string, more: Fields = {}): Fields =>
  pod(
    { containers: [container({ cpu: asked })] },
    {},
    {
      containerStatuses: [{ name: 'c', resources: { requests: { cpu: held } }, allocatedResources: { cpu: held } }],
      ...more,
    },
  );

for (const [what, object, milli] of [
  ['the sum of containers', pod({ containers: [container({ cpu: '1' }), container({ cpu: '500m' })] }), 1500],
  ['a limit without a request', pod({ containers: [{ name: 'c', resources: { limits: { cpu: '2' } } }] }), 2000],
  ['an init container that requests more', pod({ initContainers: [container({ cpu: '3' })] }), 3000],
  [
    'a sidecar beside a later init container',
    pod({ initContainers: [container({ cpu: '1' }, { restartPolicy: 'Always' }), container({ cpu: '4' })] }),
    5000,
  ],
  ['overhead', pod({ overhead: { cpu: '250m' } }), 1250],
  ['requests of the whole pod', pod({ resources: { requests: { cpu: '4' } } }), 4000],
  [
    'a limit of the whole pod without requests',
    pod({ containers: [{ name: 'c' }], resources: { limits: { cpu: '2' } } }),
    2000,
  ],
  ['a limit of the whole pod beside requests', pod({ resources: { limits: { cpu: '2' } } }), 1000],
  ['a pending resize to less', resized('1', '2'), 2000],
  ['a pending resize to more', resized('3', '2'), 3000],
  [
    'an infeasible resize',
    resized('64', '2', { conditions: [{ type: 'PodResizePending', status: 'True', reason: 'Infeasible' }] }),
    2000,
  ],
  ['an infeasible resize of a server before 1.33', resized('64', '2', { resize: 'Infeasible' }), 2000],
  [
    'an init container, which is never resized',
    pod(
      { initContainers: [container({ cpu: '2' })] },
      {},
      { initContainerStatuses: [{ name: 'c', resources: { requests: { cpu: '9' } } }] },
    ),
    2000,
  ],
] as const) {
  test(`every program counts the same for ${what}`, (t) => {
    t.same(cpuOf(object), [milli, milli, milli]);
    t.end();
  });
}

test('an unreadable quantity is an error, and nothing is counted for it', (t) => {
  const object = pod({ containers: [container({ cpu: 'x' }), container({ cpu: '1' })] });
  t.same(cpuOf(object), [0, 0, 0]);
  t.match(viewPod(readPod(object)).brokenRule, /containers\[0\].*"x" is not a quantity/);
  t.end();
});

test('every program agrees on the node of a pod and on whether the pod stays', (t) => {
  const facts = (object: unknown) => {
    const [agent, view, cluster] = [readNodePod(object), viewPod(readPod(object)), readClusterPod(object)];
    return {
      node: [agent?.node === '' ? null : agent?.node, view.nodeName, cluster?.node],
      leaving: [agent?.deletedAt !== null, view.leaving, cluster?.isLeaving],
      priority: [view.priority, cluster?.priority],
      namespace: [agent?.namespace, view.namespace, readPodObject(object)?.namespace],
    };
  };
  t.match(facts(pod()), { node: ['n1', 'n1', 'n1'], leaving: [false, false, false], priority: [0, 0] });
  t.match(facts(pod({ nodeName: '' })), { node: [null, null, null] });
  t.match(facts(pod({}, { deletionTimestamp: null })), { leaving: [false, false, false] });
  t.match(facts(pod({}, { deletionTimestamp: '2026-01-01T00:00:00Z' })), { leaving: [true, true, true] });
  t.match(facts(pod({ priority: null })), { priority: [0, 0] });
  t.match(facts(pod({}, { namespace: undefined })), { namespace: ['default', 'default', 'default'] });
  t.equal(readPodObject(pod({ nodeName: '' }, { creationTimestamp: '2026-01-01T00:00:00Z' }))?.startedAt, null);
  t.end();
});

test('an owner counts if it controls the pod, and an invalid list of owners has no effect', (t) => {
  const owners = [
    { kind: 'ConfigMap', name: 'x', uid: '1' },
    { kind: 'ReplicaSet', name: 'r', uid: '2', controller: true },
  ];
  const owned = pod({}, { ownerReferences: owners });
  t.match(readNodePod(owned)?.controller, { kind: 'ReplicaSet', name: 'r' });
  t.equal(readPodObject(owned)?.ownerUid, '2');
  for (const ownerReferences of [{}, null, 'x', [null]]) {
    t.equal(readPodObject(pod({}, { ownerReferences }))?.ownerUid, 'u');
    t.equal(readClusterPod(pod({}, { ownerReferences }))?.isUnevictable, false);
  }
  t.end();
});

test('of a pod only what it requests is kept for its hours', (t) => {
  const resources = { requests: { cpu: '1' } };
  const given = { name: 'a', image: 'i', env: [{ name: 'A', value: 'a' }], resources };
  const { spec, annotations } = readPodRequest(
    pod({ containers: [given] }, { annotations: { other: 'x', 'tencent.com/vcuda-core-resize': '30' } }),
  );
  t.strictSame(JSON.parse(JSON.stringify(spec)), { containers: [{ name: 'a', resources }] });
  t.strictSame(annotations, { 'tencent.com/vcuda-core-resize': '30' });
  t.end();
});
