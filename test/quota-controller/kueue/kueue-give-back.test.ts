import { test, type Test } from 'tap';
import { DEFAULT_ARBITRATOR_POLICY } from '../../../src/quota/internal.js';
import { GROUPS_PATH } from '../../../src/kube/quota/names.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';
import { SimulatedKueue } from './simulated-kueue.js';

const POLICY = { ...DEFAULT_ARBITRATOR_POLICY, graceMs: 100, cooldownMs: 0 };

/** A group that lends two of its three cores to a sibling, whose Workloads Kueue runs. */
async function lending(
  t: Test,
  reclaim: string,
): Promise<{ readonly cluster: QuotaCluster; readonly kueue: SimulatedKueue }> {
  const cluster = await QuotaCluster.start(0);
  t.teardown(() => cluster.stop());
  const kueue = new SimulatedKueue(cluster);
  await cluster.join({ kueue: true, arbitrator: { mode: 'on', policy: POLICY, periodMs: 20 } });
  for (const [name, parentBizGroup, cores] of [
    ['root', '', 4],
    ['owner', 'root', 3],
    ['borrower', 'root', 1],
  ] as const) {
    const spec = { parentBizGroup, mode: 'elastic', hard: { 'limits.cpu': cores } };
    const body = { metadata: { name }, spec: { ...spec, ...(name === 'owner' ? { reclaim } : {}) } };
    await cluster.client.request({ method: 'POST', path: GROUPS_PATH, body });
  }
  cluster.server.seed('namespaces', { metadata: { name: 'default' } });
  await kueue.whenActive();
  for (const name of ['b1', 'b2']) {
    await kueue.submit(name, 'borrower', 1, 2);
    await kueue.whenState(name, 'Ready');
    await kueue.admit(name);
  }
  await used(cluster, 'borrower', 4);
  return { cluster, kueue };
}

const used = (cluster: QuotaCluster, group: string, amount: number): Promise<unknown> =>
  eventually(() => cluster.used(group) === String(amount), `${amount} used by ${group}`);

test('a group gets its guaranteed part back from a running Workload, which Kueue queues again', async (t) => {
  const { cluster, kueue } = await lending(t, 'Guaranteed');
  await kueue.submit('o1', 'owner', 1, 2);
  const victim = await eventually(
    () => ['b1', 'b2'].find((name) => kueue.state(name) === 'Retry'),
    'a Workload to be taken back',
  );
  const other = victim === 'b1' ? 'b2' : 'b1';
  t.match(kueue.message(victim), /goes back to the group that lent it/);
  await kueue.touch(victim);
  t.equal(cluster.used('borrower'), '4', 'it is charged until Kueue begins to stop it');
  t.equal(kueue.state('o1'), 'Pending');
  await kueue.beginEviction(victim);
  await kueue.touch(victim);
  t.equal(cluster.used('borrower'), '4', 'it is charged until Kueue has stopped it');
  t.equal(kueue.state('o1'), 'Pending');
  await kueue.endEviction(victim);
  await kueue.whenState('o1', 'Ready');
  t.equal(kueue.state(victim), 'Pending', 'no answer without quota of Kueue');
  await kueue.reserve(victim);
  await eventually(() => kueue.message(victim).startsWith('waiting for quota: '), 'the victim to wait with the reason');
  await used(cluster, 'owner', 2);
  await used(cluster, 'borrower', 2);
  t.equal(kueue.state(other), 'Ready', 'the other one runs on');
  await kueue.finish('o1');
  await kueue.whenState(victim, 'Ready');
  await used(cluster, 'borrower', 4);
});

test('room that is kept for another group is not given to a Workload of the borrower', async (t) => {
  const { cluster, kueue } = await lending(t, 'Guaranteed');
  // The owner waits for more than one victim frees.
  await kueue.submit('o1', 'owner', 1, 3);
  const taken = (): readonly string[] => ['b1', 'b2'].filter((name) => kueue.state(name) === 'Retry');
  await eventually(() => taken().length === 2, 'both to be taken back');
  await kueue.beginEviction('b1');
  await kueue.endEviction('b1');
  await used(cluster, 'borrower', 2);
  await kueue.submit('greedy', 'borrower', 1, 1);
  await eventually(() => kueue.message('greedy').includes('RoomKept'), 'the reason of greedy');
  await kueue.beginEviction('b2');
  await kueue.endEviction('b2');
  await kueue.whenState('o1', 'Ready');
  // One core is left, which nobody waits for.
  await kueue.whenState('greedy', 'Ready');
  await used(cluster, 'owner', 3);
  t.pass();
});

test('nothing is taken back for a group that does not reclaim', async (t) => {
  const { kueue } = await lending(t, 'Never');
  await kueue.submit('o1', 'owner', 1, 2);
  await eventually(() => kueue.message('o1').startsWith('waiting for quota: '), 'the owner to wait');
  // A change of another group makes the quota try again, and the arbitrator look.
  for (let tries = 0; tries < 5; tries++) await kueue.touch('o1');
  await kueue.finish('b1');
  await kueue.whenState('o1', 'Ready');
  t.equal(kueue.state('b2'), 'Ready');
});
