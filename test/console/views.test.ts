import { test } from 'tap';
import { OptionalWatch } from '../../src/console/optional-watch.js';
import type { KubeAnswer } from '../../src/kube/client.js';
import { failure } from '../../src/kube/failure.js';
import type { Informer, ObjectChange } from '../../src/kube/informer.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { nodeObject, podObject } from './cluster-objects.js';
import { runningConsole, type RunningConsole } from './fixture.js';
import {
  allocationObject,
  claimObject,
  consumerObject,
  eventObject,
  groupObject,
  serveClaims,
  serveQuota,
} from './quota-objects.js';

function seed(server: ApiServer): void {
  serveQuota(server);
  serveClaims(server);
  server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 }));
  server.seed('bizgroupresourcequotas', groupObject('research', { hard: { pods: '10' } }));
  server.seed('consumers', consumerObject('research'));
  server.seed('allocations', allocationObject('vision', { dominantShare: '0.5' }));
  for (const namespace of ['research', 'vision']) {
    server.seed('pods', podObject('train', { namespace, node: 'gpu-node-1', gpus: [0] }));
    server.seed('events', eventObject('a', 'GPUAssigned', 'main: 30 cores of GPU 0', { namespace, pod: 'train' }));
    server.seed('events', eventObject('b', 'Pulled', 'image', { namespace, pod: 'train', component: 'kubelet' }));
    server.seed('resourceclaims', claimObject('share', { namespace, on: { node: 'gpu-node-1', gpu: 1 } }));
  }
}

type Told = Readonly<Record<string, readonly { readonly name?: string; readonly namespace?: string }[]>>;

async function told(
  console: RunningConsole,
  user: string,
): Promise<{ readonly tables: readonly string[]; rows: Told }> {
  return (await (await console.get('/api/cluster', user)).json()) as { tables: readonly string[]; rows: Told };
}

/** The first state of the console that a stream has. */
async function state(console: RunningConsole): Promise<{ readonly absent: Readonly<Record<string, string>> }> {
  const answer = await console.get('/api/stream');
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const { value } = await reader.read();
  await reader.cancel();
  const [, data = ''] = /^event: console\ndata: (.*)$/mu.exec(new TextDecoder().decode(value)) ?? [];
  return JSON.parse(data) as { absent: Readonly<Record<string, string>> };
}

test('each view is for users who may list what it is made from, in the namespaces in which they may', async (t) => {
  const console = await runningConsole(t, seed);
  await eventually(async () => Object.keys((await state(console)).absent).length === 0, 'all collections are listed');
  const everything = await told(console, 'operator');
  t.same([...everything.tables].sort(), ['claims', 'events', 'groups', 'nodes', 'pods', 'shares']);
  t.same(
    everything.rows.groups?.map(({ name }) => name),
    ['research'],
  );
  t.same(everything.rows.shares?.map(({ name }) => name).sort(), ['research', 'vision']);
  t.equal(everything.rows.claims?.length, 2);
  t.same(everything.rows.events?.map(({ namespace }) => namespace).sort(), ['research', 'vision'], 'none of kubelets');

  const scientist = await told(console, 'scientist');
  t.same([...scientist.tables].sort(), ['claims', 'events', 'pods']);
  for (const table of ['claims', 'events', 'pods'])
    t.same(
      scientist.rows[table]?.map(({ namespace }) => namespace),
      ['research'],
      table,
    );
  for (const table of ['nodes', 'groups', 'shares']) t.same(scientist.rows[table], [], table);

  const accountant = await told(console, 'accountant');
  t.same(accountant.tables, ['groups'], 'fair shares need both of their kinds');
  t.same([accountant.rows.shares, accountant.rows.pods, accountant.rows.events], [[], [], []]);
});

test('changes reach a stream, and those of other namespaces do not', async (t) => {
  const console = await runningConsole(t, seed);
  await eventually(async () => Object.keys((await state(console)).absent).length === 0, 'all collections are listed');
  const answer = await console.get('/api/stream', 'scientist');
  let text = '';
  const reading = (async () => {
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>)
      text += new TextDecoder().decode(chunk);
  })().catch(() => undefined);
  const event = (namespace: string) =>
    eventObject('new', 'GPULimitRefused', `of ${namespace}`, { namespace, pod: 'train' });
  console.server.seed('events', event('vision'));
  console.server.seed('resourceclaims', claimObject('later', { namespace: 'vision' }));
  console.server.seed('events', event('research'));
  console.server.seed('resourceclaims', claimObject('later', { namespace: 'research' }));
  await eventually(
    () => Promise.resolve(text.includes('of research') && text.includes('claim-research-later')),
    'the stream has the event and the claim',
  );
  t.notMatch(text, /of vision|claim-vision-later/);
  await console.server.stop();
  void reading;
});

test('a cluster without quota and claims has the other views, and a sentence says what is missing', async (t) => {
  const console = await runningConsole(t, (server) => server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 })));
  await eventually(async () => (await state(console)).absent.events === undefined, 'events are listed');
  const { absent } = await state(console);
  t.match(absent, {
    groups: /^The API server does not serve quota\.gpu-manager\.io\/v1: /,
    shares: /^The API server does not serve quota\.gpu-manager\.io\/v1: /,
    claims: /^The API server does not serve resource\.k8s\.io\/v1: /,
  });
  t.equal((await told(console, 'operator')).rows.nodes?.length, 1);
});

test('a collection is watched while it is served and may be listed, and forgotten otherwise', async (t) => {
  const clock = new ManualClock();
  let answer: KubeAnswer = failure('not-found', 'no such path');
  let tell: (change: ObjectChange<{ name: string }>) => void = () => undefined;
  let opened = 0;
  const informer = {
    synced: true,
    start: () => (opened += 1),
    stop: () => Promise.resolve(),
    onChange: (listener: typeof tell) => (tell = listener),
  };
  const known = new Map<string, string | null>();
  const watch = new OptionalWatch<{ name: string }>({
    api: { request: () => Promise.resolve(answer), informer: () => informer as unknown as Informer<never> },
    ...{ clock, path: '/apis/group/v1/things', absence: 'Things are not installed.' },
    keep: (object) => object as { name: string },
    keyOf: ({ name }) => name,
    changed: (key, value) => known.set(key, value?.name ?? null),
  });
  const round = async (next: KubeAnswer): Promise<void> => {
    answer = next;
    clock.advance(30_000);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  };
  watch.start();
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  t.equal(watch.absence, 'Things are not installed.');
  await round({ ok: true, body: {} });
  t.equal(watch.absence, null);
  tell({ before: null, after: { name: 'a' } });
  await round(failure('server-error', 'try again'));
  t.same([watch.absence, opened, known.get('a')], [null, 1, 'a'], 'a failure of the API server changes nothing');
  await round(failure('forbidden', 'no'));
  t.match(watch.absence, /^The console may not list \/apis\/group\/v1\/things: apply the ClusterRole gpu-console/);
  t.equal(known.get('a'), null, 'what was known is gone');
  await round({ ok: true, body: {} });
  t.same([watch.absence, opened], [null, 2]);
  await watch.stop();
});
