import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { openClusterLedger } from '../../../src/quota-controller/ledger/open-cluster-ledger.js';
import type { KubeAnswer } from '../../../src/kube/client.js';
import { eventually } from '../../harness/eventually.js';
import type { KubeObject } from '../../harness/api-server/kube-object.js';
import { deployment, QuotaCluster } from '../cluster.js';

const APPS = '/apis/apps/v1/namespaces/default';
const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';

const spec = (cpu: number): object => ({
  nodeName: 'node1',
  containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu }, requests: { cpu } } }],
});

/** A group of 4 cores on two replicas. */
async function cluster(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(2);
  t.teardown(() => on.stop());
  t.match(await on.createGroup('team', { 'limits.cpu': 4 }), { ok: true });
  return on;
}

/** Waits until the ledger charges the group this many cores. */
const uses = (on: QuotaCluster, cores: number): Promise<unknown> =>
  eventually(
    async () => (await openClusterLedger(on.client)).status('team')?.used.get('limits.cpu') === BigInt(cores * 1000),
    `${cores} cores to be charged`,
  );

/** Long enough for an observed change to be charged. */
const settled = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 300));

const create = (on: QuotaCluster, path: string, body: object): Promise<KubeAnswer> =>
  on.client.request({ method: 'POST', path, body });

function ownedBy(on: QuotaCluster, resource: string, apiVersion: string, kind: string, name: string): object {
  const uid = on.server.read(resource, 'default', name)?.metadata.uid ?? '';
  return { ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }] };
}

/** A pod that a controller made: without a webhook, and without the label of a group. */
function addPod(on: QuotaCluster, name: string, owner: object, cpu = 1, more: object = {}): void {
  on.server.seed('pods', { metadata: { name, ...owner, ...more }, spec: spec(cpu), status: { phase: 'Running' } });
}

const edit = (on: QuotaCluster, resource: string, name: string, change: (object: KubeObject) => KubeObject): void =>
  void on.server.edit(resource, 'default', name, change);

const orphan = (on: QuotaCluster, resource: string, name: string): void =>
  edit(on, resource, name, (object) => ({ ...object, metadata: { ...object.metadata, ownerReferences: [] } }));

/** A deleted pod runs until its grace period is over. */
const terminate = (on: QuotaCluster, name: string): void =>
  edit(on, 'pods', name, (pod) => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: '2026-11-28T00:00:00Z', finalizers: ['example.com/grace'] },
  }));

const endPod = (on: QuotaCluster, name: string): void => {
  edit(on, 'pods', name, (pod) => ({ ...pod, metadata: { ...pod.metadata, finalizers: [] } }));
  on.server.remove('pods', 'default', name);
};

/** A Deployment of the group, its ReplicaSet and its pods; only the Deployment has the label. */
async function deployed(t: Test, on: QuotaCluster, name: string, replicas: number): Promise<object> {
  t.match(await on.deploy(name, 'team', replicas, 1), { ok: true });
  on.server.seed('replicasets', {
    ...deployment(`${name}-rs`, '', replicas, 1),
    metadata: { name: `${name}-rs`, ...ownedBy(on, 'deployments', 'apps/v1', 'Deployment', name) },
  });
  const owner = ownedBy(on, 'replicasets', 'apps/v1', 'ReplicaSet', `${name}-rs`);
  for (let index = 0; index < replicas; index++) addPod(on, `${name}-${index}`, owner);
  return owner;
}

test('the pods of one owner, in sum, are covered up to its count', async (t) => {
  const on = await cluster(t);
  const labels = { app: 's', [GROUP_LABEL]: 'team' };
  const template = { metadata: { labels }, spec: spec(1) };
  const set = { replicas: 1, serviceName: 's', selector: { matchLabels: { app: 's' } }, template };
  t.match(await create(on, `${APPS}/statefulsets`, { metadata: { name: 's', labels }, spec: set }), { ok: true });
  const owner = ownedBy(on, 'statefulsets', 'apps/v1', 'StatefulSet', 's');
  const pod = (name: string): object => ({ metadata: { name, labels, ...owner }, spec: spec(1) });
  t.match(await create(on, PODS, pod('s-0')), { ok: true });
  await uses(on, 1);
  for (const [index, name] of ['one', 'two', 'three'].entries()) {
    const answer = await create(on, PODS, pod(name));
    t.ok(answer.ok, `${name} has room${answer.ok ? '' : `, but: ${answer.message}`}`);
    await uses(on, index + 2);
  }
  t.match(await create(on, PODS, pod('four')), { ok: false, message: /QuotaExceeded/ });
  // A controller takes itself off pods that are not its own, and keeps those that are.
  for (const [name, after] of [
    ['one', 4],
    ['two', 4],
    ['three', 4],
    ['s-0', 5],
  ] as const) {
    const body = { metadata: { ownerReferences: null } };
    t.match(
      await on.client.request({ method: 'PATCH', path: `${PODS}/${name}`, contentType: MERGE, body }),
      { ok: true },
      `${name} is released`,
    );
    await uses(on, after);
  }
  for (const name of ['one', 'two', 'three', 's-0']) endPod(on, name);
  await uses(on, 1);
});

test('pods without a label that no webhook saw are charged beyond the count of their owner', async (t) => {
  const on = await cluster(t);
  const owner = await deployed(t, on, 'web', 2);
  await uses(on, 2);
  for (const name of ['a', 'b', 'c']) addPod(on, name, owner, 2);
  await uses(on, 8);
  t.match(await on.scale('web', 4), { ok: false, message: /QuotaExceeded/ }, 'pods of another size are not covered');
  for (const name of ['a', 'b', 'c']) endPod(on, name);
  await uses(on, 2);
  t.match(await on.scale('web', 4), { ok: true });
  await uses(on, 4);
});

test('a pod covers no pods that name it as their owner', async (t) => {
  const on = await cluster(t);
  const labels = { [GROUP_LABEL]: 'team' };
  t.match(await create(on, PODS, { metadata: { name: 'driver', labels }, spec: spec(1) }), { ok: true });
  const owner = ownedBy(on, 'pods', 'v1', 'Pod', 'driver');
  for (const name of ['a', 'b', 'c'])
    t.match(await create(on, PODS, { metadata: { name, labels, ...owner }, spec: spec(1) }), { ok: true });
  await uses(on, 4);
  const more = { metadata: { name: 'd', labels, ...owner }, spec: spec(1) };
  t.match(await create(on, PODS, more), { ok: false, message: /QuotaExceeded/ });
});

test('what a deleted owner leaves behind stays charged, over restarts too', async (t) => {
  const on = await cluster(t);
  await deployed(t, on, 'web', 2);
  await uses(on, 2);
  // As --cascade=orphan: the garbage collector takes the reference off, and then the owner goes.
  orphan(on, 'replicasets', 'web-rs');
  on.server.remove('deployments', 'default', 'web');
  await settled();
  await uses(on, 2);
  t.match(await on.deploy('web', 'team', 3, 1), { ok: false, message: /QuotaExceeded/ });
  // What was left behind goes on: it is scaled by hand, restarted, and released by its own end.
  const rs = ownedBy(on, 'replicasets', 'apps/v1', 'ReplicaSet', 'web-rs');
  edit(on, 'replicasets', 'web-rs', (object) => ({ ...object, spec: { ...(object.spec as object), replicas: 3 } }));
  await uses(on, 3);
  for (const service of [...on.services]) await on.leave(service);
  addPod(on, 'web-2', rs);
  addPod(on, 'web-3', rs);
  await on.join({ refreshMs: 100 });
  await uses(on, 4);
  on.server.remove('replicasets', 'default', 'web-rs');
  await settled();
  await uses(on, 4);
  for (const index of [0, 1, 2, 3]) endPod(on, `web-${index}`);
  await uses(on, 0);
});

test('an owner is released only after what came loose from it is charged', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ othersMs: 400 });
  t.match(await on.createGroup('team', { 'limits.cpu': 4 }), { ok: true });
  const template = { metadata: { labels: { app: 's' } }, spec: spec(1) };
  const set = { replicas: 2, serviceName: 's', selector: { matchLabels: { app: 's' } }, template };
  const labels = { [GROUP_LABEL]: 'team' };
  t.match(await create(on, `${APPS}/statefulsets`, { metadata: { name: 's', labels }, spec: set }), { ok: true });
  for (const name of ['s-0', 's-1']) addPod(on, name, ownedBy(on, 'statefulsets', 'apps/v1', 'StatefulSet', 's'));
  await deployed(t, on, 'web', 2);
  await uses(on, 4);
  for (const name of ['s-0', 's-1']) orphan(on, 'pods', name);
  orphan(on, 'replicasets', 'web-rs');
  // The watches of different kinds show this in any order.
  await settled();
  on.server.remove('statefulsets', 'default', 's');
  on.server.remove('deployments', 'default', 'web');
  let least = Infinity;
  await eventually(async () => {
    const ledger = await openClusterLedger(on.client);
    least = Math.min(least, Number(ledger.status('team')?.used.get('limits.cpu') ?? 0n) / 1000);
    const names = ledger.charges('team').map(({ workload }) => workload);
    return names.length === 3 && !names.some((name) => /Deployment|StatefulSet/.test(name));
  }, 'the owners to be released');
  t.ok(least >= 4, `${least} cores at least`);
});

test('an owner that was deleted while no replica ran leaves its pods charged', async (t) => {
  const on = await cluster(t);
  await deployed(t, on, 'web', 3);
  await uses(on, 3);
  for (const service of [...on.services]) await on.leave(service);
  on.server.remove('deployments', 'default', 'web');
  await on.join();
  await uses(on, 3);
  on.server.remove('replicasets', 'default', 'web-rs');
  for (const index of [0, 1]) endPod(on, `web-${index}`);
  await uses(on, 1);
});

test('what came loose while no replica ran is charged after the start', async (t) => {
  const on = await cluster(t);
  await deployed(t, on, 'web', 1);
  await deployed(t, on, 'api', 1);
  await deployed(t, on, 'site', 1);
  addPod(on, 'bare', {}, 1);
  await uses(on, 3);
  for (const service of [...on.services]) await on.leave(service);
  // As --cascade=orphan of the Deployment, of the Deployment and its ReplicaSet, and a pod that was relabelled.
  orphan(on, 'replicasets', 'web-rs');
  on.server.remove('deployments', 'default', 'web');
  orphan(on, 'pods', 'api-0');
  on.server.remove('replicasets', 'default', 'api-rs');
  on.server.remove('deployments', 'default', 'api');
  orphan(on, 'pods', 'site-0');
  await on.join();
  await uses(on, 4);
  endPod(on, 'site-0');
  await uses(on, 3);
  // Once it is charged by itself, that holds over further restarts.
  for (const service of [...on.services]) await on.leave(service);
  await on.join();
  await uses(on, 3);
  endPod(on, 'api-0');
  on.server.remove('replicasets', 'default', 'web-rs');
  endPod(on, 'web-0');
  await uses(on, 1);
});

test('a pod that leaves its owner is charged beside the pod in its place', async (t) => {
  const on = await cluster(t);
  const owner = await deployed(t, on, 'web', 2);
  await uses(on, 2);
  orphan(on, 'pods', 'web-0');
  await uses(on, 3);
  addPod(on, 'web-2', owner);
  await settled();
  await uses(on, 3);
  // Adopted again in place of another one.
  endPod(on, 'web-2');
  edit(on, 'pods', 'web-0', (pod) => ({ ...pod, metadata: { ...pod.metadata, ...owner } }));
  await uses(on, 2);
});

test('pods are charged until they are gone, not until their owner wants them no more', async (t) => {
  const on = await cluster(t);
  await deployed(t, on, 'web', 4);
  await uses(on, 4);
  t.match(await on.scale('web', 0), { ok: true });
  for (const index of [0, 1, 2, 3]) terminate(on, `web-${index}`);
  await settled();
  await uses(on, 4);
  t.match(await on.scale('web', 4), { ok: false, message: /QuotaExceeded/ });
  t.match(await on.deploy('next', 'team', 1, 1), { ok: false, message: /QuotaExceeded/ });
  endPod(on, 'web-0');
  endPod(on, 'web-1');
  await uses(on, 2);
  t.match(await on.scale('web', 2), { ok: true });
  await uses(on, 4);
  await on.remove('web');
  t.match(await on.deploy('web', 'team', 3, 1), { ok: false, message: /QuotaExceeded/ }, 'the same name again');
  on.server.remove('replicasets', 'default', 'web-rs');
  endPod(on, 'web-2');
  endPod(on, 'web-3');
  await uses(on, 0);
  t.match(await on.deploy('web', 'team', 4, 1), { ok: true });
});

test('a finished job is charged for the pods that outlive it', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  on.server.define({
    group: 'kubeflow.org',
    version: 'v1',
    plural: 'pytorchjobs',
    kind: 'PyTorchJob',
    namespaced: true,
  });
  await on.join();
  await on.createGroup('team', { 'limits.cpu': 4 });
  const role = (replicas: number): object => ({ replicas, template: { spec: spec(1) } });
  const path = '/apis/kubeflow.org/v1/namespaces/default/pytorchjobs';
  const job = { pytorchReplicaSpecs: { Master: role(1), Worker: role(3) } };
  t.match(await create(on, path, { metadata: { name: 'train', labels: { [GROUP_LABEL]: 'team' } }, spec: job }), {
    ok: true,
  });
  const owner = ownedBy(on, 'pytorchjobs', 'kubeflow.org/v1', 'PyTorchJob', 'train');
  for (const name of ['master', 'w0', 'w1', 'w2']) addPod(on, name, owner);
  await uses(on, 4);
  edit(on, 'pods', 'master', (pod) => ({ ...pod, status: { phase: 'Succeeded' } }));
  const conditions = [{ type: 'Succeeded', status: 'True' }];
  edit(on, 'pytorchjobs', 'train', (object) => ({ ...object, status: { conditions } }));
  await uses(on, 3);
  for (const name of ['w0', 'w1', 'w2']) edit(on, 'pods', name, (pod) => ({ ...pod, status: { phase: 'Failed' } }));
  await uses(on, 0);
});
