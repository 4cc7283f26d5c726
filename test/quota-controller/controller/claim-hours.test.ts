import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { union, without, type Interval } from '../../../src/quota-controller/controller/interval.js';
import { generator } from '../../generator.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';
import { cases } from '../../cases.js';

const HOUR = 3_600_000;
const CASH = 'cash/requests.tencent.com/vcuda-core';
/** Counts each pod, also one whose claims others use. */
const CPU_CASH = 'cash/limits.cpu';
/** Hundredths of a GPU, for the claim of each pod and for the shared claims. */
const OWN = 30;
const SHARED = 100;
const POOLS = ['pool-0', 'pool-1'];
/** A status with new hours and nothing else that is new is written once in this time: a report of a moment stays. */
const OFTEN = { refreshMs: 100 };
const text = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');

const devices = (cores: number) => ({
  devices: {
    requests: [{ name: 'gpu', exactly: { deviceClassName: 'vgpu.tencent.com', capacity: { requests: { cores } } } }],
  },
});

/** A pod of the history, with times in whole seconds as the API server writes them. */
interface Life extends Interval {
  readonly name: string;
  end: number;
  readonly hasOwn: boolean;
  /** The shared claim of the pod; empty for none. */
  readonly pool: string;
}

/** A cluster with a LeaderWorkerSet: the leader pod owns the StatefulSet of the workers. */
async function cluster(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  for (const [plural, kind] of [
    ['resourceclaims', 'ResourceClaim'],
    ['resourceclaimtemplates', 'ResourceClaimTemplate'],
  ] as const)
    on.server.define({ group: 'resource.k8s.io', version: 'v1', plural, kind, namespaced: true });
  on.server.define({
    group: 'leaderworkerset.x-k8s.io',
    version: 'v1',
    plural: 'leaderworkersets',
    kind: 'LeaderWorkerSet',
    namespaced: true,
  });
  on.server.seed('resourceclaimtemplates', {
    metadata: { name: 'share', namespace: 'default' },
    spec: { spec: devices(OWN) },
  });
  await on.join(OFTEN);
  await on.createGroup('team', {
    ...{ 'requests.tencent.com/vcuda-core': 100_000, [CASH]: 1_000_000 },
    ...{ 'limits.cpu': 100, [CPU_CASH]: 1_000_000 },
  });
  for (const name of POOLS)
    on.server.seed('resourceclaims', {
      metadata: { name, namespace: 'default', labels: { [GROUP_LABEL]: 'team' } },
      spec: devices(SHARED),
    });
  const template = { spec: { containers: [{ name: 'main', resources: { limits: { cpu: 1 } } }] } };
  const set = on.server.seed('leaderworkersets', {
    metadata: { name: 'serve', namespace: 'default', labels: { [GROUP_LABEL]: 'team' } },
    spec: { replicas: 1, leaderWorkerTemplate: { size: 4, workerTemplate: template } },
  });
  const owned = (kind: string, name: string, uid: string | undefined) => [
    { apiVersion: kind === 'Pod' ? 'v1' : 'apps/v1', kind, name, uid: uid ?? '', controller: true },
  ];
  const leaders = on.server.seed('statefulsets', {
    metadata: {
      name: 'serve',
      namespace: 'default',
      ownerReferences: [
        {
          apiVersion: 'leaderworkerset.x-k8s.io/v1',
          kind: 'LeaderWorkerSet',
          name: 'serve',
          uid: set.metadata.uid ?? '',
          controller: true,
        },
      ],
    },
    spec: {},
  });
  const leader = on.server.seed('pods', {
    metadata: {
      name: 'leader',
      namespace: 'default',
      ownerReferences: owned('StatefulSet', 'serve', leaders.metadata.uid),
    },
    spec: { containers: [{ name: 'main' }] },
    status: { phase: 'Pending' },
  });
  on.server.seed('statefulsets', {
    metadata: { name: 'workers', namespace: 'default', ownerReferences: owned('Pod', 'leader', leader.metadata.uid) },
    spec: {},
  });
  return on;
}

function addPod(on: QuotaCluster, { name, start, hasOwn, pool }: Life, isMade: boolean): void {
  const uid = on.server.read('statefulsets', 'default', 'workers')?.metadata.uid ?? '';
  if (isMade)
    on.server.seed('resourceclaims', { metadata: { name: `${name}-made`, namespace: 'default' }, spec: devices(OWN) });
  on.server.seed('pods', {
    metadata: {
      name,
      namespace: 'default',
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'workers', uid, controller: true }],
    },
    spec: {
      nodeName: 'node1',
      containers: [{ name: 'main', resources: { limits: { cpu: 1 } } }],
      resourceClaims: [
        ...(hasOwn ? [{ name: 'own', resourceClaimTemplateName: 'share' }] : []),
        ...(pool === '' ? [] : [{ name: 'pool', resourceClaimName: pool }]),
      ],
    },
    status: {
      phase: 'Running',
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: text(start) }],
      ...(isMade ? { resourceClaimStatuses: [{ name: 'own', resourceClaimName: `${name}-made` }] } : {}),
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
  // Kubernetes deletes a pod's own claims when the pod has finished.
  if (on.server.read('resourceclaims', 'default', `${name}-made`) !== null)
    on.server.remove('resourceclaims', 'default', `${name}-made`);
}

const amount = (on: QuotaCluster, field: 'used' | 'uncertain' | 'burnRate', key = CASH): number =>
  Number((on.statusOf('team')[field] as Readonly<Record<string, string>> | undefined)?.[key] ?? NaN);

function rateOf(pods: readonly Life[]): number {
  const running = pods.filter(({ end }) => end === Infinity);
  return (
    OWN * running.filter(({ hasOwn }) => hasOwn).length +
    SHARED * POOLS.filter((pool) => running.some((pod) => pod.pool === pool)).length
  );
}

/** Core-hours of all pods until a time; a shared claim counts while at least one pod uses it. */
function integralOf(pods: readonly Life[], until: number): number {
  const lasting = ({ start, end }: Interval): number => Math.min(end, until) - start;
  const own = pods.filter(({ hasOwn }) => hasOwn).reduce((sum, pod) => sum + lasting(pod), 0);
  const shared = POOLS.flatMap((pool) => union(pods.filter((pod) => pod.pool === pool)));
  return (OWN * own + SHARED * shared.reduce((sum, interval) => sum + lasting(interval), 0)) / HOUR;
}

/** When the status was computed. */
const asOf = (on: QuotaCluster): number => Date.parse(on.statusOf('team')['lastReconcileTime'] as string);

/** Whether the used hours are the integral, but for one second of each pod. */
function isCharged(on: QuotaCluster, pods: readonly Life[]): boolean {
  const allowed = (pods.length * (OWN + SHARED)) / 3600;
  return Math.abs(amount(on, 'used') - integralOf(pods, asOf(on))) <= allowed;
}

/** Whether the leader has observed the start and the end of each pod, by the hours of its processor. */
function isObserved(on: QuotaCluster, pods: readonly Life[]): boolean {
  const until = asOf(on);
  const hours = pods.reduce((sum, { start, end }) => sum + Math.min(end, until) - start, 0) / HOUR;
  return Math.abs(amount(on, 'used', CPU_CASH) - hours) <= pods.length / 3600;
}

async function leaveAll(on: QuotaCluster): Promise<void> {
  for (const service of [...on.services]) await on.leave(service);
}

test('over random histories with outages the hours of claims are the integral of their use', async (t) => {
  for (const seed of cases([1], [1, 2, 3, 4, 5, 6, 7, 8])) {
    const on = await cluster(t);
    const next = generator(seed * 7919);
    const random = (below: number): number => Math.floor(next() * below);
    const pods: Life[] = [];
    let at = Math.floor(Date.now() / 1000) * 1000 - 60 * HOUR;
    let isLed = true;
    for (let step = 0; step < 60; step++) {
      at += random(1800) * 1000;
      const running = pods.filter(({ end }) => end === Infinity);
      const some = running[random(Math.max(1, running.length))];
      const dice = random(10);
      if ((dice < 4 && running.length < 6) || some === undefined) {
        const hasOwn = random(2) === 0;
        const life = {
          name: `pod-${pods.length}`,
          start: at,
          end: Infinity,
          hasOwn,
          pool: ['', ...POOLS][random(3)] ?? '',
        };
        pods.push(life);
        addPod(on, life, hasOwn && random(2) === 0);
      } else if (dice < 8) {
        some.end = at;
        endPod(on, some.name, at);
        if (isLed && random(2) === 0) {
          // The leader observes the end before the object is deleted. Other pods may use its claims, and its rate alone
          // may be that of an earlier time.
          await eventually(
            () => amount(on, 'burnRate') === rateOf(pods) && isCharged(on, pods) && isObserved(on, pods),
            'the end to be charged',
          );
          on.server.remove('pods', 'default', some.name);
        }
      } else if (isLed && step % 3 === 0) {
        await leaveAll(on);
        isLed = false;
      } else if (!isLed) {
        await on.join(OFTEN);
        isLed = true;
      }
    }
    if (!isLed) await on.join(OFTEN);
    await eventually(() => amount(on, 'burnRate') === rateOf(pods), `seed ${seed}: a rate of ${rateOf(pods)}`);
    // Another leader charges nothing twice.
    await leaveAll(on);
    await on.join(OFTEN);
    await eventually(() => amount(on, 'burnRate') === rateOf(pods), `seed ${seed}: the rate to stay`);
    await eventually(
      () => isCharged(on, pods),
      `seed ${seed}: the hours of ${pods.length} pods to be ${integralOf(pods, Date.now())}, not ${amount(on, 'used')}`,
    );
    t.pass(`seed ${seed}: ${pods.length} pods, ${Math.round(amount(on, 'used'))} core-hours`);
    await leaveAll(on);
  }
});

test('possible use of a shared claim while no replica led is reported as uncertain', async (t) => {
  const on = await cluster(t);
  const now = Math.floor(Date.now() / 1000) * 1000;
  const life = { name: 'a', start: now - 10 * HOUR, end: Infinity, hasOwn: false, pool: 'pool-0' };
  addPod(on, life, false);
  await eventually(() => amount(on, 'burnRate') === SHARED, 'the claim to be charged');
  await leaveAll(on);
  on.server.remove('pods', 'default', 'a');
  addPod(on, { ...life, name: 'b', start: now - 2 * HOUR }, false);
  on.server.edit('leases', 'kube-system', 'gpu-manager-quota', (lease) => ({
    ...lease,
    spec: { ...(lease.spec as object), renewTime: text(now - 5 * HOUR) },
  }));
  await on.join(OFTEN);
  // Charged until a leader watched last, and from the next pod on; the use between them is unknown.
  await eventually(() => Math.abs(amount(on, 'used') - (5 + 2) * SHARED) < 1, 'seven hours to be charged');
  t.ok(Math.abs(amount(on, 'uncertain') - 3 * SHARED) < 1, `${amount(on, 'uncertain')} core-hours are uncertain`);
  t.equal(amount(on, 'burnRate'), SHARED);
});

test('intervals', (t) => {
  const of = (...pairs: readonly (readonly [number, number])[]) => pairs.map(([start, end]) => ({ start, end }));
  t.same(union(of([5, 9], [1, 3], [3, 4], [6, 7], [20, Infinity])), of([1, 4], [5, 9], [20, Infinity]));
  t.same(
    without(of([0, 10], [20, Infinity]), of([2, 3], [8, 22], [30, 31])),
    of([0, 2], [3, 8], [22, 30], [31, Infinity]),
  );
  t.same(without(of([0, 10]), of([0, Infinity])), []);
  t.end();
});
