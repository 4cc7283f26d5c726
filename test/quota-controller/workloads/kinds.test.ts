import { test } from 'tap';
import { silentLog } from '../../../src/host/log.js';
import { KNOWN_KINDS, GROUP_LABEL } from '../../../src/quota/internal.js';
import { failure } from '../../../src/kube/failure.js';
import type { KubeApi } from '../../../src/kube/client.js';
import { ServedKinds } from '../../../src/quota-controller/workloads/served-kinds.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { deployment, QuotaCluster } from '../cluster.js';
import { clientTo, quotaServer } from '../setting.js';

const ROLLOUTS = {
  metadata: { name: 'rollouts.argoproj.io' },
  spec: {
    group: 'argoproj.io',
    scope: 'Namespaced',
    names: { plural: 'rollouts', singular: 'rollout', kind: 'Rollout', listKind: 'RolloutList' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

test('a kind that is installed later is watched, and its charges are released when it is removed', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ kindsMs: 20 });
  await on.createGroup('team', { 'limits.cpu': 10, 'cash/limits.cpu': 1000 });
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  on.server.seed('customresourcedefinitions', ROLLOUTS);
  await eventually(() => on.server.watches('rollouts').length > 0, 'rollouts to be followed');
  t.match(
    await on.client.request({
      method: 'POST',
      path: '/apis/argoproj.io/v1alpha1/namespaces/default/rollouts',
      body: { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', ...deployment('blue', 'team', 3, 1) },
    }),
    { ok: true },
  );
  await eventually(() => on.used('team') === '4', 'the rollout to be charged');
  const rollout = on.server.read('rollouts', 'default', 'blue');
  t.equal(rollout?.metadata.labels?.[GROUP_LABEL], 'team');
  on.server.remove('customresourcedefinitions', '', 'rollouts.argoproj.io');
  await eventually(() => on.used('team') === '1', 'only the deployment to be charged');
  t.equal(on.server.watches('rollouts').length, 0);
  on.server.seed('customresourcedefinitions', ROLLOUTS);
  await eventually(() => on.server.watches('rollouts').length > 0, 'rollouts to be followed again');
});

test('kinds stay known while discovery fails, and discovery is retried', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  t.teardown(async () => {
    client.close();
    await server.stop();
  });
  const clock = new ManualClock();
  let [asked, isDown] = [0, false];
  const api: KubeApi = {
    request: async (request) => {
      asked++;
      return isDown ? failure('server-error', 'down') : client.request(request);
    },
  };
  const served = await ServedKinds.read({ api, log: silentLog(), clock, evaluators: () => KNOWN_KINDS });
  const told: (readonly string[])[] = [];
  let failed = 0;
  served.onChange((kinds) => {
    if (failed++ === 0) throw new Error('not now');
    told.push(kinds.map(({ path }) => path));
  });
  served.start();
  const until = (what: string, condition: () => boolean): Promise<unknown> =>
    eventually(() => {
      clock.advance(30_000);
      return condition();
    }, what);
  const first = served.kinds;
  server.seed('customresourcedefinitions', ROLLOUTS);
  isDown = true;
  const before = asked;
  await until('it to be asked in vain', () => asked > before + 60);
  t.equal(served.kinds, first);
  t.equal(failed, 0);
  isDown = false;
  await until('whoever could not follow to be told again', () => told.length > 0);
  t.same(
    told.map((paths) => paths.includes('/apis/argoproj.io/v1alpha1/rollouts')),
    [true],
  );
  const later = asked;
  await until('it to be asked again', () => asked > later + 60);
  t.equal(told.length, 1, 'told once');
  await served.stop();
});

const definition = (group: string, version: string, kind: string, plural: string, subresources: object = {}) => ({
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        subresources,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

const review = (resource: { group: string; version: string; resource: string }, request: object) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', resource, namespace: 'default', userInfo: { username: 'tester' }, ...request },
});

const template = (cpu: string | number) => ({
  spec: { containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu } } }] },
});

test('the scale of a custom resource is reviewed with the replica field of its definition', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  on.server.seed(
    'customresourcedefinitions',
    definition('kubeflow.org', 'v1', 'PyTorchJob', 'pytorchjobs', {
      scale: {
        specReplicasPath: '.spec.pytorchReplicaSpecs.Worker.replicas',
        statusReplicasPath: '.status.replicaStatuses.Worker.active',
      },
    }),
  );
  await on.join();
  await on.createGroup('team', { 'limits.cpu': 4 });
  on.server.seed('pytorchjobs.kubeflow.org', {
    metadata: { name: 'train', labels: { [GROUP_LABEL]: 'team' } },
    spec: { pytorchReplicaSpecs: { Worker: { replicas: 2, template: template(1) } } },
  });
  await eventually(() => on.used('team') === '2', 'two workers to be charged');
  const scaled = async (replicas: number) => {
    const scale = (count: number) => ({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'train', namespace: 'default' },
      spec: { replicas: count },
    });
    return (
      await on.ask(
        '/scale',
        review(
          { group: 'kubeflow.org', version: 'v1', resource: 'pytorchjobs' },
          { subResource: 'scale', name: 'train', operation: 'UPDATE', object: scale(replicas), oldObject: scale(2) },
        ),
      )
    ).response;
  };
  t.match(await scaled(100), { allowed: false, status: { message: /QuotaExceeded/ } });
  t.match(await scaled(4), { allowed: true });
  const { response } = await on.ask(
    '/autoscalers',
    review(
      { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' },
      {
        name: 'hpa',
        operation: 'CREATE',
        object: {
          metadata: { name: 'hpa', namespace: 'default' },
          spec: {
            scaleTargetRef: { apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob', name: 'train' },
            maxReplicas: 9,
          },
        },
      },
    ),
  );
  t.match(response, { allowed: false, status: { message: /QuotaExceeded/ } });
});

test('a Rollout is charged for the template of the workload that it references', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  on.server.seed('customresourcedefinitions', ROLLOUTS);
  await on.join();
  await on.createGroup('team', { 'limits.cpu': 6 });
  on.server.seed('deployments', deployment('web', '', 0, 2));
  const rollout = (replicas: number, uid: string) => ({
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Rollout',
    metadata: { name: 'blue', namespace: 'default', uid, labels: { [GROUP_LABEL]: 'team' } },
    spec: { replicas, workloadRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } },
  });
  const created = async (replicas: number) =>
    (
      await on.ask(
        '/workloads',
        review(
          { group: 'argoproj.io', version: 'v1alpha1', resource: 'rollouts' },
          { name: 'blue', operation: 'CREATE', object: rollout(replicas, 'u-1') },
        ),
      )
    ).response;
  t.match(await created(4), { allowed: false, status: { message: /QuotaExceeded/ } });
  t.match(await created(3), { allowed: true });
  on.server.seed('rollouts.argoproj.io', rollout(3, 'u-1'));
  await eventually(() => on.used('team') === '6', 'the Rollout to be charged');
});

test('an object that cannot be evaluated may only shrink, lose finalizers or be deleted', async (t) => {
  const on = await QuotaCluster.start(1);
  t.teardown(() => on.stop());
  await on.createGroup('team', { 'limits.cpu': 10 });
  const object = deployment('old', 'team', 3, 1);
  const unread = {
    ...object,
    metadata: { ...object.metadata, finalizers: ['example.com/slow'] },
    spec: { ...(object.spec as object), template: template('12e20') },
  };
  on.server.seed('deployments', unread);
  t.match(await on.patch('old', { metadata: { annotations: { a: 'b' } } }), { ok: true });
  t.match(await on.patch('old', { spec: { replicas: 2 } }), { ok: true });
  t.match(await on.scale('old', 1), { ok: true });
  t.match(await on.patch('old', { spec: { replicas: 5 } }), { ok: false });
  t.match(await on.scale('old', 5), { ok: false });
  t.match(await on.patch('old', { spec: { template: { metadata: { labels: { more: 'x' } } } } }), { ok: false });
  t.match(await on.remove('old'), { ok: true });
  t.match(await on.patch('old', { metadata: { finalizers: null } }), { ok: true });
  await eventually(() => on.server.read('deployments', 'default', 'old') === null, 'it to go');
});
