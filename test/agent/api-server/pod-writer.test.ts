import { test, type Test } from 'tap';
import { silentLog } from '../../../src/host/log.js';
import { PodWriter } from '../../../src/agent/api-server/pod-writer.js';
import { WorkQueue } from '../../../src/kube/work-queue.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { apiServer, clientOf, podObject } from '../../kube/setting.js';

const POD = { namespace: 'default', name: 'a', objectUid: 'u1' };

function writing(t: Test, server: ApiServer): { readonly writer: PodWriter; readonly queue: WorkQueue } {
  const queue = new WorkQueue({ clock: hastyClock, log: silentLog() });
  const client = clientOf(t, server.url, { timeoutMs: 100 });
  t.teardown(() => queue.stop());
  return { writer: new PodWriter(client, queue), queue };
}

const annotationsOf = (server: ApiServer): unknown => server.read('pods', 'default', 'a')?.metadata.annotations;

test('annotations are merged into the pod, and the caller goes on at once', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1', annotations: { kept: 'yes', changed: 'old' } }));
  const { writer, queue } = writing(t, server);
  t.equal(writer.annotate(POD, { changed: 'new', added: '1' }), undefined);
  await eventually(() => queue.counts.done === 1);
  t.same(annotationsOf(server), { kept: 'yes', changed: 'new', added: '1' });
});

test('what is added while a write waits goes out with it', async (t) => {
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
  test(`an answer of ${code} is lived through`, async (t) => {
    const server = await apiServer(t);
    server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
    const { writer, queue } = writing(t, server);
    server.inject({ verb: 'patch' }, { do: 'answer', code }, 3);
    writer.annotate(POD, { a: '1' });
    await eventually(() => queue.counts.done === 1);
    t.same(annotationsOf(server), { a: '1' });
  });
}

test('a server that is slow, dead or loses its answers is lived through', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const { writer, queue } = writing(t, server);
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

test('a pod that is gone is not asked for again', async (t) => {
  const server = await apiServer(t);
  const { writer, queue } = writing(t, server);
  writer.annotate(POD, { a: '1' });
  await eventually(() => queue.counts.dropped.get('gone') === 1);
  t.equal(server.requests.length, 1);
});

test('a pod that took the name of the one meant is left alone', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'another' }));
  const { writer, queue } = writing(t, server);
  writer.annotate(POD, { a: '1' });
  writer.delete(POD);
  await eventually(() => queue.counts.dropped.get('gone') === 2);
  t.same(annotationsOf(server), undefined);
});

test('what the server will never accept is dropped and counted', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1' }));
  const { writer, queue } = writing(t, server);
  server.inject({ verb: 'patch' }, { do: 'answer', code: 422, reason: 'Invalid', message: 'annotations too long' });
  writer.annotate(POD, { a: '1' });
  await eventually(() => queue.counts.dropped.get('invalid') === 1);
  writer.annotate(POD, { b: '2' });
  server.clearFaults();
  await eventually(() => queue.counts.done === 1);
  t.same(annotationsOf(server), { b: '2' }, 'what was given up does not come back');
});

test('a deletion names the one pod it means', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u1', status: { phase: 'Failed' } }));
  const { writer, queue } = writing(t, server);
  server.inject({ verb: 'delete' }, { do: 'lose-answer' }, 1);
  writer.delete(POD);
  await eventually(() => queue.counts.waiting === 0);
  t.equal(server.read('pods', 'default', 'a'), null);
  t.match(JSON.parse(server.requests[0]?.body ?? ''), { preconditions: { uid: 'u1' } });
});

test('an evicted pod goes, and only the one that was meant', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a', uid: 'u2' }));
  const { writer, queue } = writing(t, server);
  writer.evict(POD);
  await eventually(() => queue.counts.waiting === 0);
  t.ok(server.read('pods', 'default', 'a'), 'another pod of that name');
  writer.evict({ ...POD, objectUid: 'u2' });
  await eventually(() => queue.counts.done === 1);
  const pod = server.read('pods', 'default', 'a');
  t.ok(pod === null || pod === undefined || pod.metadata.deletionTimestamp !== undefined, 'gone, or on its way');
  t.equal(queue.counts.dropped.get('gone'), 1);
});

test('a server that knows only the older Eviction is asked for that', async (t) => {
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
