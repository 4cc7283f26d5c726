/** The quota client, for controllers of others. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { KubeError, QuotaClient } from '../../src/kube/quota/quota-client.js';
import type { ConsumerFields, GroupFields, GroupReport, PolicyFields } from '../../src/kube/quota/quota-objects.js';
import type { AllocationStatus } from '../../src/kube/quota/allocation-object.js';
import type { ApiServer, ApiServerOptions } from '../harness/api-server/api-server.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { eventually } from '../harness/eventually.js';
import { manifestsOf, quotaServer } from '../quota-controller/setting.js';
import { scratchDirectory } from '../scratch.js';

async function opened(t: Test, options: ApiServerOptions = {}): Promise<[QuotaClient, ApiServer, string[]]> {
  const server = await quotaServer(options);
  const file = join(await scratchDirectory(t), 'kubeconfig');
  await writeFile(file, kubeconfig(server, {}));
  const logged: string[] = [];
  const note = (fields: object): void => void logged.push(JSON.stringify(fields));
  const client = await QuotaClient.open({ kubeconfig: file, log: { info: note, warn: note, error: note } });
  t.teardown(async () => {
    await client.close();
    await server.stop();
  });
  return [client, server, logged];
}

const seedGroup = (server: ApiServer, name: string, team: string): unknown =>
  server.seed('bizgroupresourcequotas', {
    metadata: { name, labels: { team } },
    spec: { hard: { 'limits.cpu': 4 } },
    status: { hard: { 'limits.cpu': '4' }, used: { 'limits.cpu': '3' } },
  });

test('quota objects are listed and read with types, and a missing one is null', async (t) => {
  const verbs = new Set<string>();
  const [quota, server] = await opened(t, { authorize: (_, { verb }) => verbs.add(verb) !== null });
  seedGroup(server, 'vision', 'a');
  seedGroup(server, 'speech', 'b');
  server.seed('consumers', { metadata: { name: 'shop' }, spec: { reserved: { 'requests.cpu': '2' } } });
  server.seed('allocations', { metadata: { name: 'shop' }, status: { deserved: { cpu: '2' } } });
  server.seed('quotapolicies', { metadata: { name: 'default' }, spec: { shareLimits: { percent: 150 } } });

  t.same((await quota.groups.list()).map(({ metadata }) => metadata.name).sort(), ['speech', 'vision']);
  const some = await quota.groups.list({ labelSelector: 'team=a' });
  t.same(
    some.map(({ metadata, status }) => [metadata.name, status?.used?.['limits.cpu']]),
    [['vision', '3']],
  );
  t.equal((await quota.consumers.get('shop'))?.spec.reserved?.['requests.cpu'], '2');
  t.equal((await quota.allocations.get('shop'))?.status?.deserved?.['cpu'], '2');
  t.equal((await quota.policies.get('default'))?.spec.shareLimits?.percent, 150);
  t.equal(await quota.groups.get('ghost'), null);
  t.same([...verbs].sort(), ['get', 'list'], 'nothing is written');
});

test('a cache follows the objects by name, and knows them when its listeners are told', async (t) => {
  const [quota, server] = await opened(t);
  seedGroup(server, 'vision', 'a');
  seedGroup(server, 'other', 'b');
  const cache = quota.groups.watch({ labelSelector: 'team=a' });
  const told: string[] = [];
  cache.onChange(({ before, after }) => {
    const name = (after ?? before)?.metadata.name ?? '';
    told.push(`${name} ${cache.get(name) === after ? (after?.status?.used?.['limits.cpu'] ?? 'gone') : 'unknown'}`);
  });
  t.equal(cache.get('vision'), null, 'nothing is known before the first list');
  await cache.whenSynced();
  t.ok(cache.synced);
  t.same(told, ['vision 3']);
  await eventually(() => cache.silentMs === 0, 'the watch');
  server.edit('bizgroupresourcequotas', '', 'vision', (group) => ({
    ...group,
    status: { used: { 'limits.cpu': '4' } },
  }));
  await eventually(() => told.length === 2, 'the change');
  server.remove('bizgroupresourcequotas', '', 'vision');
  await eventually(() => told.length === 3, 'the deletion');
  seedGroup(server, 'vision', 'a');
  await eventually(() => told.length === 4, 'the new group of that name');
  t.same(told, ['vision 3', 'vision 4', 'vision gone', 'vision 3']);
  t.same(
    cache.values().map(({ metadata }) => metadata.name),
    ['vision'],
  );
  await cache.stop();
  seedGroup(server, 'late', 'a');
  t.equal(cache.get('vision')?.metadata.name, 'vision', 'a stopped cache stays readable');
});

test('what may not be read is an error with a code, and a watch goes on once it may', async (t) => {
  let isAllowed = false;
  const [quota, server, logged] = await opened(t, { authorize: () => isAllowed });
  seedGroup(server, 'vision', 'a');
  for (const asked of [quota.groups.list(), quota.groups.get('vision')]) {
    const error: unknown = await asked.catch((failed: unknown) => failed);
    t.ok(error instanceof KubeError && error.code === 'forbidden', String(error));
  }
  const cache = quota.groups.watch();
  await eventually(() => logged.some((line) => line.includes('forbidden')), 'the failure to be logged');
  t.notOk(cache.synced);
  isAllowed = true;
  await cache.whenSynced();
  t.ok(cache.get('vision'));
});

test('the types have the fields of the definitions', (t) => {
  const fieldsOf = (kind: string, part: 'spec' | 'status'): readonly string[] => {
    const definition = manifestsOf('etc/quota/crds.yaml').find(
      ({ spec }) => (spec as { readonly names: { readonly kind: string } }).names.kind === kind,
    );
    type Schema = { readonly properties: Readonly<Record<string, { readonly properties: object }>> };
    const { versions } = definition?.spec as {
      readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[];
    };
    return Object.keys(versions[0]?.schema.openAPIV3Schema.properties[part]?.properties ?? {}).sort();
  };
  const fields = <T>(all: Readonly<Record<keyof Required<T>, true>>): readonly string[] => Object.keys(all).sort();
  t.same(
    fieldsOf('BizGroupResourceQuota', 'spec'),
    fields<GroupFields>({
      ...{ parentBizGroup: true, hard: true, fromNodes: true, namespaceSelector: true, defaultFor: true, mode: true },
      ...{ borrow: true, lend: true, weight: true, reclaim: true, preemption: true, grants: true, loans: true },
    }),
  );
  t.same(
    fieldsOf('BizGroupResourceQuota', 'status'),
    fields<GroupReport>({
      ...{ observedGeneration: true, hard: true, used: true, selfUsed: true, burnRate: true, uncertain: true },
      ...{ exhaustsAt: true, budget: true, budgets: true, grants: true, nodeLimits: true, borrowedHours: true },
      ...{ workloads: true, reservations: true, lastReconcileTime: true, conditions: true, waiting: true },
    }),
  );
  t.same(
    fieldsOf('Consumer', 'spec'),
    fields<ConsumerFields>({
      ...{ hard: true, reserved: true, weight: true, parent: true, preemption: true, system: true },
    }),
  );
  t.same(
    fieldsOf('Allocation', 'status'),
    fields<AllocationStatus>({
      ...{ hard: true, reserved: true, weight: true, deserved: true, allocated: true, pending: true },
      ...{ dominantShare: true, overused: true, wantedSince: true, reclaimAt: true, reclaimedFor: true },
      conditions: true,
    }),
  );
  t.same(
    fieldsOf('QuotaPolicy', 'spec'),
    fields<PolicyFields>({
      ...{ strictTypes: true, surge: true, storageCapacity: true, shareLimits: true, evictBeyondQuotaFirst: true },
      ...{ borrowedHours: true, requireLabel: true, consumers: true, families: true, types: true, kinds: true },
    }),
  );
  t.end();
});
