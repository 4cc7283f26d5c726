import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';

const APPS = '/apis/apps/v1/namespaces/default';

async function cluster(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(1);
  t.teardown(() => on.stop());
  await on.createGroup('team', { 'limits.cpu': 4 });
  return on;
}

const uses = (on: QuotaCluster, cores: string): Promise<unknown> =>
  eventually(() => on.used('team') === cores, `${cores} cores to be used`);
const uidOf = (on: QuotaCluster, resource: string, name: string): string =>
  on.server.read(resource, 'default', name)?.metadata.uid ?? '';
/** Long enough for an observed change to be reconciled. */
const resolvePending = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 300));

/** A ReplicaSet that names a group, controlled by a Deployment. */
function replicaSet(name: string, owner: string, uid: string): ReturnType<typeof deployment> {
  const bare = deployment(name, 'team', 2, 1);
  return {
    ...bare,
    metadata: {
      ...bare.metadata,
      labels: { ...bare.metadata.labels, app: owner },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: owner, uid, controller: true }],
    },
  };
}

for (const finalizer of ['foregroundDeletion', 'example.com/slow']) {
  test(`what is being deleted is charged until it is gone: held by ${finalizer}`, async (t) => {
    const on = await cluster(t);
    t.match(await on.deploy('web', 'team', 4, 1), { ok: true });
    await uses(on, '4');
    on.server.edit('deployments', 'default', 'web', (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: [finalizer] },
    }));
    await on.remove('web');
    t.ok(on.server.read('deployments', 'default', 'web')?.metadata.deletionTimestamp);
    await resolvePending();
    t.equal(on.used('team'), '4');
    t.match(await on.deploy('next', 'team', 1, 1), { ok: false, message: /used: limits.cpu=4/ });
    t.match(await on.patch('web', { metadata: { finalizers: null } }), { ok: true });
    await uses(on, '0');
    t.match(await on.deploy('next', 'team', 4, 1), { ok: true });
  });
}

test('an object that its owner leaves behind is charged itself from then on', async (t) => {
  const on = await cluster(t);
  await on.deploy('web', 'team', 2, 1);
  t.match(
    await on.client.request({
      method: 'POST',
      path: `${APPS}/replicasets`,
      body: replicaSet('web-rs', 'web', uidOf(on, 'deployments', 'web')),
    }),
    { ok: true },
  );
  await uses(on, '2');
  // As the garbage collector does when an owner is deleted with orphaned dependents.
  await on.client.request({
    method: 'PATCH',
    path: `${APPS}/replicasets/web-rs`,
    contentType: 'application/merge-patch+json',
    body: { metadata: { ownerReferences: null } },
  });
  await on.remove('web');
  await resolvePending();
  await uses(on, '2');
  await on.client.request({ method: 'DELETE', path: `${APPS}/replicasets/web-rs` });
  await uses(on, '0');
});

test('an owner that was created again under its old name does not own what the old one left behind', async (t) => {
  const on = await cluster(t);
  await on.deploy('web', 'team', 2, 1);
  const old = uidOf(on, 'deployments', 'web');
  t.match(
    await on.client.request({ method: 'POST', path: `${APPS}/replicasets`, body: replicaSet('web-rs', 'web', old) }),
    { ok: true },
  );
  await uses(on, '2');
  await on.remove('web');
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  t.not(uidOf(on, 'deployments', 'web'), old);
  // The pods of the ReplicaSet exist until it is collected, and no other object is charged for them.
  t.match(
    await on.client.request({
      method: 'PATCH',
      path: `${APPS}/replicasets/web-rs`,
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations: { touched: 'yes' } } },
    }),
    { ok: true },
  );
  await uses(on, '3');
  await on.client.request({ method: 'DELETE', path: `${APPS}/replicasets/web-rs` });
  await uses(on, '1');
});

test('in a terminating namespace every workload is charged until it is gone', async (t) => {
  const on = await cluster(t);
  const path = '/apis/apps/v1/namespaces/ending/deployments';
  for (const name of ['one', 'two'])
    t.match(await on.client.request({ method: 'POST', path, body: deployment(name, 'team', 2, 1) }), { ok: true });
  await uses(on, '4');
  on.server.edit('deployments', 'ending', 'two', (object) => ({
    ...object,
    metadata: { ...object.metadata, finalizers: ['example.com/slow'] },
  }));
  for (const name of ['one', 'two']) await on.client.request({ method: 'DELETE', path: `${path}/${name}` });
  await uses(on, '2');
  await resolvePending();
  t.equal(on.used('team'), '2');
  t.match(await on.deploy('next', 'team', 3, 1), { ok: false, message: /QuotaExceeded/ });
  await on.client.request({
    method: 'PATCH',
    path: `${path}/two`,
    contentType: 'application/merge-patch+json',
    body: { metadata: { finalizers: null } },
  });
  await uses(on, '0');
});

test('a workload created under the name of one under deletion is charged itself', async (t) => {
  const on = await cluster(t);
  await on.deploy('web', 'team', 3, 1);
  await uses(on, '3');
  const old = uidOf(on, 'deployments', 'web');
  await on.remove('web');
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  await uses(on, '1');
  t.not(uidOf(on, 'deployments', 'web'), old);
  t.equal(on.server.read('deployments', 'default', 'web')?.metadata.labels?.[GROUP_LABEL], 'team');
});

test('a group that comes again under the same name is not taken for the one that was deleted', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ refreshMs: 20 });
  await on.createGroup('team', { 'limits.cpu': 10 });
  await eventually(() => on.condition('team', 'Ready') === 'True', 'the group to be there');
  await on.deleteGroup('team');
  await eventually(() => on.server.read('bizgroupresourcequotas', '', 'team') === null, 'the group to be gone');
  // The API server takes its time between the review and the object; the controller compares the ledger meanwhile.
  let isKept = false;
  on.server.admission = async (request) => {
    const refused = await on.guard(request);
    if (request.type.plural !== 'bizgroupresourcequotas' || request.operation !== 'CREATE') return refused;
    await new Promise((resolve) => setTimeout(resolve, 300));
    isKept = on.server.read('bizgroupledgers', '', 'team') !== null;
    return refused;
  };
  t.match(await on.createGroup('team', { 'limits.cpu': 10 }), { ok: true });
  t.ok(isKept, 'what was admitted stays in the ledger');
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  await eventually(() => on.used('team') === '1', 'the workload to be charged');
});

test('an object that is deleted while its owner is read is not charged', async (t) => {
  const on = await cluster(t);
  await on.deploy('web', 'team', 1, 1);
  await uses(on, '1');
  const slowRead = on.server.inject({ verb: 'get', resource: 'deployments', name: 'web' }, { do: 'delay', ms: 300 });
  const body = replicaSet('web-rs', 'web', uidOf(on, 'deployments', 'web'));
  await on.unguarded(() => on.client.request({ method: 'POST', path: `${APPS}/replicasets`, body }));
  await eventually(() => slowRead.hits === 1, 'the owner to be read');
  await on.unguarded(() => on.client.request({ method: 'DELETE', path: `${APPS}/replicasets/web-rs` }));
  slowRead.remove();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  t.equal(on.used('team'), '1');
});
