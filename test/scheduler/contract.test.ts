import { test } from 'tap';
import { node, plainNode, pod } from './objects.js';
import { FakeApi } from './fake-api.js';
import { post, start } from './scheduler.js';
import type { FilterResult, HostPriority } from '../../src/scheduler/results.js';

// Bodies as kube-scheduler sends them: ExtenderArgs is marshalled without JSON tags (1.17 and later), pods and nodes
// with theirs. 1.20 sends whole nodes unless nodeCacheCapable; 1.34 pods have fields that 1.20 did not know.

const nodes = [node('a', [16, 16]), node('b', [16]), plainNode('cpu', 0, 0)];

const pod120 = {
  metadata: {
    name: 'train-0',
    namespace: 'team',
    selfLink: '/api/v1/namespaces/team/pods/train-0',
    uid: '5e8a2c1e-1c8b-4c5a-9a06-0a8a5f0b8f11',
    resourceVersion: '4711',
    creationTimestamp: '2026-11-21T08:00:00Z',
    managedFields: [
      {
        manager: 'kubectl-create',
        operation: 'Update',
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:spec': {} },
      },
    ],
  },
  spec: {
    volumes: [{ name: 'default-token-x', secret: { secretName: 'default-token-x', defaultMode: 420 } }],
    containers: [
      {
        name: 'main',
        image: 'train:1',
        resources: {
          limits: { cpu: '4', memory: '8Gi', 'tencent.com/vcuda-core': '50', 'tencent.com/vcuda-memory': '8' },
          requests: { cpu: '4', memory: '8Gi', 'tencent.com/vcuda-core': '50', 'tencent.com/vcuda-memory': '8' },
        },
        terminationMessagePath: '/dev/termination-log',
        imagePullPolicy: 'IfNotPresent',
      },
    ],
    restartPolicy: 'Always',
    schedulerName: 'default-scheduler',
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ],
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
  },
  status: { phase: 'Pending', qosClass: 'Guaranteed' },
};

const pod134 = {
  ...pod120,
  metadata: { ...pod120.metadata, selfLink: undefined, generation: 1 },
  spec: { ...pod120.spec, schedulingGates: [], resources: null, hostUsers: false, resourceClaims: [] },
  status: {
    ...pod120.status,
    observedGeneration: 1,
    conditions: [
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', observedGeneration: 1, lastProbeTime: null },
    ],
  },
};

const list = { metadata: {}, items: nodes };

test('a 1.20 scheduler that sends whole nodes gets whole nodes back, unchanged', async (t) => {
  const { url } = await start(t, nodes);
  const result = await post<FilterResult>(`${url}/scheduler/predicates`, { Pod: pod120, Nodes: list, NodeNames: null });
  t.same(result.Nodes, { metadata: {}, items: [nodes[0], nodes[1]] });
  t.equal(result.NodeNames, null);
  t.equal(result.Error, '');
  t.same(result.FailedAndUnresolvableNodes, { cpu: 'node has no GPU to share' });
  t.same(
    result.FailedNodes,
    { cpu: 'node has no GPU to share' },
    'schedulers before 1.20 read the reason from this field',
  );
});

test('a 1.34 scheduler with nodeCacheCapable gets names back', async (t) => {
  const { url } = await start(t, nodes);
  const result = await post<FilterResult>(`${url}/scheduler/predicates`, {
    Pod: pod134,
    Nodes: null,
    NodeNames: ['cpu', 'b', 'a'],
  });
  t.same(result.NodeNames, ['b', 'a']);
  t.equal(result.Nodes, null);
  t.same(Object.keys(result), ['Nodes', 'NodeNames', 'FailedNodes', 'FailedAndUnresolvableNodes', 'Error']);
});

test('the extender reads keys in any case, as Go does', async (t) => {
  const { url } = await start(t, nodes);
  for (const body of [
    { pod: pod120, nodenames: ['a'] },
    { POD: pod120, NODENAMES: ['a'] },
    { Pod: pod120, nodeNames: ['a'] },
  ]) {
    const result = await post<FilterResult>(`${url}/scheduler/predicates`, body);
    t.same(result.NodeNames, ['a'], Object.keys(body).join());
  }
  const whole = await post<FilterResult>(`${url}/scheduler/predicates`, { pod: pod120, nodes: { Items: nodes } });
  t.equal((whole.Nodes as unknown as { Items: unknown[] }).Items.length, 2, 'the node is returned as it was sent');
});

test('a pod without GPUs passes on all nodes', async (t) => {
  const { url } = await start(t, nodes);
  const result = await post<FilterResult>(`${url}/scheduler/predicates`, {
    Pod: pod('web', [null]),
    NodeNames: ['a', 'cpu', 'unheard-of'],
  });
  t.same(result.NodeNames, ['a', 'cpu', 'unheard-of']);
  t.same(result.FailedNodes, {});
});

test('the extender answers a malformed body with Error, as the original does', async (t) => {
  const { url } = await start(t, nodes);
  for (const body of [
    '',
    '{',
    '[]',
    'null',
    '{"Pod":{}}',
    '{"NodeNames":["a"]}',
    '{"Pod":{},"NodeNames":[1]}',
    '{"Pod":{},"Nodes":7}',
    '{"Pod":{},"Nodes":{"items":[3]}}',
  ]) {
    const filtered = await post<FilterResult>(`${url}/scheduler/predicates`, body);
    t.not(filtered.Error, '', body);
    t.equal(filtered.NodeNames, null);
  }
  t.match(await post(`${url}/scheduler/bind`, { PodName: 'p' }), { Error: 'PodNamespace is missing' });
  await t.rejects(post(`${url}/scheduler/prioritize`, '{'), { message: /^400: the body is not JSON/ });
  await t.rejects(post(`${url}/scheduler/preempt`, { Pod: pod120 }), { message: /^400: neither/ });
});

test('prioritize scores every requested node, at most 10', async (t) => {
  const { url } = await start(t, nodes, { policy: 'binpack' });
  const scores = await post<HostPriority[]>(`${url}/scheduler/prioritize`, {
    Pod: pod134,
    Nodes: null,
    NodeNames: ['a', 'b', 'cpu', 'unheard-of'],
  });
  t.same(scores, [
    { Host: 'a', Score: 0 },
    { Host: 'b', Score: 10 },
    { Host: 'cpu', Score: 0 },
    { Host: 'unheard-of', Score: 0 },
  ]);
  const whole = await post<HostPriority[]>(`${url}/scheduler/prioritize`, { Pod: pod120, Nodes: list });
  t.same(
    whole.map(({ Host }) => Host),
    ['a', 'b', 'cpu'],
  );
});

test('the server answers version, probes and metrics, and refuses other paths and methods', async (t) => {
  const { url } = await start(t, nodes);
  const get = async (path: string): Promise<[number, string]> => {
    const response = await fetch(`${url}${path}`);
    return [response.status, await response.text()];
  };
  t.same(await get('/version'), [200, '1.2.3\n']);
  t.same(await get('/healthz'), [200, 'ok\n']);
  t.same(await get('/readyz'), [200, 'ok\n']);
  t.same((await get('/scheduler/predicates'))[0], 405);
  t.same((await get('/scheduler/priorities'))[0], 404);
  t.equal((await fetch(`${url}/version`, { method: 'POST' })).status, 405);
  await post(`${url}/scheduler/predicates`, { Pod: pod120, NodeNames: ['a', 'cpu'] });
  const [status, metrics] = await get('/metrics');
  t.equal(status, 200);
  t.match(metrics, 'gpu_extender_requests_total{verb="filter",result="ok"} 1');
  t.match(metrics, 'gpu_extender_refused_nodes_total{reason="no-gpu"} 1');
  t.match(metrics, 'gpu_extender_gpus 3');
  t.match(metrics, 'gpu_extender_open_claims 1');
});

test('before the caches of nodes and pods are synced, every verb refuses in its own format', async (t) => {
  const api = new FakeApi();
  api.answersLists = false;
  const { url } = await start(t, nodes, {}, api);
  const reason = 'nodes and pods are not listed yet';
  t.match(await post(`${url}/scheduler/predicates`, { Pod: pod120, NodeNames: ['a'] }), {
    Error: reason,
    NodeNames: null,
  });
  t.match(await post(`${url}/scheduler/bind`, {}), { Error: reason });
  await t.rejects(post(`${url}/scheduler/prioritize`, { Pod: pod120, NodeNames: ['a'] }), {
    message: `503: ${reason}`,
  });
  t.equal((await fetch(`${url}/readyz`)).status, 503);
  t.equal((await fetch(`${url}/healthz`)).status, 200);
  api.list();
  t.match(await post(`${url}/scheduler/predicates`, { Pod: pod120, NodeNames: ['a'] }), {
    Error: '',
    NodeNames: ['a'],
  });
  t.equal((await fetch(`${url}/readyz`)).status, 200);
});
