import { test, type Test } from 'tap';
import type { KubeClient } from '../../../src/kube/client.js';
import { GROUPS_PATH, itemPath } from '../../../src/kube/quota/names.js';
import { clientTo, quotaServer } from '../setting.js';

async function server(t: Test): Promise<KubeClient> {
  const started = await quotaServer();
  const client = clientTo(started.url);
  t.teardown(async () => {
    client.close();
    await started.stop();
  });
  return client;
}

const create = (client: KubeClient, name: string, spec: object) =>
  client.request({ method: 'POST', path: GROUPS_PATH, body: { metadata: { name }, spec } });
const patch = (client: KubeClient, name: string, spec: object) =>
  client.request({
    method: 'PATCH',
    path: itemPath(GROUPS_PATH, name),
    contentType: 'application/merge-patch+json',
    body: { spec },
  });

test('the API server itself refuses invalid groups before it calls a webhook', async (t) => {
  const client = await server(t);
  t.match(
    await create(client, 'team', {
      hard: { 'limits.cpu': 4, 'limits.memory': '8Gi' },
      mode: 'elastic',
      borrow: { 'limits.cpu': 2 },
    }),
    { ok: true },
  );
  t.match(await create(client, 'no-limits', {}), { ok: false, message: /spec\.hard: Required value/ });
  t.match(await create(client, 'odd', { hard: { 'limits.cpu': 1.5 } }), {
    ok: false,
    message: /must be of type integer or string/,
  });
  t.match(await create(client, 'odd', { hard: {}, mode: 'rubber' }), {
    ok: false,
    message: /Unsupported value: "rubber"/,
  });
  for (const mode of [{}, { mode: 'carved' }]) {
    t.match(await create(client, 'hoard', { hard: {}, lend: { 'limits.cpu': 2 }, ...mode }), {
      ok: false,
      message: /only elastic groups borrow and lend/,
    });
  }
  t.match(await create(client, 'plain', { hard: {}, mode: 'carved', lend: {} }), { ok: true });
  t.match(await create(client, 'x'.repeat(64), { hard: {} }), { ok: false, message: /63 characters at most/ });
});

test('a group does not move to another parent by any kind of request', async (t) => {
  const client = await server(t);
  await create(client, 'child', { parentBizGroup: 'root', hard: {} });
  await create(client, 'root', { hard: {} });
  for (const parentBizGroup of ['other', '', null])
    t.match(await patch(client, 'child', { parentBizGroup }), { ok: false, message: /groups do not move/ });
  t.match(await patch(client, 'root', { parentBizGroup: 'child' }), { ok: false, message: /groups do not move/ });
  t.match(await patch(client, 'root', { parentBizGroup: '' }), { ok: true });
  t.match(await patch(client, 'child', { hard: { pods: 3 } }), { ok: true });
});

test('fields outside the schema are dropped', async (t) => {
  const client = await server(t);
  t.strictSame(
    (
      (await create(client, 'team', { hard: { pods: 1 }, colour: 'red' })) as {
        readonly body: { readonly spec: unknown };
      }
    ).body.spec,
    { hard: { pods: 1 } },
  );
});
