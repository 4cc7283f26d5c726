import { test, type Test } from 'tap';
import { issue } from '../../../src/kube/admission/webhook-identity.js';
import { sharedCertificate } from '../../../src/kube/admission/certificate-secret.js';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';
import { clientTo, quotaServer } from '../setting.js';

async function cluster(t: Test, replicas = 1): Promise<QuotaCluster> {
  const started = await QuotaCluster.start(replicas);
  t.teardown(() => started.stop());
  return started;
}

const HOUR = 3_600_000;
const ago = (hours: number): string => new Date(Date.now() - hours * HOUR).toISOString().replace(/\.\d+Z$/, 'Z');
const uidOf = (on: QuotaCluster, resource: string, name: string): string =>
  on.server.read(resource, 'default', name)?.metadata.uid ?? '';
const cash = (on: QuotaCluster): number => Number(on.used('team', 'cash/limits.cpu') ?? NaN);

/** A pod of a Deployment's ReplicaSet, scheduled some hours ago. */
function addPod(on: QuotaCluster, name: string, owner: string, hours: number, cores: number): void {
  const controller = (kind: string, of: string, uid: string) => [
    { apiVersion: 'apps/v1', kind, name: of, uid, controller: true },
  ];
  if (on.server.read('replicasets', 'default', `${owner}-rs`) === null) {
    on.server.seed('replicasets', {
      metadata: {
        name: `${owner}-rs`,
        ownerReferences: controller('Deployment', owner, uidOf(on, 'deployments', owner)),
      },
    });
  }
  on.server.seed('pods', {
    metadata: {
      name,
      ownerReferences: controller('ReplicaSet', `${owner}-rs`, uidOf(on, 'replicasets', `${owner}-rs`)),
    },
    spec: { nodeName: 'node1', containers: [{ name: 'main', resources: { limits: { cpu: cores } } }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: ago(hours) }],
    },
  });
}

test('hours count from the scheduling of a pod to its end, and an exhausted budget refuses growth without stopping pods', async (t) => {
  const on = await cluster(t);
  await on.createGroup('team', { 'limits.cpu': 100, 'cash/limits.cpu': 100 });
  t.match(await on.deploy('web', 'team', 2, 4), { ok: true });
  addPod(on, 'web-0', 'web', 10, 4);
  await eventually(() => Math.floor(cash(on)) === 40, 'forty core-hours');
  t.equal(on.condition('team', 'CashLow'), 'False');
  addPod(on, 'web-1', 'web', 11, 4);
  await eventually(() => Math.floor(cash(on)) === 84, 'eighty-four');
  await eventually(() => on.condition('team', 'CashLow') === 'True', 'the warning');
  await eventually(() => on.server.all('events').some(({ reason }) => reason === 'Cash80Percent'), 'the event');
  addPod(on, 'web-2', 'web', 5, 4);
  await eventually(() => on.condition('team', 'CashExhausted') === 'True', 'the budget to be spent');
  await eventually(() => on.server.all('events').some(({ reason }) => reason === 'Cash100Percent'), 'the event');
  t.match(await on.scale('web', 3), { ok: false, message: /CashExhausted/ });
  t.match(await on.scale('web', 1), { ok: true });
});

test('a finished or deleted pod stops counting, even if that happened while no replica watched', async (t) => {
  const on = await cluster(t);
  await on.createGroup('team', { 'limits.cpu': 100, 'cash/limits.cpu': 1000 });
  await on.deploy('web', 'team', 3, 4);
  for (const name of ['ends', 'goes', 'vanishes']) addPod(on, name, 'web', 10, 4);
  const burning = (rate: string): Promise<unknown> =>
    eventually(
      () =>
        (on.statusOf('team')['burnRate'] as Readonly<Record<string, string>> | undefined)?.['cash/limits.cpu'] === rate,
      `a rate of ${rate}`,
    );
  await burning('12');
  on.server.edit('pods', 'default', 'ends', (pod) => ({
    ...pod,
    status: {
      ...(pod.status as object),
      phase: 'Succeeded',
      containerStatuses: [{ state: { terminated: { finishedAt: ago(5) } } }],
    },
  }));
  await burning('8');
  t.equal(Math.floor(cash(on)), 100, 'five hours of one, ten of the others');
  on.server.remove('pods', 'default', 'goes');
  await burning('4');
  const [service] = on.services;
  if (service !== undefined) await on.leave(service);
  on.server.remove('pods', 'default', 'vanishes');
  await on.join();
  await burning('0');
  t.equal(Math.floor(cash(on)), 100);
});

test('one replica leads; when it stops, another one takes over and reports', async (t) => {
  const on = await cluster(t, 2);
  await eventually(() => on.services.some(({ leading }) => leading), 'a leader');
  t.equal(on.services.filter(({ leading }) => leading).length, 1);
  await on.createGroup('team', { 'limits.cpu': 10 });
  await eventually(() => on.used('team') === '0', 'the report');
  const leader = on.services.find(({ leading }) => leading);
  if (leader !== undefined) await on.leave(leader);
  await eventually(() => on.services.some(({ leading }) => leading), 'the next leader');
  t.match(await on.deploy('web', 'team', 3, 1), { ok: true });
  await eventually(() => on.used('team') === '3', 'its report');
});

test('a group under deletion stays until its workloads are gone, and admits nothing', async (t) => {
  const on = await cluster(t);
  await on.createGroup('company', { 'limits.cpu': 10 });
  await on.createGroup('team', { 'limits.cpu': 4 }, 'company');
  await on.deploy('web', 'team', 2, 1);
  await eventually(
    () =>
      on.used('team') === '2' &&
      (on.server.read('bizgroupresourcequotas', '', 'team')?.metadata.finalizers ?? []).length === 1,
    'the finalizer',
  );
  await on.unguarded(() => on.deleteGroup('team'));
  await eventually(() => on.condition('team', 'Terminating') === 'True', 'the condition');
  t.match(await on.scale('web', 3), { ok: false, message: /GroupTerminating/ });
  t.equal(on.used('company'), '4', 'what it has is still its own');
  on.server.edit('deployments', 'default', 'web', (object) => ({
    ...object,
    metadata: { ...object.metadata, finalizers: ['example.com/slow'] },
  }));
  await on.remove('web');
  await new Promise((resolve) => setTimeout(resolve, 400));
  t.not(
    on.server.read('bizgroupresourcequotas', '', 'team'),
    null,
    'its use ends when its objects are gone, not when that is asked for',
  );
  on.server.remove('deployments', 'default', 'web');
  await eventually(() => on.server.read('bizgroupresourcequotas', '', 'team') === null, 'the group to go');
  await eventually(() => on.used('company') === '0', 'the parent to have it back');
});

test('pods and ReplicaSets are charged only if their owners are not charged for them', async (t) => {
  const on = await cluster(t);
  await on.createGroup('team', { 'limits.cpu': 4 });
  await on.deploy('web', 'team', 2, 1);
  const owned = (name: string, uid: string) => ({
    ...deployment(name, 'team', 2, 1),
    metadata: {
      name,
      labels: { app: 'web', [GROUP_LABEL]: 'team' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid, controller: true }],
    },
  });
  const create = (body: object) =>
    on.client.request({ method: 'POST', path: '/apis/apps/v1/namespaces/default/replicasets', body });
  t.match(await create(owned('real', uidOf(on, 'deployments', 'web'))), { ok: true });
  await eventually(() => on.used('team') === '2', 'only the deployment to be charged');
  t.match(await create(owned('forged', 'made-up')), { ok: true });
  await eventually(() => on.used('team') === '4', 'the forged one to be charged');
  t.match(await create(owned('another', 'made-up')), { ok: false, message: /QuotaExceeded/ });
});

test('a refresh finds changes without events', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ refreshMs: 200 });
  await on.createGroup('team', { 'limits.cpu': 4 });
  await on.deploy('web', 'team', 2, 1);
  await eventually(() => on.used('team') === '2', 'the use');
  for (const watch of on.server.watches('deployments')) watch.silence();
  on.server.remove('deployments', 'default', 'web');
  await eventually(() => on.used('team') === '0', 'the refresh to notice');
});

test('replicas share one certificate and replace it before it expires', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  t.teardown(async () => {
    client.close();
    await server.stop();
  });
  const options = {
    api: client,
    namespace: 'kube-system',
    name: 'tls',
    hosts: ['quota.kube-system.svc'],
    issue,
    now: Date.now,
  };
  const [one, two] = await Promise.all([sharedCertificate(options), sharedCertificate(options)]);
  t.same(one, two);
  t.equal(
    (await sharedCertificate({ ...options, now: () => Date.now() + 300 * 86_400_000 })).certificate,
    one.certificate,
  );
  t.not(
    (await sharedCertificate({ ...options, now: () => Date.now() + 350 * 86_400_000 })).certificate,
    one.certificate,
  );
  t.not((await sharedCertificate({ ...options, hosts: ['127.0.0.1'] })).certificate, one.certificate);
});
