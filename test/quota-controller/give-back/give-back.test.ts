import { test } from 'tap';
import { DEFAULT_ARBITRATOR_POLICY, GROUP_LABEL } from '../../../src/quota/internal.js';
import { GROUPS_PATH } from '../../../src/kube/quota/names.js';
import type { KubeAnswer } from '../../../src/kube/client.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

const JOBS = '/apis/batch/v1/namespaces/default/jobs';
const HOURS = 'cash/limits.cpu';
const POLICY = { ...DEFAULT_ARBITRATOR_POLICY, graceMs: 100, cooldownMs: 0 };

/** A cluster with a group that lends two of its three cores to a sibling with one core. */
async function lending(
  reclaim: string,
  replicas = 1,
  mode: 'on' | 'plan' = 'on',
): Promise<{
  readonly on: QuotaCluster;
  readonly retry: (name: string, group: string, cores: number) => Promise<unknown>;
}> {
  const on = await QuotaCluster.start(0);
  for (let index = 0; index < replicas; index++) await on.join({ arbitrator: { mode, policy: POLICY, periodMs: 20 } });
  const groups = { root: ['', 4], owner: ['root', 3], borrower: ['root', 1] } as const;
  for (const [name, [parentBizGroup, cores]] of Object.entries(groups)) {
    const spec = {
      parentBizGroup,
      mode: 'elastic',
      // The hours of the borrower show which of its pods the service knows.
      hard: { 'limits.cpu': cores, ...(name === 'borrower' ? { [HOURS]: 1_000_000 } : {}) },
      ...(name === 'owner' ? { reclaim } : {}),
    };
    await on.client.request({ method: 'POST', path: GROUPS_PATH, body: { metadata: { name }, spec } });
  }
  on.server.seed('namespaces', { metadata: { name: 'default' } });
  on.server.seed('nodes', {
    metadata: { name: 'node1' },
    status: { allocatable: { cpu: '100', pods: '110' }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  // A client that tries again, as GitOps does.
  const retry = (name: string, group: string, cores: number): Promise<unknown> =>
    eventually(async () => (await create(on, name, group, cores)).ok, `${name} to be admitted`);
  return { on, retry };
}

function create(
  on: QuotaCluster,
  name: string,
  group: string,
  cores: number,
  priorityClassName?: string,
): Promise<KubeAnswer> {
  const containers = [{ name: 'main', image: 'busybox', resources: { limits: { cpu: cores } } }];
  return on.client.request({
    method: 'POST',
    path: JOBS,
    body: {
      metadata: { name, labels: { [GROUP_LABEL]: group } },
      spec: { template: { spec: { containers, priorityClassName } } },
    },
  });
}

function isSuspended(on: QuotaCluster, name: string): boolean {
  return (on.server.read('jobs', 'default', name)?.spec as { readonly suspend?: boolean }).suspend === true;
}

function waitingIn(on: QuotaCluster, group: string): Readonly<Record<string, { readonly room?: string }>> {
  return (on.statusOf(group)['waiting'] ?? {}) as Readonly<Record<string, { readonly room?: string }>>;
}

/** A running pod of a Job. */
function pod(on: QuotaCluster, job: string, priority: number, labels: Readonly<Record<string, string>> = {}): void {
  const uid = on.server.read('jobs', 'default', job)?.metadata.uid ?? '';
  on.server.seed('pods', {
    metadata: {
      name: `${job}-pod`,
      namespace: 'default',
      labels,
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: job, uid, controller: true }],
    },
    spec: { nodeName: 'node1', priority, containers: [{ name: 'main', resources: { limits: { cpu: '1' } } }] },
    status: { phase: 'Running' },
  });
}

/** Waits until the usage meter and the arbitrator know two pods. */
async function seen(on: QuotaCluster, group = 'borrower'): Promise<void> {
  await eventually(
    () => (on.statusOf(group)['burnRate'] as Readonly<Record<string, string>> | undefined)?.[HOURS] === '2',
    'the hours of the pods to be metered',
  );
  const allocated = (): unknown =>
    (on.server.read('allocations', '', 'default')?.status as { readonly allocated?: { readonly cpu?: string } })
      ?.allocated?.cpu;
  await eventually(() => allocated() === '2', 'the arbitrator to know the pods');
}

for (const replicas of [1, 2])
  test(`a group gets its guaranteed part back from whole workloads of a borrower; replicas: ${replicas}`, async (t) => {
    const { on, retry } = await lending('Guaranteed', replicas);
    t.teardown(() => on.stop());
    for (const name of ['b1', 'b2']) await retry(name, 'borrower', 2);
    pod(on, 'b1', 0);
    pod(on, 'b2', 5);
    await eventually(() => on.used('borrower') === '4', 'the borrower to have everything');
    await seen(on);
    const isRecorded = (): boolean => waitingIn(on, 'owner')['Job.batch/default/o1'] !== undefined;
    let isAdmitted = (await create(on, 'o1', 'owner', 2)).ok;
    t.notOk(isAdmitted);
    while (!isAdmitted && !isRecorded()) isAdmitted = (await create(on, 'o1', 'owner', 2)).ok;
    await eventually(() => isSuspended(on, 'b1'), 'a workload to be stopped');
    t.equal(on.used('borrower'), '4', 'it is charged until its pod is gone');
    on.server.remove('pods', 'default', 'b1-pod');
    await eventually(() => on.used('borrower') === '2', 'the room to be free');
    // Another client wants the room that is freed for the owner. With several replicas one may not know of it yet.
    if (replicas === 1 && !isAdmitted)
      t.match(await create(on, 'greedy', 'borrower', 1), {
        ok: false,
        message: /RoomKept: limits.cpu=2 .*default\/o1/,
      });
    if (!isAdmitted) await retry('o1', 'owner', 2);
    t.ok(isSuspended(on, 'b1'), 'the less important workload was stopped');
    t.notOk(isSuspended(on, 'b2'));
    await eventually(() => waitingIn(on, 'borrower')['Job.batch/default/b1'] !== undefined, 'it to wait');
    await on.client.request({ method: 'DELETE', path: `${JOBS}/o1` });
    await eventually(() => !isSuspended(on, 'b1'), 'it to be started again');
    await eventually(
      () => Object.keys({ ...waitingIn(on, 'borrower'), ...waitingIn(on, 'owner') }).length === 0,
      'the records to be removed',
    );
    await eventually(() => on.used('borrower') === '4', 'the borrower to have everything again');
  });

test('a Deployment is scaled to zero and back', async (t) => {
  const { on, retry } = await lending('Guaranteed');
  t.teardown(() => on.stop());
  await eventually(async () => (await on.deploy('web', 'borrower', 2, 2)).ok, 'the Deployment to be admitted');
  await eventually(() => on.used('borrower') === '4', 'the borrower to have everything');
  const replicas = (): unknown =>
    (on.server.read('deployments', 'default', 'web')?.spec as { readonly replicas?: unknown }).replicas;
  await retry('o1', 'owner', 3);
  t.equal(replicas(), 0);
  await on.client.request({ method: 'DELETE', path: `${JOBS}/o1` });
  await eventually(() => replicas() === 2, 'the replicas to come back');
});

test('a disruption budget protects a workload; a group that does not reclaim gets nothing', async (t) => {
  const { on, retry } = await lending('Guaranteed');
  t.teardown(() => on.stop());
  await retry('b1', 'borrower', 2);
  await retry('b2', 'borrower', 2);
  pod(on, 'b1', 0, { app: 'kept' });
  pod(on, 'b2', 5);
  on.server.seed('poddisruptionbudgets', {
    metadata: { name: 'kept', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'kept' } }, maxUnavailable: 0 },
    status: { disruptionsAllowed: 0 },
  });
  await eventually(() => on.used('borrower') === '4', 'the borrower to have everything');
  await seen(on);
  await eventually(async () => {
    if (isSuspended(on, 'b2')) on.server.remove('pods', 'default', 'b2-pod');
    return (await create(on, 'o1', 'owner', 2)).ok;
  }, 'the owner to be admitted');
  t.notOk(isSuspended(on, 'b1'));

  const never = await lending('Never');
  t.teardown(() => never.on.stop());
  await never.retry('b1', 'borrower', 4);
  for (let tries = 0; tries < 20; tries++) t.notOk((await create(never.on, 'o1', 'owner', 2)).ok);
  t.same(waitingIn(never.on, 'owner'), {}, 'nothing is recorded');
  t.notOk(isSuspended(never.on, 'b1'));
});

test('in plan mode workloads are recorded as waiting, and nothing is stopped', async (t) => {
  const { on, retry } = await lending('Guaranteed', 1, 'plan');
  t.teardown(() => on.stop());
  await retry('b1', 'borrower', 4);
  await eventually(async () => {
    t.notOk((await create(on, 'o1', 'owner', 2)).ok);
    return waitingIn(on, 'owner')['Job.batch/default/o1'] !== undefined;
  }, 'the refused workload to be recorded');
  for (let tries = 0; tries < 20; tries++) await create(on, 'o1', 'owner', 2);
  t.equal(waitingIn(on, 'owner')['Job.batch/default/o1']?.room, undefined);
  t.notOk(isSuspended(on, 'b1'));
});

test('a workload of higher priority takes the room of its own group only where the group asks for it', async (t) => {
  const { on } = await lending('Never');
  t.teardown(() => on.stop());
  on.server.seed('priorityclasses', { metadata: { name: 'urgent' }, value: 100 });
  for (const [name, preemption] of [
    ['ranked', 'LowerPriority'],
    ['plain', 'Never'],
  ] as const) {
    const spec = { hard: { 'limits.cpu': 2, [HOURS]: 1_000_000 }, preemption };
    await on.client.request({ method: 'POST', path: GROUPS_PATH, body: { metadata: { name }, spec } });
  }
  for (const name of ['r1', 'r2']) {
    t.ok((await create(on, name, 'ranked', 1)).ok);
    pod(on, name, name === 'r1' ? 100 : 1);
  }
  t.ok((await create(on, 'p1', 'plain', 2)).ok);
  await seen(on, 'ranked');
  await eventually(async () => {
    if (isSuspended(on, 'r2')) on.server.remove('pods', 'default', 'r2-pod');
    return (await create(on, 'first', 'ranked', 1, 'urgent')).ok;
  }, 'the urgent workload to take the room of a less important one');
  t.ok(isSuspended(on, 'r2'), 'the less important workload was stopped');
  t.notOk(isSuspended(on, 'r1'), 'one of the same priority runs on');
  t.match(waitingIn(on, 'ranked')['Job.batch/default/r2'], { priority: 1 });
  for (let tries = 0; tries < 5; tries++) {
    t.notOk((await create(on, 'second', 'ranked', 1, 'urgent')).ok);
    t.notOk((await create(on, 'other', 'plain', 1, 'urgent')).ok);
  }
  t.notOk(isSuspended(on, 'p1'));
  t.notOk(isSuspended(on, 'r1'));
});
