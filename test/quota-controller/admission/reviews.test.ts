import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { inheritConfiguration } from '../../../src/quota-controller/admission/quota-webhooks.js';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';

async function start(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start();
  t.teardown(() => on.stop());
  await on.createGroup('team', { 'limits.cpu': 10 });
  return on;
}

const ask = async (on: QuotaCluster, path: string, request: object) =>
  (
    await on.ask(path, {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: { uid: 'u', operation: 'UPDATE', namespace: 'default', ...request },
    })
  ).response;

const pod = (name: string, cores: number, metadata: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'default', name, uid: `uid-${name}`, resourceVersion: '1', ...metadata },
  spec: {
    containers: [{ name: 'main', resources: { limits: { cpu: String(cores) }, requests: { cpu: String(cores) } } }],
  },
});
const RESIZE = { resource: { group: '', resource: 'pods' }, subResource: 'resize' };

test('a resized pod is charged for its growth', async (t) => {
  const on = await start(t);
  const labels = { labels: { [GROUP_LABEL]: 'team' } };
  const seeded = on.server.seed('pods', pod('alone', 1, labels));
  const before = pod('alone', 1, seeded.metadata);
  await eventually(() => on.used('team') === '1', 'the pod to be charged');
  const resized = (cores: number) =>
    ask(on, '/resize', { ...RESIZE, name: 'alone', oldObject: before, object: pod('alone', cores, seeded.metadata) });
  t.match(await resized(64), { allowed: false, status: { message: /limits\.cpu=63/ } });
  t.match(await resized(8), { allowed: true });
});

const gpuPod = (name: string, annotations: Readonly<Record<string, string>>, metadata: object) => {
  const amounts = { cpu: '1', 'tencent.com/vcuda-core': '30', 'tencent.com/vcuda-memory': '4' };
  const plain = pod(name, 1, metadata);
  return {
    ...plain,
    metadata: { ...plain.metadata, annotations },
    spec: { containers: [{ name: 'main', resources: { limits: amounts, requests: amounts } }] },
  };
};
const UPDATE = { resource: { group: '', resource: 'pods' } };

test('a larger share of a GPU for a running pod is charged or refused', async (t) => {
  const on = await start(t);
  await on.createGroup('gpus', { 'requests.tencent.com/vcuda-core': 60 });
  const labels = { labels: { [GROUP_LABEL]: 'gpus' } };
  const seeded = on.server.seed('pods', gpuPod('alone', {}, labels));
  const charged = () => on.used('gpus', 'requests.tencent.com/vcuda-core');
  await eventually(() => charged() === '30', 'the pod to be charged');
  const resized = (cores: string) =>
    ask(on, '/workloads', {
      ...UPDATE,
      name: 'alone',
      oldObject: gpuPod('alone', {}, seeded.metadata),
      object: gpuPod('alone', { 'tencent.com/vcuda-core-resize': cores }, seeded.metadata),
    });
  t.match(await resized('80'), { allowed: false, status: { message: /vcuda-core=20/ } });
  t.match(await resized('60'), { allowed: true });
  on.server.edit('pods', 'default', 'alone', (object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: { 'tencent.com/vcuda-core-resize': '60' } },
  }));
  await eventually(() => charged() === '60', 'the larger share to be charged');
  on.server.edit('pods', 'default', 'alone', (object) => ({
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { 'tencent.com/vcuda-resize-status': '{"main":{"cores":50,"memoryBlocks":4}}' },
    },
  }));
  await eventually(() => charged() === '50', 'what the container still has to be charged');
});

test('a template charges the share that its pods ask for when they run', async (t) => {
  const on = await start(t);
  await on.createGroup('gpus', { 'requests.tencent.com/vcuda-core': 60 });
  const { metadata, spec } = gpuPod('x', { 'tencent.com/vcuda-core-resize': 'main=80' }, {});
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    ...deployment('web', 'gpus', 1, 1),
    spec: { replicas: 1, template: { metadata: { annotations: metadata.annotations }, spec } },
  };
  t.match(
    await ask(on, '/workloads', { operation: 'CREATE', resource: { group: 'apps', resource: 'deployments' }, object }),
    { allowed: false, status: { message: /vcuda-core=80/ } },
  );
});

test('a pod of a workload grows only by its template', async (t) => {
  const on = await start(t);
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  const owner = (kind: string, name: string, uid: string | undefined) => ({
    ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid, controller: true }],
  });
  const web = on.server.read('deployments', 'default', 'web')?.metadata.uid;
  const set = on.server.seed('replicasets', {
    ...deployment('web-1', '', 1, 1),
    metadata: { name: 'web-1', namespace: 'default', ...owner('Deployment', 'web', web) },
  });
  const owned = owner('ReplicaSet', 'web-1', set.metadata.uid);
  const seeded = on.server.seed('pods', pod('web-1-a', 2, owned));
  const resized = (cores: number) =>
    ask(on, '/resize', {
      ...RESIZE,
      name: 'web-1-a',
      oldObject: pod('web-1-a', 2, seeded.metadata),
      object: pod('web-1-a', cores, seeded.metadata),
    });
  t.match(await resized(64), {
    allowed: false,
    status: { message: /Deployment default\/web is charged to group team/ },
  });
  t.match(await resized(1), { allowed: true }, 'it may shrink');
  on.server.seed('pods', pod('free', 1, {}));
  t.match(
    await ask(on, '/resize', { ...RESIZE, name: 'free', oldObject: pod('free', 1, {}), object: pod('free', 64, {}) }),
    { allowed: true },
    'it belongs to no group',
  );
});

test('Jobs of a CronJob inherit its group and types', async (t) => {
  const on = await start(t);
  const labels = { [GROUP_LABEL]: 'team', [`${GROUP_LABEL}/gpu-type`]: 'T4', app: 'x' };
  const inherited = async (jobTemplate: object): Promise<unknown> => {
    const { patch } = (await ask(on, '/inherit', {
      resource: { group: 'batch', resource: 'cronjobs' },
      name: 'nightly',
      object: { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'nightly', labels }, spec: { jobTemplate } },
    })) as { readonly patch?: string };
    return patch === undefined ? null : JSON.parse(Buffer.from(patch, 'base64').toString());
  };
  const wanted = { [GROUP_LABEL]: 'team', [`${GROUP_LABEL}/gpu-type`]: 'T4' };
  t.same(await inherited({ spec: {} }), [
    { op: 'add', path: '/spec/jobTemplate/metadata', value: {} },
    { op: 'add', path: '/spec/jobTemplate/metadata/labels', value: wanted },
  ]);
  t.same(await inherited({ metadata: { labels: { app: 'job', [GROUP_LABEL]: 'other' } } }), [
    { op: 'add', path: '/spec/jobTemplate/metadata/labels', value: { app: 'job', ...wanted } },
  ]);
  t.equal(await inherited({ metadata: { labels: wanted } }), null);
  const { webhooks } = inheritConfiguration({
    name: 'q',
    target: { url: 'https://127.0.0.1:1' },
    authority: 'PEM',
    kinds: [],
    unlabelled: 'Ignore',
  });
  t.match(webhooks, [
    { rules: [{ resources: ['cronjobs'] }], objectSelector: { matchExpressions: [{ key: GROUP_LABEL }] } },
  ]);
});
