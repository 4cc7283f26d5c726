import { test, type Test } from 'tap';
import { cases } from '../../cases.js';
import { eventually } from '../../harness/eventually.js';
import { generator } from '../../generator.js';
import { QuotaCluster } from '../cluster.js';

const HOUR = 3_600_000;
const CORES = 4;
const text = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');

/** A pod of the history, with times in whole seconds as the API server writes them. */
interface Life {
  readonly name: string;
  readonly scheduledAt: number;
  endedAt: number | null;
}

async function cluster(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(1);
  t.teardown(() => on.stop());
  await on.createGroup('team', { 'limits.cpu': 1000, 'cash/limits.cpu': 100_000 });
  await on.deploy('web', 'team', 3, CORES);
  on.server.seed('replicasets', {
    metadata: {
      name: 'web-rs',
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: 'web',
          uid: on.server.read('deployments', 'default', 'web')?.metadata.uid ?? '',
          controller: true,
        },
      ],
    },
  });
  return on;
}

function addPod(on: QuotaCluster, name: string, scheduledAt: number): void {
  const uid = on.server.read('replicasets', 'default', 'web-rs')?.metadata.uid ?? '';
  on.server.seed('pods', {
    metadata: {
      name,
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-rs', uid, controller: true }],
    },
    spec: { nodeName: 'node1', containers: [{ name: 'main', resources: { limits: { cpu: CORES } } }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: text(scheduledAt) }],
    },
  });
}

function endPod(on: QuotaCluster, name: string, at: number): void {
  on.server.edit('pods', 'default', name, (pod) => ({
    ...pod,
    status: {
      ...(pod.status as object),
      phase: 'Succeeded',
      containerStatuses: [{ state: { terminated: { finishedAt: text(at) } } }],
    },
  }));
}

const hours = (on: QuotaCluster, field: 'used' | 'uncertain'): number =>
  Number((on.statusOf('team')[field] as Readonly<Record<string, string>> | undefined)?.['cash/limits.cpu'] ?? 0);
const rate = (on: QuotaCluster): number =>
  Number((on.statusOf('team')['burnRate'] as Readonly<Record<string, string>> | undefined)?.['cash/limits.cpu'] ?? NaN);

function integers(seed: number): (below: number) => number {
  const next = generator(seed);
  return (below) => Math.floor(next() * below);
}

async function leaveAll(on: QuotaCluster): Promise<void> {
  for (const service of [...on.services]) await on.leave(service);
}

test('a pod that started and ended while no replica led is charged once for its whole life', async (t) => {
  const on = await cluster(t);
  const now = Date.now();
  await leaveAll(on);
  addPod(on, 'short', now - 10 * HOUR);
  endPod(on, 'short', now - 10 * HOUR + 20_000);
  addPod(on, 'long', now - 15 * HOUR);
  endPod(on, 'long', now - 5 * HOUR);
  await on.join();
  let expected = (10 + 20 / 3600) * CORES;
  const charged = (): boolean => Math.abs(hours(on, 'used') - expected) < 0.01;
  await eventually(charged, 'both lives to be charged');
  for (const name of ['third', 'fourth']) {
    await leaveAll(on);
    addPod(on, name, now - 2 * HOUR);
    endPod(on, name, now - HOUR);
    expected += CORES;
    await on.join({ refreshMs: 100 });
    await eventually(charged, 'the next leader to charge this life, and no other again');
  }
});

test('over random histories with controller outages the hours are the integral of the lives of the pods', async (t) => {
  for (const seed of cases([1], [1, 2, 3, 4, 5, 6])) {
    const on = await cluster(t);
    const random = integers(seed);
    const pods: Life[] = [];
    let at = Math.floor(Date.now() / 1000) * 1000 - 30 * HOUR;
    let isLed = true;
    for (let step = 0; step < 40; step++) {
      at += random(1800) * 1000;
      const running = pods.filter(({ endedAt }) => endedAt === null);
      const some = running[random(Math.max(1, running.length))];
      const dice = random(10);
      if (dice < 4 || some === undefined) {
        const name = `pod-${pods.length}`;
        pods.push({ name, scheduledAt: at, endedAt: null });
        addPod(on, name, at);
      } else if (dice < 8) {
        some.endedAt = at;
        endPod(on, some.name, at);
        if (random(2) === 0 && isLed) {
          // The leader observes the end before the object is deleted.
          const left = pods.filter(({ endedAt }) => endedAt === null).length * CORES;
          await eventually(() => rate(on) === left, 'the end to be charged');
          on.server.remove('pods', 'default', some.name);
        }
      } else if (isLed && step % 3 === 0) {
        await leaveAll(on);
        isLed = false;
      } else if (!isLed) {
        await on.join();
        isLed = true;
      }
    }
    if (!isLed) await on.join();
    const alive = pods.filter(({ endedAt }) => endedAt === null);
    await eventually(() => rate(on) === alive.length * CORES, `a rate of ${alive.length} pods`);
    await leaveAll(on);
    const [vanished] = alive;
    if (vanished !== undefined) on.server.remove('pods', 'default', vanished.name);
    await on.join();
    const left = alive.length === 0 ? 0 : alive.length - 1;
    await eventually(() => rate(on) === left * CORES, `a rate of ${left} pods`);
    const asOf = Date.parse(on.statusOf('team')['lastReconcileTime'] as string);
    const integral =
      (pods.reduce((sum, { scheduledAt, endedAt }) => sum + ((endedAt ?? asOf) - scheduledAt), 0) / HOUR) * CORES;
    const allowed = (pods.length * CORES) / 3600;
    const used = hours(on, 'used');
    t.ok(used <= integral + allowed, `seed ${seed}: ${used} of ${integral} core-hours`);
    t.ok(used + hours(on, 'uncertain') >= integral - allowed - 0.01, `${hours(on, 'uncertain')} are uncertain`);
    t.ok(
      Math.abs(used - integral) <= allowed + (vanished === undefined ? 0 : (5 * CORES) / 3600),
      `${pods.length} pods`,
    );
  }
});

test('a pod that is deleted while no replica leads counts until the last leader observed it, and the rest is reported as uncertain', async (t) => {
  const on = await cluster(t);
  addPod(on, 'vanishes', Date.now() - 10 * HOUR);
  await eventually(() => rate(on) === CORES, 'the pod to be charged');
  await leaveAll(on);
  on.server.remove('pods', 'default', 'vanishes');
  // By the lease, the next leader starts an hour later.
  const earlier = text(Date.now() - HOUR);
  on.server.edit('leases', 'kube-system', 'gpu-manager-quota', (lease) => ({
    ...lease,
    spec: { ...(lease.spec as object), renewTime: earlier },
  }));
  await on.join();
  await eventually(() => rate(on) === 0, 'the pod to be closed');
  t.ok(Math.abs(hours(on, 'used') - 9 * CORES) < 0.1, `${hours(on, 'used')} core-hours`);
  t.ok(Math.abs(hours(on, 'uncertain') - CORES) < 0.1, `${hours(on, 'uncertain')} core-hours are uncertain`);
});
