import { test, type Test } from 'tap';
import { silentLog } from '../../../src/host/log.js';
import { PodWriter } from '../../../src/agent/api-server/pod-writer.js';
import type { KubeClientOptions } from '../../../src/kube/client.js';
import { WorkQueue } from '../../../src/kube/work-queue.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { apiServer, clientOf, podObject } from '../../kube/setting.js';

const POD = { namespace: 'default', name: 'a', objectUid: 'u1' };

function writing(
  t: Test,
  server: ApiServer,
  options: Partial<KubeClientOptions> = {},
): { readonly writer: PodWriter; readonly queue: WorkQueue } {
  const queue = new WorkQueue({ clock: hastyClock, log: silentLog() });
  const client = clientOf(t, server.url, options);
  t.teardown(() => queue.stop());
  return { writer: new PodWriter(client, queue), queue };
}

const annotationsOf = (server: ApiServer): unknown => server.read('pods', 'default', 'a')?.metadata.annotations;

test('annotations are merged into the pod, and the caller does not wait', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1', annotations: { kept: 'yes', changed: 'old' } }));
  const { writer, queue } = writing(t, server);
  t.equal(writer.annotate(POD, { changed: 'new', added: '1' }), undefined);
  await eventually(() => queue.counts.done === 1);
  t.same(annotationsOf(server), { kept: 'yes', changed: 'new', added: '1' });
});

test('annotations that are added while a write waits are sent with it', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const { writer, queue } = writing(t, server);
  server.inject({ verb: 'patch' }, { do: 'delay', ms: 30 }, 1);
  writer.annotate(POD, { a: '1' });
  writer.annotate(POD, { b: '1' });
  writer.annotate(POD, { b: '2', c: '3' });
  await eventually(() => queue.counts.waiting === 0);
  t.same(annotationsOf(server), { a: '1', b: '2', c: '3' });
  t.equal(server.requests.length, 2);
});

for (const code of [409, 429, 500, 503]) {
  test(`the writer recovers from an answer of ${code}`, async (t) => {
    const server = await apiServer(t);
    server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
    const { writer, queue } = writing(t, server);
    server.inject({ verb: 'patch' }, { do: 'answer', code }, 3);
    writer.annotate(POD, { a: '1' });
    await eventually(() => queue.counts.done === 1);
    t.same(annotationsOf(server), { a: '1' });
  });
}

test('the writer recovers from a server that is slow, dead or loses its answers', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const { writer, queue } = writing(t, server, { timeoutMs: 100 });
  server.inject({ verb: 'patch' }, { do: 'hang' }, 1);
  server.inject({ verb: 'patch' }, { do: 'lose-answer' }, 2);
  server.inject({ verb: 'patch' }, { do: 'truncate' }, 1);
  await server.stop();
  writer.annotate(POD, { a: '1' });
  await eventually(() => (queue.counts.failures.get('unreachable') ?? 0) > 2);
  await server.start();
  await eventually(() => queue.counts.done === 1);
  t.same(annotationsOf(server), { a: '1' });
  t.ok((queue.counts.failures.get('timeout') ?? 0) >= 1);
});

test('a deleted pod is not written again', async (t) => {
  const server = await apiServer(t);
  const { writer, queue } = writing(t, server);
  writer.annotate(POD, { a: '1' });
  await eventually(() => queue.counts.dropped.get('gone') === 1);
  t.equal(server.requests.length, 1);
});

test('another pod that took the same name is left alone', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'another' }));
  const { writer, queue } = writing(t, server);
  writer.annotate(POD, { a: '1' });
  writer.delete(POD);
  await eventually(() => queue.counts.dropped.get('gone') === 2);
  t.same(annotationsOf(server), undefined);
});

test('a write that the server will never accept is dropped and counted', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const { writer, queue } = writing(t, server);
  server.inject({ verb: 'patch' }, { do: 'answer', code: 422, reason: 'Invalid', message: 'annotations too long' });
  writer.annotate(POD, { a: '1' });
  await eventually(() => queue.counts.dropped.get('invalid') === 1);
  writer.annotate(POD, { b: '2' });
  server.clearFaults();
  await eventually(() => queue.counts.done === 1);
  t.same(annotationsOf(server), { b: '2' }, 'a dropped write is not repeated');
});

test('a deletion carries the UID of the pod', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1', status: { phase: 'Failed' } }));
  const { writer, queue } = writing(t, server);
  server.inject({ verb: 'delete' }, { do: 'lose-answer' }, 1);
  writer.delete(POD);
  await eventually(() => queue.counts.waiting === 0);
  t.equal(server.read('pods', 'default', 'a'), null);
  t.match(JSON.parse(server.requests[0]?.body ?? ''), { preconditions: { uid: 'u1' } });
});

test('an eviction removes only the pod with the given UID', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u2' }));
  const { writer, queue } = writing(t, server);
  writer.evict(POD);
  await eventually(() => queue.counts.waiting === 0);
  t.ok(server.read('pods', 'default', 'a'), 'another pod with that name');
  writer.evict({ ...POD, objectUid: 'u2' });
  await eventually(() => queue.counts.done === 1);
  const pod = server.read('pods', 'default', 'a');
  t.ok(
    pod === null || pod === undefined || pod.metadata.deletionTimestamp !== undefined,
    'the pod is deleted or being deleted',
  );
  t.equal(queue.counts.dropped.get('gone'), 1);
});

test('the older Eviction version is used for a server that knows only that one', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const { writer, queue } = writing(t, server);
  // As Kubernetes 1.20 answers: no kind "Eviction" is registered for version "policy/v1".
  server.inject({ verb: 'create' }, { do: 'answer', code: 400 }, 1);
  writer.evict(POD);
  await eventually(() => queue.counts.done === 1);
  t.same(
    server.requests.map(({ body }) => (JSON.parse(body ?? '') as { apiVersion: string }).apiVersion),
    ['policy/v1', 'policy/v1beta1'],
  );
});

test('an eviction that a disruption budget forbids is not forced', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const { writer, queue } = writing(t, server);
  server.inject({ verb: 'create' }, { do: 'answer', code: 429 }, 1);
  writer.evict(POD);
  await eventually(() => queue.counts.waiting === 0);
  t.ok(server.read('pods', 'default', 'a'));
  t.equal(server.requests.length, 1);
});
