/** A user of one namespace whose pods name owners that do not own them, so that no group would be charged. */
import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import type { KubeAnswer } from '../../src/kube/client.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { eventually } from '../harness/eventually.js';
import { deployment, QuotaCluster } from '../quota-controller/cluster.js';

type Owner = readonly [apiVersion: string, kind: string, plural: string, name: string];

async function cluster(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start();
  t.teardown(() => on.stop());
  await on.createGroup('team', { 'limits.cpu': 10 });
  return on;
}

const controllerOf = (on: QuotaCluster, [apiVersion, kind, plural, name]: Owner): object[] => [
  { apiVersion, kind, name, uid: on.server.read(plural, 'default', name)?.metadata.uid, controller: true },
];

const podSpec = (cores: number): object => ({
  containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: cores } } }],
});

/** A ReplicaSet of a Deployment: with the Deployment's label, if the template has it. */
function replicaSet(on: QuotaCluster, name: string, of: string | null, replicas: number, cores: number): KubeObject {
  const { metadata, spec } = deployment(name, 'team', replicas, cores);
  const owner: Owner = ['apps/v1', 'Deployment', 'deployments', of ?? ''];
  const template = { metadata: { labels: { app: of ?? name, [GROUP_LABEL]: 'team' } }, spec: podSpec(cores) };
  return {
    metadata: {
      ...metadata,
      labels: { app: of ?? name, [GROUP_LABEL]: 'team' },
      ...(of === null ? {} : { ownerReferences: controllerOf(on, owner) }),
    },
    spec: { ...(spec as object), selector: { matchLabels: { app: of ?? name } }, template },
  };
}

const create = (on: QuotaCluster, plural: string, body: object): Promise<KubeAnswer> =>
  on.client.request({
    method: 'POST',
    path: `${plural === 'pods' ? '/api/v1' : '/apis/apps/v1'}/namespaces/default/${plural}`,
    body,
  });

function pod(
  on: QuotaCluster,
  name: string,
  app: string,
  owner: Owner,
  cores: number,
  finalizers: readonly string[] = [],
): Promise<KubeAnswer> {
  return create(on, 'pods', {
    metadata: { name, labels: { app, [GROUP_LABEL]: 'team' }, ownerReferences: controllerOf(on, owner), finalizers },
    spec: podSpec(cores),
  });
}

/** Deletes a pod; with finalizers it stays, terminating. */
const end = (on: QuotaCluster, name: string): Promise<KubeAnswer> =>
  on.client.request({ method: 'DELETE', path: `/api/v1/namespaces/default/pods/${name}` });

const rs = (name: string): Owner => ['apps/v1', 'ReplicaSet', 'replicasets', name];
const uses = (on: QuotaCluster, cores: string): Promise<unknown> =>
  eventually(() => on.used('team') === cores, `the group to use ${cores}`);

test('objects that controllers make are charged once, through the workload at the top', async (t) => {
  const on = await cluster(t);
  await on.deploy('web', 'team', 2, 2);
  t.match(await create(on, 'replicasets', replicaSet(on, 'web-1', 'web', 2, 2)), { ok: true });
  for (const name of ['web-1-a', 'web-1-b']) t.match(await pod(on, name, 'web', rs('web-1'), 2), { ok: true });
  await uses(on, '4');
  t.match(await on.deploy('more', 'team', 6, 1), { ok: true }, 'no object is charged twice');
  await uses(on, '10');
});

test('an owner without replicas covers no pod', async (t) => {
  const on = await cluster(t);
  await create(on, 'replicasets', replicaSet(on, 'empty', null, 0, 2));
  t.match(await pod(on, 'fits', 'empty', rs('empty'), 8), { ok: true });
  await uses(on, '8');
  t.match(await pod(on, 'over', 'empty', rs('empty'), 8), { ok: false, message: /QuotaExceeded/ });
});

test('an owner that is charged to no group, or makes no such objects, covers no pod', async (t) => {
  const on = await cluster(t);
  await on.deploy('free', '', 5, 100);
  await on.deploy('web', 'team', 1, 1);
  await uses(on, '1');
  const made = await create(on, 'replicasets', replicaSet(on, 'of-free', 'free', 3, 10));
  t.match(made, { ok: false, message: /QuotaExceeded/ }, 'the owner is an unlabelled Deployment');
  const asPod: Owner = ['apps/v1', 'Deployment', 'deployments', 'web'];
  t.match(
    await pod(on, 'direct', 'web', asPod, 10),
    { ok: false, message: /QuotaExceeded/ },
    'the owner has the wrong kind',
  );
  await create(on, 'replicasets', replicaSet(on, 'web-1', 'web', 1, 1));
  t.match(
    await pod(on, 'stranger', 'something-else', rs('web-1'), 10),
    { ok: false, message: /QuotaExceeded/ },
    "the owner's selector does not select these labels",
  );
});

test('an owned object is charged for what exceeds its owner: more resources, and more pods', async (t) => {
  const on = await cluster(t);
  await on.deploy('web', 'team', 2, 2);
  await create(on, 'replicasets', replicaSet(on, 'web-1', 'web', 2, 2));
  await uses(on, '4');
  t.match(await pod(on, 'large', 'web', rs('web-1'), 50), { ok: false, message: /QuotaExceeded/ });
  t.match(await pod(on, 'larger', 'web', rs('web-1'), 5), { ok: true });
  await uses(on, '7');
  t.match(await create(on, 'replicasets', replicaSet(on, 'web-2', 'web', 9, 2)), {
    ok: false,
    message: /QuotaExceeded/,
  });
  t.match(await create(on, 'replicasets', replicaSet(on, 'web-3', 'web', 3, 2)), { ok: true });
  await uses(on, '9');
});

test('pods that end after their owner was scaled to zero are charged once, and until they are gone', async (t) => {
  const on = await cluster(t);
  await on.deploy('web', 'team', 1, 2);
  await create(on, 'replicasets', replicaSet(on, 'web-1', 'web', 1, 2));
  await pod(on, 'made', 'web', rs('web-1'), 2, ['test/stay']);
  // This pod is charged when the watch delivers it, and the watch delivers the other pod before.
  const labels = { [GROUP_LABEL]: 'team' };
  await on.unguarded(() => create(on, 'pods', { metadata: { name: 'observed', labels }, spec: podSpec(1) }));
  await uses(on, '3');
  await on.scale('web', 0);
  await on.client.request({
    method: 'PATCH',
    path: '/apis/apps/v1/namespaces/default/replicasets/web-1',
    contentType: 'application/merge-patch+json',
    body: { spec: { replicas: 0 } },
  });
  await end(on, 'made');
  await pod(on, 'by-hand', 'web', rs('web-1'), 3, ['test/stay']);
  await uses(on, '6');
  await end(on, 'by-hand');
  await on.deploy('last', 'team', 1, 1);
  await uses(on, '7');
  t.not(on.server.read('pods', 'default', 'by-hand'), null);
});
