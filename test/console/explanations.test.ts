import { test } from 'tap';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { eventually } from '../harness/eventually.js';
import { claimingPod, claimObject, eventObject, serveClaims } from './quota-objects.js';
import { nodeObject, podObject } from './cluster-objects.js';
import { runningConsole, type RunningConsole } from './fixture.js';

interface Told {
  readonly ok: boolean;
  readonly explanation: Readonly<Record<string, unknown>>;
}

const explain = async (console: RunningConsole, uid: string, user?: string): Promise<Told> =>
  (await (await console.get(`/api/explain?pod=${uid}`, user)).json()) as Told;

function seed(server: ApiServer): void {
  serveClaims(server);
  server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
  server.seed('nodes', nodeObject('gpu-node-2', { gpus: 2, isCordoned: true }));
  for (const namespace of ['research', 'vision'])
    server.seed('pods', podObject('train', { namespace, node: 'gpu-node-1', gpus: [0], cores: 45 }));
  for (const namespace of ['research', 'vision'])
    server.seed('pods', podObject('late', { namespace, cores: 100, blocks: 0, unscheduled: '0/2 nodes' }));
}

test('a waiting pod is explained as kubectl gpu explain does, and each reader sees what it may list', async (t) => {
  const console = await runningConsole(t, seed);
  t.match(await explain(console, 'research-late'), {
    ok: true,
    explanation: {
      total: 2,
      fit: 0,
      nodes: [
        { node: 'gpu-node-1', fits: false, reason: /whole/ },
        { node: 'gpu-node-2', fits: false, reason: 'the node is cordoned' },
      ],
      nearest: {
        node: 'gpu-node-1',
        mayPreempt: false,
        pods: [{ name: 'train' }, { name: 'train' }],
        others: 0,
      },
    },
  });
  const forLead = await explain(console, 'research-late', 'lead');
  t.match(forLead.explanation, { nearest: { pods: [{ namespace: 'research', name: 'train' }], others: 1 } });
  t.notMatch(JSON.stringify(forLead), /vision/, 'no name of a namespace whose pods the reader may not list');
  const forResearcher = await explain(console, 'research-late', 'researcher');
  t.notOk('nodes' in forResearcher.explanation || 'nearest' in forResearcher.explanation, 'nodes are not named');
  t.match(forResearcher.explanation, { total: 2, fit: 0 });
  t.equal((await console.get('/api/explain?pod=vision-late', 'lead')).status, 404, 'pods of others do not exist');
  t.equal((await console.get('/api/explain?pod=nothing')).status, 404);
});

test('all readers of ten seconds get one reading of the cluster, and a failure is told as a reason', async (t) => {
  const console = await runningConsole(t, seed);
  const lists = () =>
    console.server.requests.filter((one) => one.verb === 'list' && one.resource === 'pods' && one.namespace === null)
      .length;
  const before = lists();
  await Promise.all([1, 2, 3].map(() => explain(console, 'research-late')));
  await explain(console, 'vision-late');
  t.equal(lists() - before, 1);

  console.server.seed('pods', claimingPod(podObject('user'), 'big'));
  console.server.seed('resourceclaims', claimObject('big', { cores: 100 }));
  await eventually(async () => (await console.get('/api/explain?pod=default-user')).ok, 'the pod is known');
  console.server.seed('pods', claimingPod(podObject('other'), 'big'));
  console.server.inject(
    { resource: 'resourceclaims', verb: 'get' },
    { do: 'answer', code: 403, reason: 'Forbidden' },
    1,
  );
  await eventually(async () => (await console.get('/api/explain?pod=default-other')).ok, 'the pod is known');
  t.match((await explain(console, 'default-user')).explanation, {
    fit: 0,
    nodes: [{ reason: 'the node has no GPU to share' }, { reason: /cordoned/ }],
  });
  t.match((await explain(console, 'default-other')).explanation, { total: 2, fit: 0 }, 'a failure is not remembered');
});

test('a pod that asks another project for GPUs is listed with how to convert it', async (t) => {
  const console = await runningConsole(t, (server) => {
    seed(server);
    server.seed('pods', {
      metadata: { name: 'trainer', namespace: 'research', uid: 'trainer' },
      spec: { containers: [{ name: 'main', resources: { limits: { 'nvidia.com/gpu': '2' } } }] },
      status: { phase: 'Pending' },
    });
  });
  const { rows } = (await (await console.get('/api/cluster')).json()) as {
    readonly rows: { readonly pods: readonly { readonly uid: string }[] };
  };
  t.match(
    rows.pods.find(({ uid }) => uid === 'trainer'),
    { state: 'waiting', foreign: ['2 nvidia.com/gpu'] },
  );
  t.match((await explain(console, 'trainer')).explanation, { noGpu: /nvidia\.com\/gpu.*gpu-manager convert FILE/ });
});

test('workloads whose pods the API server refuses are among the events, if the refusal is of this project', async (t) => {
  const refused = (name: string, message: string) => ({
    ...eventObject(name, 'FailedCreate', message, { component: 'replicaset-controller', type: 'Warning' }),
    involvedObject: { kind: 'ReplicaSet', namespace: 'default', name: 'serve-1' },
  });
  const console = await runningConsole(t, (server) => {
    seed(server);
    server.seed('events', refused('a', 'admission webhook "gpu-manager-quota" denied the request: no room'));
    server.seed('events', refused('b', 'admission webhook "images.example.com" denied the request: no signature'));
  });
  const events = await eventually(async () => {
    const { rows } = (await (await console.get('/api/cluster')).json()) as {
      readonly rows: { readonly events: readonly { readonly kind: string; readonly message: string }[] };
    };
    return rows.events.length > 0 ? rows.events : null;
  }, 'events are listed');
  t.match(events, [{ kind: 'FailedCreate', message: /^ReplicaSet serve-1: .*no room/ }]);
  t.equal(events.length, 1);
});
