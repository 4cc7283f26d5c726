import { setTimeout as delay } from 'node:timers/promises';
import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';
import { cases } from '../../cases.js';

/** The collections that a replica follows to keep the ledger. */
const FOLLOWED = ['deployments', 'bizgroupresourcequotas', 'bizgroupledgers'] as const;
/** Of which replicas the watch of a collection is silent. */
const WHOSE: readonly (readonly number[])[] = [[], [0], [1], [0, 1]];
/** Longer than the API server of a busy machine takes to store what was admitted, as the minute of the service is. */
const RESERVATION_MS = 750;
/** No replica fails here: a Lease that is renewed as often as in other tests is a third of all requests. */
const LEASE = { leaseMs: 4_000, retryMs: 1_000 };

/** The replicas whose watch is silent, for each collection. */
type Silence = readonly [readonly number[], readonly number[], readonly number[]];

async function silentCluster(silent: Silence): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(0);
  const times = { reservationMs: RESERVATION_MS, ...LEASE };
  await on.join(times);
  const first = new Set(on.server.watches());
  await on.join(times);
  await on.createGroup('team', { 'limits.cpu': 10 });
  await on.createGroup('root', { 'limits.cpu': 20 });
  await on.createGroup('a', { 'limits.cpu': 5 }, 'root');
  await on.createGroup('b', { 'limits.cpu': 5 }, 'root');
  await eventually(() => on.used('root') === '10' && on.used('team') === '0', 'the groups to be known');
  for (const [index, collection] of FOLLOWED.entries())
    for (const watch of on.server.watches(collection))
      if (silent[index]?.includes(first.has(watch) ? 0 : 1) === true) watch.silence();
  return on;
}

/** The cores of all objects of the group `team`. */
function cores(on: QuotaCluster): number {
  return on.server
    .all('deployments')
    .filter(({ metadata }) => metadata.labels?.[GROUP_LABEL] === 'team')
    .reduce((sum, { spec }) => sum + Number((spec as { readonly replicas: number }).replicas), 0);
}

/** The API server asks for an object, and never stores it. */
async function neverStored(on: QuotaCluster, name: string, replicas: number): Promise<boolean> {
  const object = { ...deployment(name, 'team', replicas, 1), apiVersion: 'apps/v1', kind: 'Deployment' };
  const { response } = await on.ask('/workloads', {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: name,
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'tester' },
      object: { ...object, metadata: { ...object.metadata, namespace: 'default', uid: `uid-${name}` } },
    },
  });
  return response.allowed;
}

/** Stores objects and limits whose events may be lost, and tries to go over quota after their reservations. */
async function triesOver(t: Test, silent: Silence): Promise<void> {
  const on = await silentCluster(silent);
  const where = JSON.stringify(silent);
  t.match(await on.deploy('real', 'team', 6, 1), { ok: true }, where);
  t.match(await on.updateGroup('a', { 'limits.cpu': 15 }), { ok: true }, where);
  t.equal(await neverStored(on, 'phantom', 4), true, where);
  t.match(await on.deploy('over', 'team', 5, 1), { ok: false, message: /QuotaExceeded/ }, where);
  // The reservations of the stored objects are older than the one whose release is awaited.
  await delay(RESERVATION_MS);
  await eventually(async () => (await on.deploy('more', 'team', 4, 1)).ok, 'the reservation to be released');
  for (let attempt = 0; attempt < 4; attempt++) {
    t.match(await on.deploy(`over-${attempt}`, 'team', 1, 1), { ok: false, message: /QuotaExceeded/ }, where);
    t.match(await on.updateGroup('b', { 'limits.cpu': 6 }), { ok: false, message: /ParentExceeded/ }, where);
  }
  t.equal(cores(on), 10, where);
  await on.stop();
}

for (const deployments of WHOSE)
  test(`nothing is over quota while watches are silent, those of workloads at replicas ${JSON.stringify(deployments)}`, async (t) => {
    for (const [at, groups] of WHOSE.entries()) {
      // With one of the ledgers, chosen so that every pair of two collections' silences happens in some test.
      const pair = WHOSE[(WHOSE.indexOf(deployments) + at) % WHOSE.length] ?? [];
      await Promise.all(cases([pair], WHOSE).map((ledgers) => triesOver(t, [deployments, groups, ledgers])));
    }
  });

test('a reservation stays while its object cannot be read, and is charged when it can', async (t) => {
  const on = await silentCluster([[0, 1], [], []]);
  t.teardown(() => on.stop());
  const fault = on.server.inject({ verb: ['get'], resource: 'deployments' }, { do: 'answer', code: 503 });
  t.match(await on.deploy('real', 'team', 10, 1), { ok: true });
  await eventually(() => fault.hits > 3, 'the object to be asked for');
  t.match(await on.deploy('over', 'team', 1, 1), { ok: false, message: /QuotaExceeded/ });
  on.server.clearFaults();
  await eventually(() => on.used('team') === '10', 'the object to be charged');
  const reserved = (): boolean => on.server.requests.some(({ verb, name }) => verb === 'get' && name === 'real');
  t.ok(reserved());
  t.match(await on.deploy('over', 'team', 1, 1), { ok: false, message: /QuotaExceeded/ });
});

test('an increase that the watches did not show counts after its reservation', async (t) => {
  const on = await silentCluster([[], [], []]);
  t.teardown(() => on.stop());
  t.match(await on.deploy('web', 'team', 2, 1), { ok: true });
  await eventually(() => on.used('team') === '2', 'the workload to be charged');
  for (const watch of on.server.watches('deployments')) watch.silence();
  t.match(await on.scale('web', 9), { ok: true });
  t.equal(await neverStored(on, 'phantom', 1), true);
  await eventually(async () => (await on.deploy('one', 'team', 1, 1)).ok, 'the reservation to be released');
  t.match(await on.deploy('over', 'team', 1, 1), { ok: false, message: /QuotaExceeded/ });
  t.equal(cores(on), 10);
});
