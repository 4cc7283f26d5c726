/** A user of one namespace who labels workloads with the group of another team. */
import { test, type Test } from 'tap';
import type { KubeAnswer } from '../../src/kube/client.js';
import type { LabelSelector } from '../../src/manifests/label-selector.js';
import { GROUPS_PATH } from '../../src/kube/quota/names.js';
import { eventually } from '../harness/eventually.js';
import { deployment, QuotaCluster } from '../quota-controller/cluster.js';

async function cluster(t: Test, options: { readonly openGroups?: boolean } = {}): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  for (const [name, team] of [
    ['vision', 'vision'],
    ['speech', 'speech'],
    ['lab', 'none'],
  ] as const)
    on.server.seed('namespaces', { metadata: { name, labels: { team, 'kubernetes.io/metadata.name': name } } });
  await on.join(options);
  return on;
}

function group(
  on: QuotaCluster,
  name: string,
  namespaceSelector: LabelSelector | null,
  parentBizGroup = '',
): Promise<KubeAnswer> {
  const spec = { parentBizGroup, hard: { 'limits.cpu': 10 } };
  return on.client.request({
    method: 'POST',
    path: GROUPS_PATH,
    body: { metadata: { name }, spec: namespaceSelector === null ? spec : { ...spec, namespaceSelector } },
  });
}

let made = 0;
const deploy = (on: QuotaCluster, namespace: string, to: string): Promise<KubeAnswer> =>
  on.client.request({
    method: 'POST',
    path: `/apis/apps/v1/namespaces/${namespace}/deployments`,
    body: deployment(`web-${made++}`, to, 1, 1),
  });

test('a group is charged by the namespaces that it selects, and by no others', async (t) => {
  const on = await cluster(t);
  await group(on, 'vision', { matchLabels: { team: 'vision' } });
  await group(on, 'both', { matchExpressions: [{ key: 'team', operator: 'In', values: ['vision', 'speech'] }] });
  await group(on, 'by-name', { matchLabels: { 'kubernetes.io/metadata.name': 'lab' } });
  t.match(await deploy(on, 'vision', 'vision'), { ok: true });
  t.match(await deploy(on, 'speech', 'vision'), {
    ok: false,
    code: 'forbidden',
    message: /NamespaceNotAllowed: namespace speech may not use group vision: its namespaceSelector does not select it/,
  });
  t.match(await deploy(on, 'speech', 'both'), { ok: true });
  t.match(await deploy(on, 'lab', 'both'), { ok: false });
  t.match(await deploy(on, 'lab', 'by-name'), { ok: true });
  await eventually(() => on.used('vision') === '1', 'one workload to be charged');
});

test('a group excludes the namespaces that its parents exclude, and adds no restriction without a selector', async (t) => {
  const on = await cluster(t);
  await group(on, 'research', { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['none'] }] });
  await group(on, 'images', null, 'research');
  await group(on, 'wide', {}, 'research');
  await group(on, 'sound', { matchLabels: { team: 'speech' } }, 'research');
  t.match(await deploy(on, 'vision', 'images'), { ok: true }, 'the group admits all namespaces of its parent');
  t.match(await deploy(on, 'lab', 'images'), {
    ok: false,
    message: /the namespaceSelector of group research above it/,
  });
  t.match(await deploy(on, 'lab', 'wide'), { ok: false }, 'the group admits no namespace beyond its parent');
  t.match(await deploy(on, 'vision', 'sound'), { ok: false });
});

test('groups without a selector are open by default, or closed by configuration', async (t) => {
  const open = await cluster(t);
  await group(open, 'team', null);
  t.match(await deploy(open, 'lab', 'team'), { ok: true });
  const closed = await cluster(t, { openGroups: false });
  await group(closed, 'team', null);
  t.match(await deploy(closed, 'lab', 'team'), { ok: false, message: /no namespace may use group team/ });
  await group(closed, 'other', {});
  t.match(await deploy(closed, 'lab', 'other'), { ok: true });
});

test('a namespace that loses its label cannot grow, and its workloads may shrink and end', async (t) => {
  const on = await cluster(t);
  await group(on, 'vision', { matchLabels: { team: 'vision' } });
  const path = '/apis/apps/v1/namespaces/vision/deployments';
  await on.client.request({ method: 'POST', path, body: deployment('kept', 'vision', 3, 1) });
  on.server.edit('namespaces', '', 'vision', (object) => ({ ...object, metadata: { ...object.metadata, labels: {} } }));
  const scale = (replicas: number): Promise<KubeAnswer> =>
    on.client.request({
      method: 'PATCH',
      path: `${path}/kept/scale`,
      contentType: 'application/merge-patch+json',
      body: { spec: { replicas } },
    });
  t.match(await scale(4), { ok: false, message: /NamespaceNotAllowed/ });
  t.match(await scale(1), { ok: true });
  await eventually(() => on.used('vision') === '1', 'what is left to be charged');
  t.match(await on.client.request({ method: 'DELETE', path: `${path}/kept` }), { ok: true });
});

test('the webhook admits a new root without a selector with a warning', async (t) => {
  const on = await cluster(t);
  const review = (name: string, spec: object) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'r',
      operation: 'CREATE',
      resource: { group: 'quota.gpu-manager.io', resource: 'bizgroupresourcequotas' },
      name,
      object: { metadata: { name }, spec: { hard: { 'limits.cpu': 1 }, ...spec } },
    },
  });
  const asked = async (name: string, spec: object): Promise<object> =>
    (await on.ask('/groups', review(name, spec))).response;
  t.match(await asked('open', {}), { allowed: true, warnings: [/group open has no namespaceSelector/] });
  t.notOk('warnings' in (await asked('chosen', { namespaceSelector: {} })));
});
