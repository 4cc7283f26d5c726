import { Agent } from 'node:https';
import { createServer } from 'node:net';
import { test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { KubeClient, MERGE_PATCH } from '../../src/kube/client.js';
import type { KubeFailureCode } from '../../src/kube/failure.js';
import { certificateAuthority } from '../harness/certificate.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { apiServer, clientOf, openAccess, podObject } from './setting.js';

const POD = '/api/v1/namespaces/default/pods/a';

test('a request returns the answer and names its client', async (t) => {
  const server = await apiServer(t);
  server.seed('pods', podObject({ name: 'a' }));
  const answer = await clientOf(t, server.url).request({
    method: 'PATCH',
    path: POD,
    body: { metadata: { labels: { x: 'y' } } },
    contentType: MERGE_PATCH,
  });
  t.match(answer, { ok: true, body: { metadata: { name: 'a', labels: { x: 'y' } } } });
  t.match(server.requests, [{ verb: 'patch', contentType: MERGE_PATCH }]);
});

const TRANSLATIONS: readonly (readonly [number, string, string, KubeFailureCode])[] = [
  [401, 'Unauthorized', 'no', 'unauthorized'],
  [403, 'Forbidden', 'no', 'forbidden'],
  [404, 'NotFound', 'no', 'not-found'],
  [409, 'Conflict', 'no', 'conflict'],
  [409, 'AlreadyExists', 'no', 'already-exists'],
  [410, 'Expired', 'no', 'expired'],
  [400, 'BadRequest', 'no', 'invalid'],
  [422, 'Invalid', 'no', 'invalid'],
  [429, 'TooManyRequests', 'no', 'too-many-requests'],
  [500, 'InternalError', 'no', 'server-error'],
  [503, 'ServiceUnavailable', 'no', 'server-error'],
  [504, 'Timeout', 'Timeout: Too large resource version: 9, current: 3', 'too-new'],
  [302, '', 'no', 'malformed'],
];

test('every refusal has a code by which callers decide', async (t) => {
  const server = await apiServer(t);
  const client = clientOf(t, server.url);
  for (const [code, reason, message, expected] of TRANSLATIONS) {
    const fault = server.inject({}, { do: 'answer', code, reason, message });
    const answer = await client.request({ method: 'GET', path: POD });
    fault.remove();
    t.match(answer, { ok: false, code: expected, message }, `${code} ${reason}`);
  }
});

for (const isTls of [false, true])
  test(`a request that would come too late is not sent, ${isTls ? 'with' : 'without'} TLS`, async (t) => {
    const identity = await (await certificateAuthority()).server(['localhost', '127.0.0.1']);
    const server = await apiServer(t, isTls ? { tls: { key: identity.key, certificate: identity.certificate } } : {});
    server.seed('pods', podObject({ name: 'a' }));
    const agent = isTls ? new Agent({ keepAlive: true, rejectUnauthorized: false }) : null;
    t.teardown(() => void agent?.destroy());
    const plain = openAccess(server.url);
    const access = async () => (agent === null ? plain.access() : { agent, headers: {} });
    const client = clientOf(t, server.url, { credentials: { ...plain, access } });
    const get = (mayStillSend: () => boolean) => client.request({ method: 'GET', path: POD, mayStillSend });
    t.match(await get(() => false), { ok: false, code: 'unreachable', message: /too late/ });
    t.equal(server.requests.length, 0);
    for (const how of ['on a new connection', 'on a kept one'])
      t.match(await get(() => true), { ok: true, body: { metadata: { name: 'a' } } }, how);
  });

test('the client passes on the retry delay of the server', async (t) => {
  const server = await apiServer(t);
  server.inject({}, { do: 'answer', code: 429, retryAfterSeconds: 7 });
  t.match(await clientOf(t, server.url).request({ method: 'GET', path: POD }), {
    code: 'too-many-requests',
    retryAfterMs: 7_000,
  });
});

test('an answer that is not an API answer is malformed, whatever its status', async (t) => {
  const server = await apiServer(t);
  const client = clientOf(t, server.url, { largestBytes: 1_000 });
  server.inject({}, { do: 'answer', code: 200, body: '<html>log in first</html>' }, 1);
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'malformed' });
  server.inject({}, { do: 'answer', code: 502, body: '<html>' }, 1);
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'server-error', message: 'HTTP 502' });
  server.inject({}, { do: 'answer', code: 200, body: `"${'x'.repeat(2_000)}"` }, 1);
  t.match(await client.request({ method: 'GET', path: POD }), {
    ok: false,
    code: 'malformed',
    message: /more than 1000 bytes/,
  });
});

test('a server that never answers costs only the time limit', async (t) => {
  const server = await apiServer(t);
  const client = clientOf(t, server.url, { timeoutMs: 30 });
  server.inject({ verb: 'get' }, { do: 'hang' }, 1);
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'timeout' });
  server.freeze();
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'timeout' });
  server.thaw();
  t.match(await clientOf(t, server.url).request({ method: 'GET', path: POD }), { ok: false, code: 'not-found' });
});

test('a broken connection, a truncated answer and a dead server are all unreachable', async (t) => {
  const server = await apiServer(t);
  const client = clientOf(t, server.url);
  server.seed('pods', podObject({ name: 'a' }));
  server.inject({}, { do: 'truncate' }, 1);
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'unreachable' });
  await server.stop();
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'unreachable' });
  await server.start();
  t.match(await client.request({ method: 'GET', path: POD }), { ok: true });
});

test('a dead kept-alive connection does not fail the request', async (t) => {
  const server = await apiServer(t);
  const client = clientOf(t, server.url);
  server.seed('pods', podObject({ name: 'a' }));
  t.ok((await client.request({ method: 'GET', path: POD })).ok);
  server.inject({ verb: 'get' }, { do: 'reset' }, 1);
  t.ok(
    (await client.request({ method: 'GET', path: POD })).ok,
    'the client repeats the request at once on a new connection',
  );
});

test('the client itself never sends a creation twice', async (t) => {
  const server = await apiServer(t);
  const client = clientOf(t, server.url);
  await client.request({ method: 'GET', path: POD });
  server.inject({ verb: 'create' }, { do: 'lose-answer' }, 1);
  t.match(
    await client.request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body: podObject({ name: 'a' }) }),
    { ok: false, code: 'unreachable' },
  );
  t.equal(server.requests.filter((request) => request.verb === 'create').length, 1);
});

test('the client reads expired credentials again and repeats the request', async (t) => {
  const server = await apiServer(t, { tokens: new Map([['new', 'agent']]) });
  let token = 'old';
  let distrusted = 0;
  const access = openAccess(server.url, () => token);
  const credentials = {
    ...access,
    distrust: () => {
      distrusted += 1;
      token = 'new';
    },
  };
  const client = clientOf(t, server.url, { credentials });
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'not-found' });
  t.equal(distrusted, 1);
});

test('a watch reports its events one by one, however they are cut into packets', async (t) => {
  const server = await apiServer(t);
  const events: unknown[] = [];
  const watch = clientOf(t, server.url).watch(
    { path: '/api/v1/pods', query: { watch: '1' }, idleMs: 10_000 },
    { opened: () => undefined, event: (event) => events.push(event) },
  );
  const stream = await eventually(() => server.watches()[0]);
  stream.sendText('{"type":"A","object":"\u00e4');
  await new Promise((resolve) => setTimeout(resolve, 10));
  stream.sendText('\u00f6"}\n{"type":"B"}\n{"ty');
  await eventually(() => events.length === 2);
  stream.end();
  t.same(await watch.ended, { ok: true });
  t.same(events, [{ type: 'A', object: '\u00e4\u00f6' }, { type: 'B' }]);
});

test('the client ends a watch on which nothing arrives for a while', async (t) => {
  const server = await apiServer(t);
  const clock = new ManualClock();
  let events = 0;
  const watch = clientOf(t, server.url, { clock }).watch(
    { path: '/api/v1/pods', query: { watch: '1' }, idleMs: 1_000 },
    { opened: () => undefined, event: () => (events += 1) },
  );
  const stream = await eventually(() => server.watches()[0]);
  for (const sent of [1, 2, 3]) {
    stream.sendText('{"type":"BOOKMARK"}\n');
    await eventually(() => events === sent, 'an event');
    clock.advance(999);
  }
  clock.advance(1);
  t.match(await watch.ended, { ok: false, code: 'timeout' });
});

test('the client ends a watch that is not answered', async (t) => {
  const server = await apiServer(t);
  server.freeze();
  const watch = clientOf(t, server.url, { timeoutMs: 20 }).watch(
    { path: '/api/v1/pods', query: { watch: '1' }, idleMs: 10_000 },
    { opened: () => t.fail('the watch is not open'), event: () => undefined },
  );
  t.match(await watch.ended, { ok: false, code: 'timeout' });
});

test('a watch ends when the server sends invalid data', async (t) => {
  const server = await apiServer(t);
  const watch = clientOf(t, server.url).watch(
    { path: '/api/v1/pods', query: { watch: '1' }, idleMs: 10_000 },
    { opened: () => undefined, event: () => undefined },
  );
  (await eventually(() => server.watches()[0])).sendText('<html>\n');
  t.match(await watch.ended, { ok: false, code: 'malformed' });
});

test('a close ends a watch at once, even one that is still being opened', async (t) => {
  const server = await apiServer(t);
  const client = clientOf(t, server.url);
  const handlers = { opened: () => undefined, event: () => undefined };
  const opening = client.watch({ path: '/api/v1/pods', query: { watch: '1' }, idleMs: 10_000 }, handlers);
  opening.close();
  t.match(await opening.ended, { ok: false, code: 'unreachable' });
  const open = client.watch({ path: '/api/v1/pods', query: { watch: '1' }, idleMs: 10_000 }, handlers);
  await eventually(() => server.watches().length === 1);
  open.close();
  t.match(await open.ended, { ok: false });
});

test('a closed client aborts requests in progress and refuses new ones', async (t) => {
  const server = await apiServer(t);
  const client = new KubeClient({ credentials: openAccess(server.url), clock: systemClock, userAgent: 'test' });
  server.freeze();
  const answer = client.request({ method: 'GET', path: POD });
  await new Promise((resolve) => setTimeout(resolve, 20));
  client.close();
  t.match(await answer, { ok: false, code: 'unreachable' });
  t.match(await client.request({ method: 'GET', path: POD }), { ok: false, code: 'unreachable' });
});

test('a peer that is not an HTTP server is unreachable', async (t) => {
  const peer = createServer((socket) => socket.end('\u0000\u0001 nonsense\r\n\r\n'));
  await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
  t.teardown(() => peer.close());
  const { port } = peer.address() as { port: number };
  t.match(await clientOf(t, `http://127.0.0.1:${port}`).request({ method: 'GET', path: POD }), {
    ok: false,
    code: 'unreachable',
  });
});
