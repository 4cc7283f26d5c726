import { test } from 'tap';
import { agentObject, nodeObject, podObject } from './cluster-objects.js';
import { runningConsole, type RunningConsole } from './fixture.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

function seed(server: ApiServer): void {
  server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 }));
  for (const namespace of ['research', 'vision', 'ads'])
    server.seed('pods', podObject(`pod-of-${namespace}`, { namespace, node: 'gpu-node-1', gpus: [0] }));
}

interface Told {
  readonly rows: {
    readonly nodes: readonly { readonly name: string }[];
    readonly pods: readonly { readonly namespace: string }[];
  };
}

async function told(console: RunningConsole, user: string): Promise<{ nodes: string[]; namespaces: string[] }> {
  const { rows } = (await (await console.get('/api/cluster', user)).json()) as Told;
  return { nodes: rows.nodes.map(({ name }) => name), namespaces: rows.pods.map(({ namespace }) => namespace).sort() };
}

test('a user sees the namespaces whose pods it may list, and nodes if it may list them', async (t) => {
  const console = await runningConsole(t, seed);
  t.same(await told(console, 'operator'), { nodes: ['gpu-node-1'], namespaces: ['ads', 'research', 'vision'] });
  t.same(await told(console, 'researcher'), { nodes: [], namespaces: ['research', 'vision'] });
  t.same(await told(console, 'technician'), { nodes: ['gpu-node-1'], namespaces: [] });
  const refused = await console.get('/api/cluster', 'stranger');
  t.equal(refused.status, 403);
  t.match(await refused.text(), /stranger may list neither nodes, nor pods of a namespace with GPUs/);
});

test('data needs a token that the cluster knows, and the files of the page need none', async (t) => {
  const console = await runningConsole(t, seed);
  for (const path of ['/api/cluster', '/api/stream', '/api/whoami'])
    for (const user of [null, 'unknown', 'operator\u007f'.slice(0, 8) + '!', 'a b'])
      t.equal((await console.get(path, user)).status, 401, `${path} ${String(user)}`);
  for (const path of ['/', '/page/main.js', '/page/dom.js', '/page/console.css', '/healthz'])
    t.equal((await console.get(path, null)).status, 200, path);
  t.equal((await console.get('/page/../rows.ts', null)).status, 404);
  t.equal((await fetch(`${console.base}/api/cluster`, { method: 'POST' })).status, 405);
});

test('answers of the API server are asked for once a minute, not with each request', async (t) => {
  const console = await runningConsole(t, seed);
  await told(console, 'researcher');
  const before = console.server.reviewed;
  for (let at = 0; at < 5; at++) await told(console, 'researcher');
  t.equal(console.server.reviewed, before);
});

test('without an API server that answers, nobody new sees anything', async (t) => {
  const console = await runningConsole(t, seed);
  await told(console, 'operator');
  await console.server.stop();
  t.equal((await console.get('/api/cluster', 'operator')).status, 200, 'rights that are known hold for a minute');
  const unknown = await console.get('/api/cluster', 'researcher');
  t.equal(unknown.status, 503);
  t.match(await unknown.text(), /the token cannot be reviewed now: unreachable/);
});

test('a console without token review listens on loopback only', async (t) => {
  await t.rejects(
    runningConsole(t, seed, { tokenReview: false, address: '0.0.0.0' }),
    /--no-token-review shows the whole cluster to everybody who reaches 0\.0\.0\.0/,
  );
  const console = await runningConsole(t, seed, { tokenReview: false });
  t.equal((await console.get('/api/cluster', null)).status, 200);
});

test('the document of an agent shows each reader the containers of its namespaces', async (t) => {
  const allocations = ['research', 'ads'].map((namespace) => ({ id: namespace, owners: [{ namespace }], slices: [] }));
  const agent = createServer((request, response) => {
    response.end(JSON.stringify({ path: request.url, gpus: [], allocations: [...allocations, { owners: [] }] }));
  });
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => agent.close(resolve)));
  const console = await runningConsole(t, (server) => {
    seed(server);
    server.seed('pods', agentObject('gpu-node-1'));
    server.reach = () => (agent.address() as AddressInfo).port;
  });
  const read = async (user: string) =>
    (await (await console.get('/api/node?name=gpu-node-1', user)).json()) as {
      readonly document: { readonly path: string; readonly allocations: readonly { readonly id?: string }[] };
    };
  t.match(await read('operator'), { ok: true, document: { path: '/api/node' } });
  t.equal((await read('operator')).document.allocations.length, 3);
  t.same(
    (await read('lead')).document.allocations.map(({ id }) => id),
    ['research'],
  );
  t.same((await read('technician')).document.allocations, []);
  t.equal((await console.get('/api/node?name=gpu-node-1', 'researcher')).status, 403);
  t.equal((await console.get('/api/node?name=..%2F..%2Fsecrets', 'operator')).status, 404);
});

test('a node without an agent is said to have none', async (t) => {
  const console = await runningConsole(t, seed);
  t.match(await (await console.get('/api/node?name=gpu-node-1')).json(), {
    ok: false,
    reason: 'no agent runs on gpu-node-1',
  });
});

test('the document names all modules of the page, so that a browser loads them at once', async (t) => {
  const console = await runningConsole(t, seed);
  const link = (await console.get('/', null)).headers.get('link') ?? '';
  const named = [...link.matchAll(/<(page\/[\w-]+\.js)>; rel=modulepreload/gu)].map(([, path = '']) => path);
  t.equal(new Set(named).size, named.length);
  t.ok(named.includes('page/main.js') && named.includes('page/topology.js'));
  t.notOk(named.includes('page/container.js'), 'the console does not use it');
  for (const path of named) {
    const file = await console.get(`/${path}`, null);
    t.equal(file.status, 200, path);
    for (const [, imported] of (await file.text()).matchAll(/ from '\.\/(.+?)'/gu))
      t.ok(named.includes(`page/${imported}`), `${path} imports ${imported}`);
    t.equal(file.headers.get('link'), null);
  }
});
