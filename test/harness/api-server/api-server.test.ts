import { test, type Test } from 'tap';
import { eventually } from '../eventually.js';
import { ApiServer, type ApiServerOptions } from './api-server.js';
import type { KubeObject } from './kube-object.js';

interface Answer {
  readonly code: number;
  readonly body: KubeObject & {
    readonly items?: readonly KubeObject[];
    readonly reason?: string;
    readonly message?: string;
  };
}

async function started(t: Test, options?: ApiServerOptions): Promise<ApiServer> {
  const server = new ApiServer(options);
  await server.start();
  t.teardown(() => server.stop());
  return server;
}

async function call(
  server: ApiServer,
  method: string,
  path: string,
  body?: unknown,
  contentType = 'application/json',
  headers: Record<string, string> = {},
): Promise<Answer> {
  const init =
    body === undefined
      ? { method, headers }
      : { method, body: JSON.stringify(body), headers: { 'content-type': contentType, ...headers } };
  const response = await fetch(`${server.url}${path}`, init);
  return { code: response.status, body: (await response.json()) as Answer['body'] };
}

const PODS = '/api/v1/namespaces/default/pods';
const pod = (name: string, node?: string): KubeObject => ({
  metadata: { name },
  spec: node === undefined ? {} : { nodeName: node },
});

interface WatchEvent {
  readonly type: string;
  readonly object: KubeObject;
}

/** The events of a watch, in order of arrival. */
async function* events(server: ApiServer, path: string): AsyncGenerator<WatchEvent, undefined> {
  const controller = new AbortController();
  const response = await fetch(`${server.url}${path}`, { signal: controller.signal });
  let text = '';
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        yield JSON.parse(text.slice(0, end)) as WatchEvent;
        text = text.slice(end + 1);
      }
    }
  } finally {
    controller.abort();
  }
  return undefined;
}

test('a fault applies to as many requests as configured, and to matching ones only', async (t) => {
  const server = await started(t);
  server.inject(
    { verb: 'get', resource: 'pods', name: 'a' },
    { do: 'answer', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 2 },
    2,
  );
  server.seed('pods', pod('a'));
  server.seed('pods', pod('b'));
  t.equal((await call(server, 'GET', `${PODS}/b`)).code, 200);
  t.equal((await call(server, 'GET', `${PODS}/a`)).body.reason, 'TooManyRequests');
  const refused = await fetch(`${server.url}${PODS}/a`);
  t.equal(refused.headers.get('retry-after'), '2');
  t.equal((await call(server, 'GET', `${PODS}/a`)).code, 200);
});

test('an answer can be lost after the request was processed', async (t) => {
  const server = await started(t);
  server.inject({ verb: 'create' }, { do: 'lose-answer' }, 1);
  await t.rejects(call(server, 'POST', PODS, pod('a')));
  t.ok(server.read('pods', 'default', 'a'));
  t.equal((await call(server, 'POST', PODS, pod('a'))).body.reason, 'AlreadyExists');
});

test('faults break connections, truncate answers and falsify lists', async (t) => {
  const server = await started(t);
  server.seed('pods', pod('a'));
  server.inject({ verb: 'list' }, { do: 'reset' }, 1);
  server.inject({ verb: 'list' }, { do: 'truncate' }, 1);
  server.inject({ verb: 'list' }, { do: 'distort', change: (list) => ({ ...list, items: [] }) }, 1);
  server.inject({ verb: 'list' }, { do: 'answer', code: 200, body: '<html>' }, 1);
  await t.rejects(call(server, 'GET', PODS));
  await t.rejects(call(server, 'GET', PODS));
  t.same((await call(server, 'GET', PODS)).body.items, []);
  t.equal(await (await fetch(`${server.url}${PODS}`)).text(), '<html>');
  t.equal((await call(server, 'GET', PODS)).body.items?.length, 1);
});

test('a frozen server answers no request until it thaws, and then answers all of them', async (t) => {
  const server = await started(t);
  server.freeze();
  const answer = call(server, 'POST', PODS, pod('a'));
  const early = await Promise.race([answer, new Promise((resolve) => setTimeout(() => resolve('nothing'), 50))]);
  t.equal(early, 'nothing');
  server.thaw();
  t.equal((await answer).code, 201);
});

test('a stopped server refuses connections, and starts again on its port with its objects', async (t) => {
  const server = await started(t);
  server.seed('pods', pod('a'));
  const { port } = server;
  await server.stop();
  await t.rejects(call(server, 'GET', PODS));
  await server.start();
  t.equal(server.port, port);
  t.equal((await call(server, 'GET', PODS)).body.items?.length, 1);
});

test('watches can be ended, cut, silenced and sent false events', async (t) => {
  const server = await started(t);
  const watch = events(server, '/api/v1/pods?watch=1');
  const first = watch.next();
  await eventually(() => server.watches('pods').length > 0, 'the watch');
  server.watches()[0]?.send({ type: 'ADDED', object: pod('never') });
  t.equal((await first).value?.object.metadata.name, 'never');
  server.watches()[0]?.silence();
  server.seed('pods', pod('a'));
  server.watches()[0]?.end();
  t.equal((await watch.next()).done, true);

  const other = events(server, '/api/v1/pods?watch=1&resourceVersion=1000');
  t.equal((await other.next()).value?.object.metadata.name, 'a');
  server.watches()[0]?.cut();
  await t.rejects(other.next());
});

test('tokens identify users, and users can be denied', async (t) => {
  const server = await started(t, {
    tokens: new Map([['secret', 'ada']]),
    authorize: (user, request) => user === 'ada' && request.verb === 'list',
  });
  t.equal((await call(server, 'GET', PODS)).code, 401);
  t.equal((await call(server, 'GET', PODS, undefined, '', { authorization: 'Bearer secret' })).code, 200);
  const refused = await call(server, 'GET', `${PODS}/a`, undefined, '', { authorization: 'Bearer secret' });
  t.equal(refused.code, 403);
  t.match(refused.body.message, /User "ada" cannot get resource "pods"/);
});

test('admission refuses requests, and two requests that wait in it do not overwrite each other', async (t) => {
  const server = await started(t);
  server.seed('pods', pod('a'));
  server.admission = async (request) => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    return request.operation === 'CREATE' ? { code: 403, message: 'full' } : null;
  };
  t.match((await call(server, 'POST', PODS, pod('b'))).body.message, /denied the request: full/);
  const label = (key: string) =>
    call(server, 'PATCH', `${PODS}/a`, { metadata: { labels: { [key]: 'x' } } }, 'application/merge-patch+json');
  await Promise.all([label('one'), label('two'), label('three')]);
  t.same(server.read('pods', 'default', 'a')?.metadata.labels, { one: 'x', two: 'x', three: 'x' });
});

test('a custom resource definition adds a resource, with status and scale', async (t) => {
  const server = await started(t);
  await call(server, 'POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names: { plural: 'things', kind: 'Thing' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {}, scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' } },
        },
      ],
    },
  });
  const things = '/apis/example.com/v1/things';
  t.equal(
    (await call(server, 'POST', things, { metadata: { name: 'a' }, spec: { size: 1 }, status: { size: 9 } })).code,
    201,
  );
  t.equal(server.read('things', '', 'a')?.status, undefined);
  const scaled = await call(
    server,
    'PATCH',
    `${things}/a/scale`,
    { spec: { replicas: 4 } },
    'application/merge-patch+json',
  );
  t.same(scaled.body.spec, { replicas: 4 });
  t.same(server.read('things', '', 'a')?.spec, { size: 4 });
  t.equal(server.read('things', '', 'a')?.metadata.generation, 2);
});

test('an eviction is refused while the disruption budget does not allow it', async (t) => {
  const server = await started(t);
  server.seed('pods', { metadata: { name: 'a', labels: { app: 'x' } } });
  server.seed('poddisruptionbudgets', {
    metadata: { name: 'b' },
    spec: { selector: { matchLabels: { app: 'x' } } },
    status: { disruptionsAllowed: 0 },
  });
  t.equal((await call(server, 'POST', `${PODS}/a/eviction`, { metadata: { name: 'a' } })).code, 429);
  server.edit('poddisruptionbudgets', 'default', 'b', (budget) => ({ ...budget, status: { disruptionsAllowed: 1 } }));
  t.equal((await call(server, 'POST', `${PODS}/a/eviction`, { metadata: { name: 'a' } })).code, 201);
  t.equal(server.read('pods', 'default', 'a'), null);
});

test('requests are recorded in order', async (t) => {
  const server = await started(t);
  await call(server, 'POST', PODS, pod('a'));
  await call(server, 'GET', `${PODS}?limit=5`);
  t.match(server.requests, [
    { verb: 'create', resource: 'pods', namespace: 'default', name: null, body: /"name":"a"/ },
    { verb: 'list', query: { limit: '5' } },
  ]);
});
