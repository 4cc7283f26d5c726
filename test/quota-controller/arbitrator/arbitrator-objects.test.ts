import { test } from 'tap';
import { readClusterPod } from '../../../src/quota-controller/arbitrator/cluster-pod.js';
import { readDisruptionBudget } from '../../../src/kube/disruption-budget.js';
import { readNode } from '../../../src/kube/node.js';
import { readResourceQuota } from '../../../src/quota-controller/arbitrator/resource-quota.js';

const pod = (spec: object, metadata: object = {}, status: object = { phase: 'Running' }): unknown => ({
  metadata: { name: 'p', namespace: 'team', uid: 'u', ...metadata },
  spec: { containers: [{ name: 'main', resources: { limits: { cpu: '1500m', 'nvidia.com/gpu': 2 } } }], ...spec },
  status,
});

test('a pod counts with its requests, as the scheduler sums them up', (t) => {
  const read = readClusterPod(
    pod({
      nodeName: 'node1',
      priority: 7,
      initContainers: [{ name: 'init', resources: { requests: { memory: '1Gi' } } }],
      overhead: { cpu: '100m' },
    }),
  );
  t.match(read, { uid: 'u', namespace: 'team', node: 'node1', priority: 7, isLeaving: false, isUnevictable: false });
  t.same([...(read?.uses ?? [])].sort(), [
    ['cpu', 1600],
    ['memory', 2 ** 30],
    ['nvidia.com/gpu', 2],
  ]);
  t.end();
});

test('a finished or gated pod, and one deleted before its scheduling, neither uses resources nor waits', (t) => {
  t.equal(readClusterPod(pod({ nodeName: 'node1' }, {}, { phase: 'Succeeded' })), null);
  t.equal(readClusterPod(pod({ nodeName: 'node1' }, {}, { phase: 'Failed' })), null);
  t.equal(readClusterPod(pod({ schedulingGates: [{ name: 'later' }] }, {}, { phase: 'Pending' })), null);
  t.equal(readClusterPod(pod({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }, { phase: 'Pending' })), null);
  t.match(readClusterPod(pod({}, {}, { phase: 'Pending' })), { node: null });
  t.match(readClusterPod(pod({ nodeName: 'node1' }, { deletionTimestamp: '2026-01-01T00:00:00Z' })), {
    isLeaving: true,
  });
  t.end();
});

test('a pod that no node would take even if it were empty does not wait for resources', (t) => {
  const told = (message: string): unknown =>
    readClusterPod(
      pod(
        {},
        {},
        { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] },
      ),
    );
  t.equal(told("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."), null);
  t.not(
    told(
      "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector.",
    ),
    null,
  );
  t.not(told('1/3 tasks in gang unschedulable'), null, 'in the words of another scheduler');
  t.end();
});

test('pods of DaemonSets, static pods and critical pods are not evicted', (t) => {
  const owned = (kind: string): object => ({ ownerReferences: [{ kind, name: 'o', uid: 'o', controller: true }] });
  const stays = (metadata: object, spec: object = {}): boolean | undefined =>
    readClusterPod(pod({ nodeName: 'node1', ...spec }, metadata))?.isUnevictable;
  t.same(
    [
      stays(owned('DaemonSet')),
      stays(owned('Node')),
      stays({ annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      stays({}, { priority: 2_000_001_000 }),
    ],
    [true, true, true, true],
  );
  t.same([stays(owned('ReplicaSet')), stays({}, { priority: 1_000_000_000 }), stays({})], [false, false, false]);
  t.end();
});

test('a node that accepts pods counts with its allocatable resources', (t) => {
  const node = (spec: object, ready = 'True'): unknown => ({
    metadata: { name: 'n' },
    spec,
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110' }, conditions: [{ type: 'Ready', status: ready }] },
  });
  t.same(
    [...(readNode(node({}))?.allocatable ?? [])],
    [
      ['cpu', 4000],
      ['memory', 8 * 2 ** 30],
    ],
  );
  const taint = (key: string, effect: string): object => ({ taints: [{ key, effect }] });
  t.equal(readNode(node({}))?.takesPods, true);
  t.equal(readNode(node(taint('nvidia.com/gpu', 'NoSchedule')))?.takesPods, true, 'GPU nodes keep others away');
  t.equal(readNode(node({ unschedulable: true }))?.takesPods, false);
  t.equal(readNode(node({}, 'Unknown'))?.takesPods, false);
  t.equal(readNode(node(taint('node-role.kubernetes.io/control-plane', 'NoSchedule')))?.takesPods, false);
  t.end();
});

test('a disruption budget selects pods by its selector, and allows no eviction until its controller has observed it', (t) => {
  const budget = (spec: object, status: object = { disruptionsAllowed: 2 }, metadata: object = {}): unknown => ({
    metadata: { name: 'b', namespace: 'team', ...metadata },
    spec,
    status,
  });
  const selects = (selector: object, labels: Readonly<Record<string, string>>): boolean | undefined =>
    readDisruptionBudget(budget({ selector }), 'v1')?.selects(labels);
  t.match(readDisruptionBudget(budget({ selector: {} }), 'v1'), { key: 'team/b', allowed: 2 });
  t.equal(selects({ matchLabels: { app: 'a' } }, { app: 'a', more: 'b' }), true);
  t.equal(selects({ matchLabels: { app: 'a' } }, { app: 'b' }), false);
  const term = (operator: string, values?: readonly string[]): object => ({
    matchExpressions: [{ key: 'app', operator, ...(values === undefined ? {} : { values }) }],
  });
  t.same(
    [
      selects(term('In', ['a', 'b']), { app: 'b' }),
      selects(term('In', ['a']), {}),
      selects(term('NotIn', ['a']), {}),
      selects(term('NotIn', ['a']), { app: 'a' }),
    ],
    [true, false, true, false],
  );
  t.same(
    [
      selects(term('Exists'), { app: '' }),
      selects(term('Exists'), {}),
      selects(term('DoesNotExist'), {}),
      selects(term('Like', ['a']), { app: 'a' }),
    ],
    [true, false, true, false],
  );
  t.equal(selects({}, {}), true);
  t.equal(readDisruptionBudget(budget({ selector: {} }), 'v1beta1')?.selects({}), false);
  t.equal(readDisruptionBudget(budget({}), 'v1')?.selects({}), false);
  t.equal(
    readDisruptionBudget(
      budget({ selector: {} }, { disruptionsAllowed: 2, observedGeneration: 3 }, { generation: 4 }),
      'v1',
    )?.allowed,
    0,
  );
  t.equal(readDisruptionBudget(budget({ selector: {} }, {}), 'v1')?.allowed, 0);
  t.end();
});

test('a ResourceQuota counts with its requests and limits, unless it has scopes', (t) => {
  const quota = (spec: object): unknown => ({ metadata: { name: 'q', namespace: 'team' }, spec });
  const hard = { cpu: '4', 'requests.nvidia.com/gpu': '2', 'limits.cpu': '9', pods: '7', 'count/jobs.batch': '1' };
  t.same(
    [...(readResourceQuota(quota({ hard }))?.hard ?? [])],
    [
      ['cpu', 4000],
      ['nvidia.com/gpu', 2],
      ['limits.cpu', 9000],
    ],
  );
  t.equal(readResourceQuota(quota({ hard, scopes: ['BestEffort'] })), null);
  t.equal(readResourceQuota(quota({ hard, scopeSelector: { matchExpressions: [] } })), null);
  t.end();
});
