/** Groups that pay for the objects of namespaces that name no group. */
import { test, type Test } from 'tap';
import { GROUPS_PATH } from '../../../src/kube/quota/names.js';
import { readEntry } from '../../../src/quota-command/bundle.js';
import { offlineReviews } from '../../../src/quota-controller/offline/offline-reviews.js';
import { DefaultGroups } from '../../../src/quota-controller/policy/default-groups.js';
import { webhookConfiguration } from '../../../src/quota-controller/admission/quota-webhooks.js';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';

const OPEN = { namespaceSelector: {} };

async function cluster(t: Test): Promise<QuotaCluster> {
  const started = await QuotaCluster.start();
  t.teardown(() => started.stop());
  for (const name of ['default', 'team-a', 'team-b'])
    started.server.seed('namespaces', { metadata: { name, labels: { team: name.slice(-1) } } });
  return started;
}

async function group(cluster: QuotaCluster, name: string, spec: object): Promise<{ readonly message: string }> {
  const body = { metadata: { name }, spec: { hard: { 'limits.cpu': 4 }, ...OPEN, ...spec } };
  const answer = await cluster.client.request({ method: 'POST', path: GROUPS_PATH, body });
  return { message: answer.ok ? '' : answer.message };
}

const createIn = async (
  { client }: QuotaCluster,
  namespace: string,
  name: string,
  replicas: number,
  label = '',
): Promise<string> => {
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
  const answer = await client.request({ method: 'POST', path, body: deployment(name, label, replicas, 1) });
  return answer.ok ? '' : answer.message;
};

test('a group is charged for the unlabelled workloads of the namespaces that it names, also for those that run', async (t) => {
  const quota = await cluster(t);
  t.equal(await createIn(quota, 'team-a', 'early', 1), '');
  await group(quota, 'other', {});
  t.same(await group(quota, 'payer', { defaultFor: { namespaces: ['team-a'] } }), { message: '' });
  quota.defaultNamespaces.add('team-a');
  await eventually(() => quota.used('payer') === '1', 'the workload that ran before to be charged');

  t.equal(await createIn(quota, 'team-a', 'second', 2), '');
  t.match(await createIn(quota, 'team-a', 'third', 2), /QuotaExceeded|limits\.cpu/);
  t.equal(await createIn(quota, 'team-a', 'labelled', 1, 'other'), '', 'the label comes first');
  t.equal(await createIn(quota, 'team-b', 'elsewhere', 9), '', 'another namespace is not charged');
  await eventually(() => quota.used('payer') === '3' && quota.used('other') === '1', 'both groups to be charged');

  await quota.client.request({ method: 'DELETE', path: '/apis/apps/v1/namespaces/team-a/deployments/early' });
  await eventually(() => quota.used('payer') === '2', 'the deleted workload to be released');
});

test('pods are covered by their owners, of every group, and bare pods are charged', async (t) => {
  const quota = await cluster(t);
  await group(quota, 'other', {});
  await group(quota, 'payer', { defaultFor: { namespaces: ['team-a'] } });
  quota.defaultNamespaces.add('team-a');
  const pod = (name: string, owner: object | null): object => ({
    metadata: {
      name,
      labels: { app: 'x' },
      ...(owner === null ? {} : { ownerReferences: [{ controller: true, ...owner }] }),
    },
    spec: { containers: [{ name: 'main', resources: { limits: { cpu: 1 } } }] },
  });
  const create = async (resource: string, body: object): Promise<string> => {
    const path = `${resource === 'pods' ? '/api/v1' : '/apis/apps/v1'}/namespaces/team-a/${resource}`;
    const answer = await quota.client.request({ method: 'POST', path, body });
    if (!answer.ok) return answer.message;
    return (answer.body as { readonly metadata: { readonly uid: string } }).metadata.uid;
  };
  for (const [name, label] of [
    ['mine', ''],
    ['theirs', 'other'],
  ] as const) {
    const set = deployment(name, label, 1, 1);
    const uid = await create('statefulsets', {
      ...set,
      spec: { ...(set.spec as object), selector: { matchLabels: { app: 'x' } } },
    });
    await create('pods', pod(`${name}-0`, { apiVersion: 'apps/v1', kind: 'StatefulSet', name, uid }));
  }
  await create('pods', pod('bare', null));
  await eventually(() => quota.used('payer') === '2', 'the set and the bare pod to be charged');
  await eventually(() => quota.used('other') === '1', 'the labelled set to be charged');
  t.equal(quota.used('payer'), '2');
});

test('a namespace moves between groups by its labels and by the groups, and its workloads with it', async (t) => {
  const quota = await cluster(t);
  t.equal(await createIn(quota, 'team-b', 'web', 2), '');
  await group(quota, 'alpha', { defaultFor: { namespaceSelector: { matchLabels: { team: 'a' } } } });
  await group(quota, 'beta', {});
  const relabel = (team: string): void =>
    void quota.server.edit('namespaces', '', 'team-b', (object) => ({
      ...object,
      metadata: { ...object.metadata, labels: { team } },
    }));
  relabel('a');
  await eventually(() => quota.used('alpha') === '2', 'the selected namespace to be charged');
  await quota.updateGroup('beta', { 'limits.cpu': 4 }, { defaultFor: { namespaces: ['team-b'] } });
  await eventually(() => quota.used('beta') === '2' && quota.used('alpha') === '0', 'the list to come first');
  await quota.updateGroup('beta', { 'limits.cpu': 4 }, { defaultFor: null });
  relabel('b');
  await eventually(() => quota.used('beta') === '0' && quota.used('alpha') === '0', 'nobody to pay for it');
});

test('a replica that starts charges unlabelled workloads from its first list', async (t) => {
  const quota = await cluster(t);
  await group(quota, 'payer', { defaultFor: { namespaces: ['team-a'] } });
  const [service] = quota.services;
  if (service !== undefined) await quota.leave(service);
  await quota.unguarded(() => createIn(quota, 'team-a', 'meanwhile', 3));
  await quota.join();
  await eventually(() => quota.used('payer') === '3', 'the workload to be charged');
});

test('a namespace has one payer: a second list of it, and the system namespaces, are refused', async (t) => {
  const quota = await cluster(t);
  t.same(await group(quota, 'first', { defaultFor: { namespaces: ['team-a'] } }), { message: '' });
  await eventually(async () => {
    const { message } = await group(quota, 'second', { defaultFor: { namespaces: ['team-b', 'team-a'] } });
    return /NamespaceTaken: .*group first pays .* team-a already; remove it there first/u.test(message);
  }, 'the second group to be refused');
  const system = await group(quota, 'third', { defaultFor: { namespaces: ['kube-system'] } });
  t.match(system.message, /NamespaceTaken: .*found kube-system, which the cluster or this service needs; leave it out/);
});

test('naming a namespace lets it use the group, but not past the selectors of groups above', async (t) => {
  const quota = await cluster(t);
  await group(quota, 'root', { namespaceSelector: { matchLabels: { team: 'b' } } });
  await group(quota, 'child', {
    parentBizGroup: 'root',
    namespaceSelector: { matchLabels: { team: 'x' } },
    defaultFor: { namespaces: ['team-a', 'team-b'] },
  });
  for (const name of ['team-a', 'team-b']) quota.defaultNamespaces.add(name);
  await eventually(
    async () => (await createIn(quota, 'team-a', 'web', 1)).includes('namespace team-a may not use'),
    'it',
  );
  t.equal(await createIn(quota, 'team-b', 'web', 1), '');
});

test('of several groups the one that lists a namespace pays, else the first by name; the system pays nothing', async (t) => {
  const defaults = new DefaultGroups('quota');
  for (const name of ['kube-system', 'quota', 'a', 'b']) defaults.namespaceChanged(name, { all: 'yes' });
  const selector = { namespaces: [], namespaceSelector: { matchLabels: { all: 'yes' } } };
  t.equal(defaults.isUsed, false);
  t.ok(defaults.groupChanged('two', selector));
  t.ok(defaults.groupChanged('one', selector));
  t.ok(defaults.groupChanged('zoo', { namespaces: ['b', 'new'], namespaceSelector: null }));
  t.notOk(defaults.groupChanged('zoo', { namespaces: ['b', 'new'], namespaceSelector: null }));
  t.same(
    ['kube-system', 'quota', 'a', 'b', 'new', 'unknown'].map((name) => defaults.groupOf(name)),
    ['', '', 'one', 'zoo', 'zoo', ''],
  );
  t.same(defaults.namespacesOf('zoo'), ['b', 'new']);
  t.match(defaults.othersOf('two', selector)[0], /selects namespaces of other groups.*a \(one\), b \(zoo\)/u);
});

test('the webhooks review unlabelled objects of exactly the namespaces that groups name', async (t) => {
  const { webhooks } = webhookConfiguration({
    name: 'quota',
    target: { url: 'https://127.0.0.1' },
    authority: '',
    kinds: [],
    unlabelled: 'Ignore',
    ownNamespace: 'quota',
    defaultFor: [
      { namespaces: ['b'], namespaceSelector: { matchLabels: { team: 'a' } } },
      { namespaces: ['a'], namespaceSelector: { matchLabels: { team: 'a' } } },
    ],
  }) as { readonly webhooks: readonly { readonly name: string; readonly namespaceSelector?: unknown }[] };
  const exempt = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system', 'quota'] };
  const found = webhooks.filter(({ name }) => name.startsWith('default-'));
  t.match(found, [
    {
      namespaceSelector: {
        matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['a', 'b'] }, exempt],
      },
      objectSelector: { matchExpressions: [{ key: GROUP_LABEL, operator: 'DoesNotExist' }] },
      failurePolicy: 'Ignore',
    },
    { namespaceSelector: { matchLabels: { team: 'a' }, matchExpressions: [exempt] } },
  ]);
  t.equal(found.length, 2);
});

test('what-if charges unlabelled objects of manifests as the webhooks of such a cluster would', async (t) => {
  const kind = 'BizGroupResourceQuota';
  const spec = { hard: { 'limits.cpu': 4 }, defaultFor: { namespaceSelector: { matchLabels: { team: 'a' } } } };
  const web = { apiVersion: 'apps/v1', kind: 'Deployment', ...deployment('web', '', 2, 1) };
  const { reviews } = await offlineReviews([
    { apiVersion: 'quota.gpu-manager.io/v1', kind, metadata: { name: 'payer' }, spec },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a', labels: { team: 'a' } } },
  ]);
  const entryIn = (namespace: string): ReturnType<typeof readEntry> =>
    readEntry({ ...web, metadata: { ...web.metadata, namespace } }, reviews);
  t.match(await entryIn('team-a'), { is: 'workload', evaluation: { ok: true, demand: { group: 'payer' } } });
  t.match(await entryIn('team-b'), { is: 'unreviewed', reason: /the label .* is missing/ });
});
