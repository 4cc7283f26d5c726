import { test, type Test } from 'tap';
import type { ApiServerOptions } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { ArbitratedCluster } from './arbitrated-cluster.js';
import { cases } from '../../cases.js';

async function cluster(t: Test, options: ApiServerOptions = {}): Promise<ArbitratedCluster> {
  const on = await ArbitratedCluster.start(options);
  t.teardown(() => on.stop());
  return on;
}

const CARD = 'nvidia.com/gpu';
const ONE = { cpu: '1', [CARD]: '1' };
const TWO = { cpu: '2', [CARD]: '2' };

const OUTDATED = 'nothing evicted on outdated data';

/** Two cores and two GPUs; `first` uses all of them, in two pods of which p2 is younger. */
async function fullCluster(t: Test, options: ApiServerOptions = {}): Promise<ArbitratedCluster> {
  const on = await cluster(t, options);
  on.addNode('node1', TWO);
  on.addNamespaces('first', 'second');
  on.addPod('first', 'p1', ONE, { startedAt: -20 });
  on.addPod('first', 'p2', ONE, { startedAt: -10 });
  return on;
}

test('a single consumer gets the whole cluster; with a second one both get half, and the first is overused', async (t) => {
  const on = await fullCluster(t);
  await on.arbitrate();
  await on.deserves('first', TWO);
  await on.deserves('second', {});
  t.equal(on.condition('allocations', 'first', 'Overused')?.status, 'False');
  on.addPod('second', 'q1', ONE, { node: null });
  await on.deserves('first', ONE);
  await on.deserves('second', ONE);
  t.match(on.statusOf('first'), {
    allocated: TWO,
    pending: {},
    overused: ['cpu', CARD],
    dominantShare: '1.000',
    weight: 1,
  });
  t.match(on.statusOf('second'), { allocated: {}, pending: ONE, overused: [], dominantShare: '0.000' });
  t.match(on.condition('allocations', 'first', 'Overused'), { status: 'True', message: /nvidia\.com\/gpu/ });
  t.equal(on.condition('allocations', 'first', 'Reclaiming')?.status, 'True');
});

test('an overused consumer gets a notice, and after the grace period its youngest pod is evicted by uid through the eviction API', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt === '2026-11-21T12:00:30.000Z', 'the notice');
  await eventually(() => on.events('ReclaimPending').length === 1, 'the event');
  t.match(on.events('ReclaimPending')[0], { type: 'Warning', involvedObject: { kind: 'Allocation', name: 'first' } });
  on.seconds = 29.999;
  await on.resolvePending();
  t.same(on.evictions(), []);
  on.seconds = 30;
  await eventually(() => on.evictions().length > 0, 'the eviction');
  t.equal(
    (on.server.read('pods', 'second', 'q1')?.status as { nominatedNodeName?: string }).nominatedNodeName,
    'node1',
  );
  const { body } = on.server.requests.findLast(({ subresource }) => subresource === 'eviction') ?? { body: '{}' };
  t.match(JSON.parse(body), {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    deleteOptions: { preconditions: { uid: on.server.read('pods', 'first', 'p2')?.metadata.uid } },
  });
  await eventually(() => on.events('Reclaimed').length === 1, 'the event');
  t.match(on.events('Reclaimed')[0], {
    metadata: { namespace: 'first' },
    involvedObject: { kind: 'Pod', name: 'p2' },
    message: /; a pod of another namespace starts on node node1 in its place/,
  });
  await eventually(() => on.statusOf('first').reclaimAt === undefined, 'the notice to end');
  await eventually(() => on.events('ReclaimEnded').length === 1, 'the event');
  on.server.remove('pods', 'first', 'p2');
  on.server.edit('pods', 'second', 'q1', (pod) => ({
    ...pod,
    spec: { ...(pod['spec'] as object), nodeName: 'node1' },
    status: { phase: 'Running' },
  }));
  on.seconds = 300;
  await on.resolvePending();
  t.same(on.evictions(), ['p2']);
  t.match(
    [on.statusOf('first'), on.statusOf('second')],
    [
      { allocated: ONE, overused: [] },
      { allocated: ONE, overused: [] },
    ],
  );
});

test('a notice ends when no pod waits any more, and nothing is evicted', async (t) => {
  const on = await fullCluster(t);
  on.addConsumer('first', {});
  on.addPod('second', 'q1', ONE, { node: null });
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  on.server.remove('pods', 'second', 'q1');
  await eventually(() => on.statusOf('first').reclaimAt === undefined, 'its end');
  await eventually(() => on.events('ReclaimEnded').length === 1, 'the event');
  t.match(on.events('ReclaimPending')[0], { involvedObject: { kind: 'Consumer', name: 'first' } });
  on.seconds = 100;
  await on.resolvePending();
  t.same(on.evictions(), []);
});

test('a restart during a grace period does not change its end', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  on.seconds = 0.25;
  await on.arbitrate();
  await eventually(() => on.statusOf('first').wantedSince === '2026-11-21T12:00:00.250Z', 'the notice');
  await on.end();
  on.seconds = 30;
  await on.arbitrate();
  await on.resolvePending();
  t.equal(on.statusOf('first').reclaimAt, '2026-11-21T12:00:30.250Z');
  t.same(on.evictions(), []);
  on.seconds = 30.25;
  await eventually(() => on.evictions().length > 0, 'the eviction');
  t.equal(on.events('ReclaimPending').length, 1, 'told once');
});

test('after an eviction a cooldown applies between the same two consumers, across restarts', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  on.seconds = 40;
  await eventually(() => on.statusOf('first').reclaimedFor?.['second'] !== undefined, 'the eviction to be noted');
  await on.end();
  // Another client clears the nomination, and the replacement is scheduled before the waiting pod.
  on.server.edit('pods', 'second', 'q1', (pod) => ({ ...pod, status: { phase: 'Pending' } }));
  on.server.remove('pods', 'first', 'p2');
  on.addPod('first', 'p3', ONE, { startedAt: 41 });
  on.seconds = 42;
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'a new notice');
  on.seconds = 99;
  await on.resolvePending();
  t.same(on.evictions(), ['p2']);
  on.seconds = 100;
  await eventually(() => on.evictions().length === 2, 'the next eviction');
  t.same(on.evictions(), ['p2', 'p3']);
});

test('only changed objects are written, and without changes there are no requests', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', { cpu: '100' });
  on.addNamespaces('a', 'b', 'c');
  on.addPod('a', 'a1', { cpu: '1' });
  on.addPod('b', 'b1', { cpu: '1' });
  await on.arbitrate();
  await on.deserves('b', { cpu: '1' });
  await on.resolvePending();
  const before = on.server.requests.length;
  await on.resolvePending();
  t.equal(on.server.requests.length, before);
  on.addPod('b', 'b2', { cpu: '1' });
  await on.deserves('b', { cpu: '2' });
  await on.resolvePending();
  t.same(
    on.server.requests
      .slice(before)
      .map(({ verb, resource, subresource, name }) => `${verb} ${resource}/${subresource} ${name ?? ''}`),
    ['update allocations/status b'],
  );
});

test('a status that another client changed is read again and corrected', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', { cpu: '100' });
  on.addNamespaces('a');
  on.addPod('a', 'a1', { cpu: '1' });
  await on.arbitrate();
  await on.deserves('a', { cpu: '1' });
  await on.resolvePending();
  for (const watch of on.server.watches('allocations')) watch.silence();
  on.server.edit('allocations', '', 'a', (object) => ({
    ...object,
    status: { ...(object['status'] as object), deserved: { cpu: '77' } },
  }));
  const tried = on.server.requests.length;
  on.addPod('a', 'a2', { cpu: '1' });
  await eventually(
    () => on.server.requests.slice(tried).filter(({ verb }) => verb === 'update').length > 1,
    'it to be tried on an old version',
  );
  t.same(on.statusOf('a').deserved, { cpu: '77' }, 'in vain');
  for (const watch of on.server.watches('allocations')) watch.cut();
  await on.deserves('a', { cpu: '2' });
});

test('a pod that a disruption budget protects stays, and another one is evicted instead', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  on.server.edit('pods', 'first', 'p2', (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { app: 'kept' } } }));
  on.addBudget('first', 'kept', { app: 'kept' }, 0);
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  on.seconds = 30;
  await eventually(() => on.evictions().length > 0, 'the eviction');
  await on.resolvePending();
  t.same(on.evictions(), ['p1']);
});

test('a pod that the API refuses to evict is tried again later, and another one is evicted at once', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  const refusal = on.server.inject(
    { subresource: 'eviction', name: 'p2' },
    { do: 'answer', code: 429, reason: 'TooManyRequests' },
  );
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  on.seconds = 30;
  await eventually(() => on.evictions().length > 0, 'the eviction');
  await on.resolvePending();
  t.same([on.evictionsTried(), on.evictions()], [['p2', 'p1'], ['p1']], 'nobody goes before all of them may');
  t.match(
    await on.metrics.text(),
    /evictions_total\{result="evicted"\} 1\n.*evictions_total\{result="refused"\} 1|evictions_total\{result="refused"\} 1\n.*evictions_total\{result="evicted"\} 1/,
  );
  refusal.remove();
});

test('where budgets protect all pods, evictions are retried after a pause until one is allowed', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  const refusal = on.server.inject({ subresource: 'eviction' }, { do: 'answer', code: 429, reason: 'TooManyRequests' });
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  on.seconds = 30;
  await eventually(() => on.evictionsTried().length === 2, 'both to be asked for');
  on.seconds = 44;
  await on.resolvePending();
  t.same(on.evictionsTried(), ['p2', 'p1']);
  t.equal(on.statusOf('first').reclaimedFor, undefined, 'nobody went');
  refusal.remove();
  on.seconds = 45;
  await eventually(() => on.evictions().length > 0, 'another attempt');
  await on.resolvePending();
  t.same(on.evictions(), ['p2']);
});

test('a pod is evicted only once, even if its end is observed late', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  await on.arbitrate('on', { cooldownMs: 1 });
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  for (const watch of on.server.watches('pods')) watch.silence();
  on.seconds = 30;
  await eventually(() => on.evictions().length > 0, 'the eviction');
  on.seconds = 60;
  await on.resolvePending();
  t.same(on.evictions(), ['p2']);
});

test('an eviction whose answer is lost does not cause another one', async (t) => {
  const on = await fullCluster(t);
  on.addPod('second', 'q1', ONE, { node: null });
  on.server.inject({ subresource: 'eviction', dryRun: false }, { do: 'lose-answer' }, 1);
  await on.arbitrate('on', { cooldownMs: 1 });
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  on.seconds = 30;
  await eventually(() => on.evictions().length > 0, 'the eviction');
  await eventually(() => on.statusOf('first').reclaimAt === undefined, 'the end of the notice');
  on.seconds = 300;
  await on.resolvePending();
  t.same(on.evictions(), ['p2']);
});

test('resources of leaving pods count as free, and nothing is evicted for them', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', TWO);
  on.addNamespaces('first', 'second');
  on.addPod('first', 'p1', ONE);
  on.addPod('first', 'p2', ONE, { leaving: true });
  on.addPod('second', 'q1', ONE, { node: null });
  await on.arbitrate();
  await on.deserves('first', ONE);
  t.match(on.statusOf('first'), { allocated: ONE, overused: [], reclaimAt: undefined });
});

test('reserved resources stay with their namespace, and protected pods stay', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', { cpu: '8' });
  on.addNode('cordoned', { cpu: '8' }, { unschedulable: true });
  on.addNode('master', { cpu: '8' }, { taints: [{ key: 'node-role.kubernetes.io/master', effect: 'NoSchedule' }] });
  on.addNamespaces('first', 'second', 'kube-system');
  on.addConsumer('first', { reserved: { cpu: '6' } });
  on.addPod('kube-system', 'dns', { cpu: '1' }, { startedAt: 9, priority: 2_000_000_000 });
  on.addPod('first', 'daemon', { cpu: '1' }, { startedAt: 8, owner: 'DaemonSet' });
  on.addPod('first', 'elsewhere', { cpu: '1' }, { startedAt: 7, node: 'cordoned' });
  for (const number of [1, 2, 3, 4, 5, 6]) on.addPod('first', `p${number}`, { cpu: '1' }, { startedAt: number });
  for (const number of [1, 2, 3, 4, 5, 6]) on.addPod('second', `q${number}`, { cpu: '1' }, { node: null });
  await on.arbitrate();
  await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  t.match(on.statusOf('kube-system').deserved, { cpu: '1' });
  for (const seconds of [30, 100, 200, 300]) {
    on.seconds = seconds;
    await on.resolvePending();
  }
  t.same(on.statusOf('first').allocated, { cpu: '6' });
  t.same(on.evictions(), ['p6', 'p5']);
});

test('a plan is logged once, recorded as an event and shown in the metrics, and nothing else is written', async (t) => {
  const on = await fullCluster(t);
  on.addConsumer('first', { reserved: { [CARD]: '5' } });
  on.server.edit('consumers', '', 'first', (object) => ({ ...object, spec: {} }));
  on.addPod('second', 'q1', ONE, { node: null });
  await on.arbitrate('plan');
  await eventually(
    () => on.logged.some(({ message }) => /no pod would be evicted/.test(message)),
    'the notice in the log',
  );
  on.seconds = 31;
  await eventually(
    () => on.logged.some(({ message }) => /these pods would be evicted/.test(message)),
    'the plan in the log',
  );
  on.seconds = 200;
  await on.resolvePending();
  const plans = on.logged.filter(({ message }) => /these pods would be evicted/.test(message));
  t.equal(plans.length, 1);
  t.match(plans[0]?.fields, {
    overused: [{ consumer: 'first', deserved: ONE, allocated: TWO, reclaimAt: '2026-11-21T12:00:30.000Z' }],
    evictions: [{ pod: 'first/p2', resource: 'cpu', for: ['second'] }],
  });
  await eventually(() => on.events('ReclaimPlanned').length === 1, 'the event');
  t.match(on.events('ReclaimPlanned')[0], {
    type: 'Normal',
    involvedObject: { kind: 'Namespace', name: 'first' },
    message:
      'with --arbitrator=on, pod p2 would be evicted: namespace first uses more cpu than its fair share, and pods of second wait for it',
  });
  t.same(
    on.writes().filter(({ resource }) => resource !== 'events'),
    [],
  );
  t.match(await on.metrics.text(), /quota_arbitrator_deserved\{consumer="second",resource="nvidia.com\/gpu"\} 1\n/);
});

test('a specification that cannot be satisfied gets a condition', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', { cpu: '8', [CARD]: '4' });
  on.addNamespaces('a', 'b', 'c', 'd');
  on.server.seed('resourcequotas', {
    metadata: { name: 'q', namespace: 'b' },
    spec: { hard: { 'requests.nvidia.com/gpu': '2', cpu: '100' } },
  });
  on.addConsumer('a', { hard: { cpu: '1' }, reserved: { cpu: '2' } });
  on.addConsumer('b', { hard: { [CARD]: '4' } });
  on.addConsumer('c', { reserved: { [CARD]: '5' } });
  on.addConsumer('d', { weight: 3, hard: { memory: '99999999999Ei' } });
  on.addPod('d', 'd1', { cpu: '1' });
  await on.arbitrate();
  const accepted = (name: string) => on.condition('consumers', name, 'Accepted');
  await eventually(() => ['a', 'b', 'c', 'd'].every((name) => accepted(name) !== undefined), 'the conditions');
  t.match(accepted('a'), { status: 'False', reason: 'ReservedAboveHard', message: 'cpu: 2 is reserved, hard is 1' });
  t.match(accepted('b'), {
    status: 'False',
    reason: 'HardAboveQuota',
    message: /hard is 4, the ResourceQuota of the namespace has 2/,
  });
  t.match(accepted('c'), { status: 'False', reason: 'ReservedAboveCluster' });
  t.match(accepted('d'), { status: 'False', reason: 'UnreadableAmounts', message: /hard: memory/ });
  t.match(on.condition('allocations', 'c', 'ReservedGuaranteed'), { status: 'False', message: /nvidia\.com\/gpu/ });
  await eventually(() => on.statusOf('d').weight === 3, 'the weight');
  on.server.edit('consumers', '', 'a', (object) => ({
    ...object,
    metadata: { ...object.metadata, generation: 2 },
    spec: { hard: { cpu: '2' }, reserved: { cpu: '2' } },
  }));
  await eventually(() => accepted('a')?.status === 'True', 'it to be accepted');
});

test('the Allocation of a deleted namespace is deleted', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', { cpu: '8' });
  on.addNamespaces('a', 'b');
  await on.arbitrate();
  await eventually(() => on.server.all('allocations').length === 2, 'both');
  on.server.remove('namespaces', '', 'a');
  await eventually(() => on.server.read('allocations', '', 'a') === null, 'one to go');
  t.not(on.server.read('allocations', '', 'b'), null);
});

test('of many namespaces each is written once, and later only those that change', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', { cpu: '100000', [CARD]: '1000' });
  const count = cases(150, 1_000);
  const names = Array.from({ length: count }, (_, at) => `team-${at}`);
  on.addNamespaces(...names);
  for (const [at, name] of names.entries()) {
    on.addConsumer(name, { weight: 1 + (at % 4) });
    on.addPod(name, 'p', { cpu: '1', [CARD]: '1' });
  }
  await on.arbitrate();
  const written = (): number =>
    on.writes().filter(({ resource, subresource }) => resource === 'allocations' && subresource === 'status').length;
  await eventually(() => written() >= count, 'all to be written', 60_000);
  await on.resolvePending();
  t.equal(written(), count);
  t.equal(on.writes().filter(({ resource }) => resource === 'consumers').length, count);
  const before = on.writes().length;
  on.server.remove('pods', 'team-7', 'p');
  await on.deserves('team-7', {});
  await on.resolvePending();
  t.equal(on.writes().length - before, 1);
});

/** Two nodes of eight GPUs, all used by labelled pods with one GPU each. */
async function singles(t: Test): Promise<ArbitratedCluster> {
  const on = await cluster(t);
  on.addNamespaces('first', 'second');
  for (const node of ['node1', 'node2']) {
    on.addNode(node, { cpu: '64', [CARD]: '8' });
    for (let number = 1; number <= 8; number++)
      on.addPod('first', `${node}-${number}`, { [CARD]: '1' }, { node, startedAt: number, labels: { app: node } });
  }
  return on;
}

test('for a pod of eight GPUs one node is emptied at once, and its room is nominated', async (t) => {
  const on = await singles(t);
  on.addPod('second', 'q1', { [CARD]: '8' }, { node: null });
  await on.arbitrate('on', { graceMs: 0 });
  await eventually(() => on.evictions().length === 8, 'eight evictions');
  const [node = ''] = on.evictions()[0]?.split('-') ?? [];
  t.ok(
    on.evictions().every((name) => name.startsWith(`${node}-`)),
    'all on one node',
  );
  const nominated = (): unknown =>
    (on.server.read('pods', 'second', 'q1')?.status as { nominatedNodeName?: string }).nominatedNodeName;
  t.equal(nominated(), node);
  on.server.edit('pods', 'second', 'q1', (pod) => ({ ...pod, status: { phase: 'Pending' } }));
  await eventually(
    () => nominated() === node,
    'the room to be kept again after the scheduler took the nomination away',
  );
  await on.resolvePending();
  t.equal(on.evictions().length, 8);
});

test('nothing is evicted if one of the needed victims is protected', async (t) => {
  const on = await singles(t);
  on.addBudget('first', 'one', { app: 'node1' }, 7);
  on.addBudget('first', 'two', { app: 'node2' }, 8);
  on.server.inject(
    { subresource: 'eviction', name: 'node2-1', dryRun: true },
    { do: 'answer', code: 429, reason: 'TooManyRequests' },
  );
  on.addPod('second', 'q1', { [CARD]: '8' }, { node: null });
  await on.arbitrate('on', { graceMs: 0 });
  await eventually(() => on.evictionsTried().includes('node2-1'), 'it to be asked');
  await on.resolvePending();
  t.same(on.evictions(), []);
});

test('taints, selectors and affinity decide which nodes a waiting pod can use', async (t) => {
  const on = await cluster(t);
  on.addNamespaces('first', 'second');
  on.addNode('plain', { [CARD]: '1' });
  on.addNode('tainted', { [CARD]: '1' }, { taints: [{ key: 'team', value: 'first', effect: 'NoSchedule' }] });
  on.addPod('first', 'p1', { [CARD]: '1' }, { node: 'plain', startedAt: 1, priority: 1 });
  on.addPod('first', 'p2', { [CARD]: '1' }, { node: 'tainted', startedAt: 2 });
  on.addPod('second', 'q1', { [CARD]: '1' }, { node: null });
  await on.arbitrate('on', { graceMs: 0 });
  await on.resolvePending();
  t.same(on.evictions(), [], 'the one that might go is where q1 cannot come to, the other one is more important');
  on.server.edit('pods', 'second', 'q1', (pod) => ({
    ...pod,
    spec: { ...(pod['spec'] as object), tolerations: [{ key: 'team', operator: 'Exists' }] },
  }));
  await eventually(() => on.evictions().length > 0, 'the eviction');
  t.same(on.evictions(), ['p2']);
});

test('selected namespaces get a Consumer, and existing Consumers stay', async (t) => {
  const on = await cluster(t);
  on.addNode('node1', TWO);
  for (const name of ['web', 'shop', 'other'])
    on.server.seed('namespaces', { metadata: { name, labels: name === 'other' ? {} : { area: 'app' } } });
  on.addConsumer('shop', { weight: 7 });
  await on.arbitrate('on', {}, [
    { namespaceSelector: { matchLabels: { area: 'app' } }, spec: { parent: 'app', weight: 2 } },
  ]);
  await eventually(() => on.server.read('consumers', '', 'web') !== null, 'the Consumer');
  await on.resolvePending();
  const specOf = (name: string): unknown => on.server.read('consumers', '', name)?.['spec'];
  t.match(specOf('web'), { parent: 'app', weight: 2 });
  t.match(specOf('shop'), { weight: 7 });
  t.equal(on.server.read('consumers', '', 'other'), null);
});

test('nothing is evicted while watches are silent, once the cluster has changed', async (t) => {
  // What no watch shows: the waiting pod was scheduled elsewhere, or a pod has left the node.
  const changes: readonly ((on: ArbitratedCluster) => void)[] = [
    (on) =>
      void on.server.edit('pods', 'second', 'q1', (pod) => ({
        ...pod,
        spec: { ...(pod['spec'] as object), nodeName: 'node2' },
      })),
    (on) => void on.server.remove('pods', 'first', 'p1'),
  ];
  const [alone, all] = [['pods'], ['pods', 'nodes', 'namespaces']];
  const combinations = cases([alone, all], [alone, ['pods', 'nodes'], ['pods', 'namespaces'], all]);
  for (const change of changes)
    for (const silent of combinations) {
      const on = await fullCluster(t);
      on.addPod('second', 'q1', ONE, { node: null });
      await on.arbitrate();
      await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
      for (const watch of silent.flatMap((resource) => on.server.watches(resource))) watch.silence();
      change(on);
      on.seconds = 31;
      const isOutdated = ({ message }: { readonly message: string }): boolean => message === OUTDATED;
      await eventually(() => on.logged.filter(isOutdated).length > 2, 'plans on outdated data');
      t.same([on.evictions(), on.evictionsTried()], [[], []], silent.join(' '));
    }
});
