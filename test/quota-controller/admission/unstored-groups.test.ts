import { test, type Test } from 'tap';
import { GROUPS_PATH } from '../../../src/kube/quota/names.js';
import { openClusterLedger } from '../../../src/quota-controller/ledger/open-cluster-ledger.js';
import { conditionOf, type Condition } from '../../../src/kube/condition.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

const RESERVATION_MS = 400;

async function cluster(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  for (let replica = 0; replica < 2; replica++) await on.join({ reservationMs: RESERVATION_MS, refreshMs: 200 });
  t.match(await on.createGroup('root', { 'limits.cpu': 20 }), { ok: true });
  t.match(await on.createGroup('team', { 'limits.cpu': 4 }, 'root'), { ok: true });
  await eventually(() => on.used('root') === '4', 'the groups to be known');
  return on;
}

/** From now on another webhook refuses changes of groups that the quota has admitted. */
function refuseGroups(on: QuotaCluster): void {
  on.server.admission = async (request) => {
    const refused = await on.guard(request);
    const isGroup = request.type.plural === 'bizgroupresourcequotas' && request.subresource === '';
    return refused ?? (isGroup ? { code: 403, message: 'refused by another webhook' } : null);
  };
}

test('a group that was admitted and never stored takes no workloads and no children, and ends', async (t) => {
  const on = await cluster(t);
  refuseGroups(on);
  t.match(await on.createGroup('ghost', { 'limits.cpu': 10 }, 'root'), { ok: false, message: /another webhook/ });
  t.match(await on.deploy('web', 'ghost', 1, 1), { ok: false, message: /GroupNotFound: there is no group ghost/ });
  t.match(await on.createGroup('child', { 'limits.cpu': 1 }, 'ghost'), { ok: false, message: /ParentNotFound/ });
  on.server.admission = on.guard;
  await eventually(
    async () => (await on.createGroup('next', { 'limits.cpu': 16 }, 'root')).ok,
    'the quota to come back',
  );
});

test('a group whose ancestors are not all stored takes no workloads', async (t) => {
  const on = await cluster(t);
  on.server.seed('bizgroupresourcequotas', {
    metadata: { name: 'lonely' },
    spec: { parentBizGroup: 'nobody', hard: { 'limits.cpu': 4 } },
  });
  t.match(await on.deploy('web', 'lonely', 1, 1), {
    ok: false,
    message: /GroupNotFound: there is no group nobody above lonely/,
  });
});

test('a group of the ledger without an object is a condition and an event, and ends with its workloads', async (t) => {
  const on = await cluster(t);
  t.match(await on.deploy('web', 'team', 2, 1), { ok: true });
  await eventually(() => on.used('team') === '2', 'the workload to be charged');
  // As an administrator does who takes the finalizer off.
  on.server.edit('bizgroupresourcequotas', '', 'team', (group) => ({
    ...group,
    metadata: { ...group.metadata, finalizers: [] },
  }));
  on.server.remove('bizgroupresourcequotas', '', 'team');
  t.match(await on.deploy('more', 'team', 1, 1), { ok: false, message: /GroupNotFound/ });
  const condition = (): Condition | null =>
    conditionOf((on.statusOf('root')['conditions'] ?? []) as readonly Condition[], 'ChildWithoutObject');
  await eventually(() => condition()?.status === 'True', 'the parent to show it');
  t.match(condition()?.message, /does not have team/);
  await eventually(
    () => on.server.all('events').some((event) => (event as { reason?: string }).reason === 'GroupWithoutObject'),
    'the event',
  );
  await on.remove('web');
  await eventually(async () => (await openClusterLedger(on.client)).status('team') === null, 'the group to end');
  await eventually(() => on.used('root') === '0', 'its quota to come back');
});

test('a limit is raised when it is stored, and lowered when it is admitted', async (t) => {
  const on = await cluster(t);
  refuseGroups(on);
  t.match(await on.updateGroup('team', { 'limits.cpu': 10 }), { ok: false, message: /another webhook/ });
  t.match(await on.deploy('web', 'team', 10, 1), { ok: false, message: /QuotaExceeded/ }, 'not by the raised limit');
  t.match(await on.deploy('small', 'team', 4, 1), { ok: true }, 'by the stored one');
  await on.remove('small');
  on.server.admission = on.guard;
  t.match(await on.updateGroup('team', { 'limits.cpu': 10 }), { ok: true });
  t.match(await on.deploy('web', 'team', 10, 1), { ok: true }, 'by the raised one as soon as it is stored');
  // A child is taken from what its parent surely has.
  refuseGroups(on);
  t.match(await on.updateGroup('root', { 'limits.cpu': 40 }), { ok: false, message: /another webhook/ });
  on.server.admission = on.guard;
  t.match(await on.createGroup('large', { 'limits.cpu': 20 }, 'root'), { ok: false, message: /ParentExceeded/ });
});

test('a lowered limit counts while all watches are silent', async (t) => {
  const on = await cluster(t);
  for (const collection of ['bizgroupresourcequotas', 'bizgroupledgers'])
    for (const watch of on.server.watches(collection)) watch.silence();
  t.match(
    await on.client.request({
      method: 'PATCH',
      path: `${GROUPS_PATH}/team`,
      contentType: 'application/merge-patch+json',
      body: { spec: { hard: { 'limits.cpu': 1 } } },
    }),
    { ok: true },
  );
  // Both replicas are asked, and the parent has the difference once the object is read.
  for (const name of ['one', 'two'])
    t.match(await on.deploy(name, 'team', 2, 1), { ok: false, message: /QuotaExceeded/ }, name);
  await eventually(async () => (await on.createGroup('next', { 'limits.cpu': 19 }, 'root')).ok, 'the difference');
});
