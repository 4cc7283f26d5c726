/** Whether groups without a selector are open, decided at the first start in a cluster. */
import { test, type Test } from 'tap';
import { silentLog } from '../../../src/host/log.js';
import {
  GROUPS_WITHOUT_SELECTOR_KEY,
  groupsWithoutSelectorAreOpen,
} from '../../../src/quota-controller/policy/groups-without-selector.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { clientTo, quotaServer } from '../setting.js';

const LEASE = 'gpu-manager-quota';
const NAMESPACE = 'kube-system';

/** A cluster, and what a replica that starts in it decides. */
async function cluster(t: Test): Promise<{ readonly server: ApiServer; readonly start: () => Promise<boolean> }> {
  const server = await quotaServer();
  const api = clientTo(server.url);
  t.teardown(async () => {
    api.close();
    await server.stop();
  });
  const start = (): Promise<boolean> =>
    groupsWithoutSelectorAreOpen({ api, namespace: NAMESPACE, lease: LEASE, log: silentLog() });
  return { server, start };
}

const group = (server: ApiServer, name: string, more: object): void =>
  void server.seed('bizgroupresourcequotas', { metadata: { name }, spec: { hard: { 'limits.cpu': 1 }, ...more } });

const marked = (server: ApiServer): string | undefined =>
  server.read('leases', NAMESPACE, LEASE)?.metadata.annotations?.[GROUPS_WITHOUT_SELECTOR_KEY];

test('a new cluster is closed, and stays closed when a root without a selector is made later', async (t) => {
  const { server, start } = await cluster(t);
  t.equal(await start(), false);
  t.equal(marked(server), 'closed');
  group(server, 'late', {});
  t.equal(await start(), false);
});

test('a cluster where every namespace uses a group by omission stays open, also when its groups change', async (t) => {
  const { server, start } = await cluster(t);
  group(server, 'chosen', { namespaceSelector: {} });
  group(server, 'open', {});
  t.equal(await start(), true);
  t.equal(marked(server), 'open');
  server.edit('bizgroupresourcequotas', '', 'open', (object) => ({
    ...object,
    spec: { hard: { 'limits.cpu': 1 }, namespaceSelector: {} },
  }));
  t.equal(await start(), true);
});

test('a cluster whose roots all have selectors is closed', async (t) => {
  const { server, start } = await cluster(t);
  group(server, 'root', { namespaceSelector: { matchLabels: { team: 'a' } } });
  group(server, 'child', { parentBizGroup: 'root' });
  t.equal(await start(), false);
});

test('replicas that start at once decide alike, and keep what the Lease says', async (t) => {
  const { server, start } = await cluster(t);
  const spec = { holderIdentity: 'another', leaseDurationSeconds: 15 };
  server.seed('leases', { metadata: { name: LEASE, namespace: NAMESPACE, annotations: { kept: 'yes' } }, spec });
  t.same(await Promise.all([start(), start(), start()]), [false, false, false]);
  t.match(server.read('leases', NAMESPACE, LEASE), { metadata: { annotations: { kept: 'yes' } }, spec });
});

test('a decision that cannot be kept is made from the groups, and an unreadable Lease is an error', async (t) => {
  const { server, start } = await cluster(t);
  const unwritable = server.inject({ verb: 'create', resource: 'leases' }, { do: 'answer', code: 403 });
  t.equal(await start(), false);
  group(server, 'open', {});
  t.equal(await start(), true);
  unwritable.remove();
  server.inject({ verb: 'get', resource: 'leases' }, { do: 'answer', code: 403 });
  await t.rejects(start(), /the Lease gpu-manager-quota cannot be read/);
});
