import { test, type Test } from 'tap';
import { systemClock, type Clock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { NodePods } from '../../../src/agent/api-server/node-pods.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import type { KubeObject } from '../../harness/api-server/kube-object.js';
import { eventually } from '../../harness/eventually.js';
import { apiServer, clientOf, NODE, podObject, QUICK, type PodSpec } from '../../kube/setting.js';

/** The real clock, which a test can advance. */
function shiftableClock(): Clock & { shift(ms: number): void } {
  let offset = 0;
  return { ...systemClock, now: () => Date.now() + offset, shift: (ms) => void (offset += ms) };
}

async function knowing(t: Test, server: ApiServer, clock: Clock = systemClock): Promise<NodePods> {
  const pods = new NodePods({
    client: clientOf(t, server.url),
    nodeName: NODE,
    clock,
    log: silentLog(),
    timing: QUICK,
  });
  t.teardown(() => pods.stop());
  pods.start();
  await eventually(() => pods.synced && server.watches().length === 1);
  return pods;
}

const add = (server: ApiServer, spec: PodSpec): KubeObject =>
  server.seed('pods', podObject({ uid: `uid-${spec.name}`, ...spec }));
const patch = (server: ApiServer, name: string, part: Record<string, unknown>): KubeObject =>
  server.edit('pods', 'default', name, (pod) => ({ ...pod, ...part }));
const waiting = (pods: NodePods): string | null =>
  pods
    .pending()
    ?.map((entry) => `${entry.podUid.replace('uid-', '')}/${entry.container}`)
    .join(' ') ?? null;
const waits = (pods: NodePods, wanted: string): Promise<true> =>
  eventually(() => waiting(pods) === wanted, `"${wanted}" (there is "${waiting(pods) ?? 'null'}")`);

test('before the first list the waiting pods are unknown, which differs from an empty list', async (t) => {
  const server = await apiServer(t);
  const pods = new NodePods({
    client: clientOf(t, server.url),
    nodeName: NODE,
    clock: systemClock,
    log: silentLog(),
    timing: QUICK,
  });
  t.teardown(() => pods.stop());
  t.equal(pods.pending(), null);
  t.same(pods.ended(), new Set());
  t.equal(pods.annotations('x'), null);
  t.equal(pods.uidOf('default', 'x'), null);
  t.equal(pods.nameOf('x'), null);
  pods.start();
  await eventually(() => pods.pending() !== null);
  t.same(pods.pending(), []);
});

test('an empty node name is refused: it would select every pod that is not scheduled yet', async (t) => {
  const server = await apiServer(t);
  t.throws(
    () => new NodePods({ client: clientOf(t, server.url), nodeName: '', clock: systemClock, log: silentLog() }),
    /name of this node/,
  );
});

test('waiting containers are listed with their requests, init containers first, without containers that request no GPU', async (t) => {
  const server = await apiServer(t);
  add(server, {
    name: 'a',
    initContainers: [{ name: 'fetch', cores: 10, memory: 4 }, { name: 'chown' }],
    containers: [{ name: 'log' }, { name: 'main', cores: 30, memory: 16 }, { name: 'whole', cores: 200 }],
  });
  const pods = await knowing(t, server);
  t.same(pods.pending(), [
    {
      podUid: 'uid-a',
      container: 'fetch',
      cores: 10,
      memoryBlocks: 4,
      hint: [],
      isInit: true,
    },
    { podUid: 'uid-a', container: 'main', cores: 30, memoryBlocks: 16, hint: [] },
    { podUid: 'uid-a', container: 'whole', cores: 200, memoryBlocks: 0, hint: [] },
  ]);
});

test('an invalid request is listed too, so that the plugin can refuse it with the reason', async (t) => {
  const server = await apiServer(t);
  add(server, { name: 'a', containers: [{ name: 'main', memory: 16 }] });
  t.match((await knowing(t, server)).pending(), [{ cores: 0, memoryBlocks: 16 }]);
});

test('pods wait in the order of the decisions of the extender, then of their creation', async (t) => {
  const server = await apiServer(t);
  const at = (second: number): string => `2026-11-21T10:00:0${second}Z`;
  const nanoseconds = (second: number, rest: number): string =>
    String(BigInt(Date.parse(at(second))) * 1_000_000n + BigInt(rest));
  add(server, { name: 'created-4', createdAt: at(4) });
  add(server, {
    name: 'decided-3b',
    createdAt: at(1),
    annotations: { 'tencent.com/predicate-time': nanoseconds(3, 2) },
  });
  add(server, {
    name: 'decided-3a',
    createdAt: at(2),
    annotations: { 'tencent.com/predicate-time': nanoseconds(3, 1) },
  });
  add(server, { name: 'created-2', createdAt: at(2) });
  add(server, { name: 'garbled-5', createdAt: at(5), annotations: { 'tencent.com/predicate-time': 'soon' } });
  const pods = await knowing(t, server);
  t.equal(waiting(pods), 'created-2/main decided-3a/main decided-3b/main created-4/main garbled-5/main');
});

test('init containers are marked, and predictions belong to the containers that they name', async (t) => {
  const server = await apiServer(t);
  add(server, {
    name: 'a',
    initContainers: [{ name: 'fetch', cores: 10, memory: 4 }],
    containers: [
      { name: 'main', cores: 30, memory: 16 },
      { name: 'whole', cores: 100 },
    ],
    annotations: {
      'tencent.com/predicate-gpu-idx-0': '2',
      'tencent.com/predicate-gpu-idx-1': '0',
      'tencent.com/equal-gpus': 'required',
    },
  });
  t.match((await knowing(t, server)).pending(), [
    { container: 'fetch', hint: [], isInit: true, selection: { equalGpus: true } },
    { container: 'main', hint: [2], selection: { equalGpus: true } },
    { container: 'whole', hint: [0], selection: { equalGpus: true } },
  ]);
});

test('a wrong annotation is known with the container that waits', async (t) => {
  const server = await apiServer(t);
  const containers = [{ name: 'main', cores: 30, memory: 16 }];
  add(server, { name: 'a', containers, annotations: { 'tencent.com/gpu-policy': 'pack' } });
  t.match((await knowing(t, server)).pending(), [{ container: 'main', brokenRule: /gpu-policy is "pack"/ }]);
});

test('the GPU that the extender chose is a hint, indexed over all containers, and valid only for this node', async (t) => {
  const server = await apiServer(t);
  const main = { name: 'main', cores: 200, memory: 16 };
  add(server, {
    name: 'a',
    containers: [{ name: 'log' }, main],
    annotations: {
      'tencent.com/predicate-gpu-idx-0': '7',
      'tencent.com/predicate-gpu-idx-1': '0,2',
      'tencent.com/predicate-node': NODE,
    },
  });
  add(server, {
    name: 'b',
    containers: [main],
    annotations: { 'tencent.com/predicate-gpu-idx-0': '3', 'tencent.com/predicate-node': 'node2' },
  });
  add(server, { name: 'c', containers: [main], annotations: { 'tencent.com/predicate-gpu-idx-0': '1,,x' } });
  add(server, { name: 'd', containers: [main], annotations: { 'tencent.com/predicate-gpu-idx-0': '5' } });
  const pods = await knowing(t, server);
  t.same(
    new Map(pods.pending()?.map((entry) => [entry.podUid, entry.hint])),
    new Map([
      ['uid-a', [0, 2]],
      ['uid-b', []],
      ['uid-c', []],
      ['uid-d', [5]],
    ]),
  );
});

test('a pod waits until it runs, fails or is deleted, whether the kubelet has admitted it or not', async (t) => {
  const server = await apiServer(t);
  for (const name of ['admitted', 'assigned', 'deleted', 'failed', 'leaving', 'running', 'waiting'])
    add(server, { name });
  const pods = await knowing(t, server);
  t.equal(pods.pending()?.length, 7);
  const admitted = { status: { phase: 'Pending', startTime: '2026-11-21T10:00:00Z' } };
  const deleting = (pod: KubeObject): KubeObject => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: '2026-11-21T10:00:00Z' },
  });
  patch(server, 'admitted', admitted);
  patch(server, 'failed', { status: { phase: 'Failed', reason: 'UnexpectedAdmissionError' } });
  patch(server, 'running', { status: { phase: 'Running' } });
  server.edit('pods', 'default', 'assigned', (pod) => ({
    ...pod,
    metadata: { ...pod.metadata, annotations: { 'tencent.com/gpu-assigned': 'true' } },
  }));
  patch(server, 'leaving', admitted);
  server.edit('pods', 'default', 'leaving', deleting);
  server.edit('pods', 'default', 'deleted', deleting);
  await eventually(() => pods.pending()?.length === 4);
  t.same(
    pods
      .pending()
      ?.map((entry) => entry.podUid)
      .sort(),
    ['uid-admitted', 'uid-assigned', 'uid-leaving', 'uid-waiting'],
    'a pod that is being deleted may still hold its devices',
  );
});

test('a container that starts stops waiting before the API server reports it, and its neighbours keep waiting', async (t) => {
  const server = await apiServer(t);
  const gpu = { cores: 30, memory: 16 };
  add(server, {
    name: 'a',
    initContainers: [{ name: 'fetch', ...gpu }],
    containers: [
      { name: 'one', ...gpu },
      { name: 'two', ...gpu },
    ],
  });
  const pods = await knowing(t, server);
  pods.noteStarted('uid-a', 'fetch');
  t.equal(waiting(pods), 'a/one a/two');
  patch(server, 'a', { status: { phase: 'Pending', containerStatuses: [{ name: 'one', state: { running: {} } }] } });
  await waits(pods, 'a/two');
});

test('after a minute without a connection the waiting pods are unknown, and the ended pods are still known', async (t) => {
  const server = await apiServer(t);
  const clock = shiftableClock();
  add(server, { name: 'a' });
  add(server, { name: 'b', status: { phase: 'Succeeded' } });
  const pods = await knowing(t, server, clock);
  await server.stop();
  await eventually(() => pods.silentMs > 0);
  t.equal(waiting(pods), 'a/main');
  clock.shift(60_000);
  t.equal(pods.pending(), null);
  t.same(pods.ended(), new Set(['uid-b']));
  t.equal(pods.uidOf('default', 'a'), 'uid-a');
  await server.start();
  await waits(pods, 'a/main');
});

const RUNNING = { phase: 'Running', containerStatuses: [{ name: 'main', state: { running: {} } }] };
const TERMINATED = { phase: 'Running', containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 0 } } }] };

test('pods end by success, failure and deletion, but not while one of their containers runs', async (t) => {
  const server = await apiServer(t);
  add(server, { name: 'evicted', status: { ...RUNNING, phase: 'Failed', reason: 'Evicted' } });
  for (const name of ['failed', 'succeeded', 'deleted', 'stays']) add(server, { name, status: RUNNING });
  const pods = await knowing(t, server);
  t.same(pods.ended(), new Set());
  patch(server, 'failed', { status: { ...TERMINATED, phase: 'Failed' } });
  patch(server, 'succeeded', { status: { phase: 'Succeeded' } });
  patch(server, 'deleted', { status: TERMINATED });
  server.remove('pods', 'default', 'deleted');
  await eventually(() => pods.ended().size === 3);
  t.same(pods.ended(), new Set(['uid-failed', 'uid-succeeded', 'uid-deleted']));
});

test('a pod that disappears while it runs counts as ended a minute later, unless it reappears', async (t) => {
  const server = await apiServer(t);
  const clock = shiftableClock();
  for (const name of ['forced', 'starting', 'flickering'])
    add(server, { name, status: name === 'starting' ? {} : RUNNING });
  const pods = await knowing(t, server, clock);
  pods.noteStarted('uid-starting', 'main');
  for (const name of ['forced', 'starting', 'flickering']) server.remove('pods', 'default', name);
  await eventually(() => pods.all().length === 0);
  t.same(pods.ended(), new Set());
  clock.shift(59_000);
  add(server, { name: 'flickering', status: RUNNING });
  await eventually(() => pods.all().length === 1);
  t.same(pods.ended(), new Set());
  clock.shift(1_000);
  t.same(pods.ended(), new Set(['uid-forced', 'uid-starting']));
  add(server, { name: 'starting' });
  await eventually(() => pods.all().length === 2);
  server.remove('pods', 'default', 'starting');
  await eventually(() => pods.all().length === 1);
  t.same(pods.ended(), new Set(['uid-forced']), 'the pod is still known as started');
});

test('a pod that was deleted while no watch was open has ended, too', async (t) => {
  const server = await apiServer(t);
  add(server, { name: 'a' });
  const pods = await knowing(t, server);
  await server.stop();
  server.remove('pods', 'default', 'a');
  server.compact();
  await server.start();
  await eventually(() => pods.ended().has('uid-a'));
  t.same(pods.nameOf('uid-a'), { namespace: 'default', pod: 'a' }, 'the log still has the name of the pod');
  t.equal(pods.uidOf('default', 'a'), null);
});

test('deleted pods are remembered for a limited time', async (t) => {
  const server = await apiServer(t);
  const clock = shiftableClock();
  add(server, { name: 'a' });
  const pods = await knowing(t, server, clock);
  server.remove('pods', 'default', 'a');
  await eventually(() => pods.ended().has('uid-a'));
  clock.shift(3_600_000);
  t.same(pods.ended(), new Set());
  t.equal(pods.nameOf('uid-a'), null);
});

test('the latest deleted pods are kept, up to a limit', async (t) => {
  const server = await apiServer(t);
  const pods = await knowing(t, server);
  const stream = await eventually(() => server.watches()[0]);
  for (let i = 0; i < 4_200; i += 1) {
    const object = {
      ...podObject({ name: 'p' }),
      metadata: { name: `p${i}`, namespace: 'default', uid: `u${i}`, resourceVersion: String(2_000 + i) },
    };
    stream.send({ type: 'ADDED', object });
    stream.send({ type: 'DELETED', object });
  }
  await eventually(() => pods.ended().has('u4199'));
  t.equal(pods.ended().size, 4_096);
  t.notOk(pods.ended().has('u103'));
});

test('a pod created again under the same name is another pod', async (t) => {
  const server = await apiServer(t);
  add(server, { name: 'web-0', uid: 'old' });
  const pods = await knowing(t, server);
  server.remove('pods', 'default', 'web-0');
  add(server, { name: 'web-0', uid: 'new' });
  await eventually(() => pods.uidOf('default', 'web-0') === 'new');
  t.same(pods.ended(), new Set(['old']));
  t.same(pods.nameOf('old'), { namespace: 'default', pod: 'web-0' });
});

test('the deletion of a pod does not hide the pod that took its name, whatever the order of the events', async (t) => {
  const server = await apiServer(t);
  add(server, { name: 'web-0', uid: 'old' });
  const pods = await knowing(t, server);
  server.watches()[0]?.send({
    type: 'ADDED',
    object: {
      ...podObject({ name: 'web-0' }),
      metadata: {
        name: 'web-0',
        namespace: 'default',
        uid: 'new',
        resourceVersion: '1001',
        creationTimestamp: '2036-01-01T00:00:00Z',
      },
    },
  });
  server.remove('pods', 'default', 'web-0');
  await eventually(() => pods.ended().has('old'));
  t.equal(pods.uidOf('default', 'web-0'), 'new');
});

test('deleting the entry of a static pod ends nothing', async (t) => {
  const server = await apiServer(t);
  const annotations = { 'kubernetes.io/config.hash': 'hash', 'kubernetes.io/config.mirror': 'hash' };
  add(server, { name: 'static', uid: 'entry-1', annotations });
  const pods = await knowing(t, server);
  t.equal(pods.uidOf('default', 'static'), 'hash');
  server.remove('pods', 'default', 'static');
  add(server, { name: 'static', uid: 'entry-2', annotations });
  await eventually(() => pods.get('hash')?.objectUid === 'entry-2');
  t.same(pods.ended(), new Set());
});

test('the annotations of a known pod are available and follow its changes', async (t) => {
  const server = await apiServer(t);
  add(server, { name: 'a', annotations: { 'tencent.com/vcuda-core-limit': '50' } });
  const pods = await knowing(t, server);
  t.equal(pods.annotations('uid-a')?.get('tencent.com/vcuda-core-limit'), '50');
  patch(server, 'a', { metadata: { ...podObject({ name: 'a', uid: 'uid-a' }).metadata, annotations: {} } });
  await eventually(() => pods.annotations('uid-a')?.size === 0);
  t.equal(pods.annotations('uid-b'), null);
});

test('listeners are called after the state has changed', async (t) => {
  const server = await apiServer(t);
  const pods = await knowing(t, server);
  const told: string[] = [];
  pods.onChange(({ before, after }) => told.push(`${before?.name ?? ''}>${after?.name ?? ''} ${pods.all().length}`));
  add(server, { name: 'a' });
  server.remove('pods', 'default', 'a');
  await eventually(() => told.length === 2);
  t.same(told, ['>a 1', 'a> 0']);
});

test('pods that a faulty server lists for other nodes are ignored', async (t) => {
  const server = await apiServer(t);
  server.inject(
    { verb: 'list' },
    {
      do: 'distort',
      change: (list) => ({
        ...list,
        items: [podObject({ name: 'x', uid: 'x', node: 'node2' }), podObject({ name: 'y', uid: 'y' })],
      }),
    },
  );
  const pods = await knowing(t, server);
  t.same(
    pods.all().map((pod) => pod.uid),
    ['y'],
  );
});
