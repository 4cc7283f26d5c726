import tap, { test } from 'tap';
import { setTimeout as delay } from 'node:timers/promises';
import { MERGE_PATCH, type KubeAnswer } from '../../src/kube/client.js';
import { GROUPS_PATH, itemPath } from '../../src/kube/quota/names.js';
import type { KubeObject } from '../../src/kube/object.js';
import { CHECK_CONTROLLER } from '../../src/quota-controller/workloads/kueue-workload.js';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import { until } from '../harness/eventually.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { clusterClient } from './cluster-client.js';
import { customResourcesOrSkip } from './custom-resources.js';
import { startExtender } from './extender-process.js';
import { KueueProcess, whyNoKueue } from './kueue-process.js';
import { podManifest } from './pods.js';
import { Balancer, QuotaProcess } from './quota-process.js';

tap.setTimeout(900_000);

const cluster = new TestCluster();
const reason = whyNoKueue(cluster);
if (reason !== null) {
  tap.plan(0, reason);
  process.exit(0);
}

const CORES = 'tencent.com/vcuda-core';
const MEMORY = 'tencent.com/vcuda-memory';
const KEY = `requests.${CORES}`;
const ROOT = '/apis/kueue.x-k8s.io/v1beta2';
const WORKLOADS = `${ROOT}/namespaces/default/workloads`;
const JOBS = '/apis/batch/v1/namespaces/default/jobs';
const PODS = '/api/v1/namespaces/default/pods';
const GPUS = 8;

const client = await clusterClient(cluster);
const agent = new AgentProcess(cluster, JSON.stringify({ gpus: Array.from({ length: GPUS }, () => ({})) }));
const kueue = new KueueProcess(cluster);
const balancer = new Balancer();
await balancer.start();
const replica = new QuotaProcess({
  name: 'kueue',
  port: 18_445,
  kubeconfig: cluster.kubeconfig,
  url: balancer.url,
  directory: cluster.directory,
  more: [
    ...['--kueue', '--refresh-period', '5'],
    ...['--arbitrator', 'on', '--arbitrator-grace', '2', '--arbitrator-cooldown', '1'],
  ],
});

tap.teardown(async () => {
  await replica.end('SIGTERM');
  for (const kind of ['validating', 'mutating'])
    await cluster.kubectl('delete', `${kind}webhookconfigurations`, '--all').catch(() => '');
  await kueue.stop();
  await balancer.stop();
  await agent.stop();
  await cluster.processes.stop('extender');
  client.close();
});

async function must(answer: Promise<KubeAnswer>): Promise<KubeObject> {
  const given = await answer;
  if (!given.ok) throw new Error(given.message);
  return given.body as KubeObject;
}

interface JobOptions {
  readonly queue: string;
  readonly pods: number;
  readonly cores: number;
  readonly group?: string;
  readonly priority?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
}

const podSpec = (name: string, cores: number): object =>
  (
    podManifest(name, [{ name: 'main', cores, memoryBlocks: 4, command: 'sleep 600' }], [], 'Never', null) as {
      readonly spec: object;
    }
  ).spec;

const labelsOf = ({ queue, group, priority }: JobOptions): object => ({
  'kueue.x-k8s.io/queue-name': queue,
  ...(group === undefined ? {} : { [GROUP_LABEL]: group }),
  ...(priority === undefined ? {} : { 'kueue.x-k8s.io/priority-class': priority }),
});

const submit = (name: string, options: JobOptions): Promise<KubeObject> =>
  must(
    client.request({
      method: 'POST',
      path: JOBS,
      body: {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name, labels: labelsOf(options) },
        spec: {
          parallelism: options.pods,
          completions: options.pods,
          backoffLimit: 100,
          template: {
            spec: {
              ...podSpec(name, options.cores),
              ...(options.nodeSelector === undefined ? {} : { nodeSelector: options.nodeSelector }),
            },
          },
        },
      },
    }),
  );

const remove = (path: string): Promise<KubeAnswer> =>
  client.request({ method: 'DELETE', path, query: { propagationPolicy: 'Background', gracePeriodSeconds: '0' } });

async function itemsOf(path: string): Promise<readonly KubeObject[]> {
  return ((await must(client.request({ method: 'GET', path }))) as { readonly items: readonly KubeObject[] }).items;
}

/** Pods of a Job that run. */
async function running(job: string): Promise<number> {
  const pods = await itemsOf(PODS);
  return pods.filter(
    ({ metadata, status }) => metadata?.labels?.['job-name'] === job && status?.['phase'] === 'Running',
  ).length;
}

const runs = (job: string, pods: number): Promise<unknown> =>
  until(`${pods} pods of ${job} to run`, async () => (await running(job)) === pods);

/** The Workload of a Job or of a group of pods. */
async function workloadOf(owner: string): Promise<KubeObject | null> {
  const found = (await itemsOf(WORKLOADS)).find(
    ({ metadata }) =>
      metadata?.name === owner || metadata?.ownerReferences?.some(({ name }) => name === owner) === true,
  );
  return found ?? null;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

async function condition(owner: string, type: string): Promise<Condition | null> {
  const conditions = ((await workloadOf(owner))?.status?.['conditions'] ?? []) as readonly Condition[];
  return conditions.find((each) => each.type === type) ?? null;
}

async function check(owner: string): Promise<{ readonly state: string; readonly message: string }> {
  const checks = ((await workloadOf(owner))?.status?.['admissionChecks'] ?? []) as readonly {
    readonly state: string;
    readonly message: string;
  }[];
  return checks[0] ?? { state: '', message: '' };
}

const waits = (job: string): Promise<unknown> =>
  until(`${job} to wait for its group`, async () => {
    const { state, message } = await check(job);
    return state === 'Pending' && message.startsWith('waiting for quota: QuotaExceeded: exceeded quota');
  });

async function used(group: string): Promise<string> {
  const { status } = await must(client.request({ method: 'GET', path: itemPath(GROUPS_PATH, group) }));
  return ((status?.['used'] ?? {}) as Readonly<Record<string, string>>)[KEY] ?? '';
}

const charges = (group: string, amount: number): Promise<unknown> =>
  until(`${amount} cores of ${group} to be charged`, async () => (await used(group)) === String(amount));

const queue = (name: string, cores: number, checks: readonly string[] = []): readonly object[] => [
  {
    apiVersion: 'kueue.x-k8s.io/v1beta2',
    kind: 'ClusterQueue',
    metadata: { name },
    spec: {
      namespaceSelector: {},
      preemption: { withinClusterQueue: 'LowerPriority' },
      ...(checks.length === 0
        ? {}
        : { admissionChecksStrategy: { admissionChecks: checks.map((each) => ({ name: each })) } }),
      resourceGroups: [
        {
          coveredResources: [CORES, MEMORY],
          flavors: [
            {
              name: 'gpus',
              resources: [
                { name: CORES, nominalQuota: cores },
                { name: MEMORY, nominalQuota: 10_000 },
              ],
            },
          ],
        },
      ],
    },
  },
  {
    apiVersion: 'kueue.x-k8s.io/v1beta2',
    kind: 'LocalQueue',
    metadata: { name, namespace: 'default' },
    spec: { clusterQueue: name },
  },
];

test('the cluster gets an agent, the extender, Kueue and the quota', async (t) => {
  await customResourcesOrSkip(cluster, client);
  await agent.start();
  await startExtender(cluster);
  await kueue.start();
  await cluster.apply(
    { apiVersion: 'kueue.x-k8s.io/v1beta2', kind: 'ResourceFlavor', metadata: { name: 'gpus' } },
    { apiVersion: 'kueue.x-k8s.io/v1beta2', kind: 'WorkloadPriorityClass', metadata: { name: 'urgent' }, value: 1000 },
    ...queue('plain', 400),
  );
  balancer.serve(replica);
  await replica.start();
  await cluster.apply(
    {
      apiVersion: 'kueue.x-k8s.io/v1beta2',
      kind: 'AdmissionCheck',
      metadata: { name: 'gpu-quota' },
      spec: { controllerName: CHECK_CONTROLLER },
    },
    ...queue('checked', 800, ['gpu-quota']),
    {
      apiVersion: 'quota.gpu-manager.io/v1',
      kind: 'BizGroupResourceQuota',
      metadata: { name: 'vision' },
      spec: { namespaceSelector: {}, hard: { [KEY]: 200 } },
    },
  );
  await until('the queue to be active', async () => {
    const { status } = await must(client.request({ method: 'GET', path: `${ROOT}/clusterqueues/checked` }));
    return ((status?.['conditions'] ?? []) as readonly Condition[]).some(
      ({ type, status: value }) => type === 'Active' && value === 'True',
    );
  });
  await charges('vision', 0);
  t.pass();
});

test('a Job that the group has room for is charged once, one without room waits with the reason', async (t) => {
  await submit('first', { queue: 'checked', pods: 2, cores: 100, group: 'vision' });
  await runs('first', 2);
  await charges('vision', 200);
  t.match(await check('first'), { state: 'Ready', message: 'charged to group vision' });
  await submit('second', { queue: 'checked', pods: 2, cores: 100, group: 'vision' });
  await waits('second');
  t.match(await condition('second', 'QuotaReserved'), { status: 'True' }, 'the quota of Kueue stays reserved');
  t.equal(await running('second'), 0);
});

test('a deleted Job gives back once, and the waiting one is admitted', async (t) => {
  await remove(`${JOBS}/first`);
  await runs('second', 2);
  await charges('vision', 200);
  t.match(await check('second'), { state: 'Ready' });
});

test('the wait goes on when the quota and Kueue start again', async (t) => {
  await submit('third', { queue: 'checked', pods: 1, cores: 100, group: 'vision' });
  await waits('third');
  await replica.end('SIGKILL');
  await replica.start();
  await kueue.restart();
  t.equal((await check('third')).state, 'Pending');
  await charges('vision', 200);
  t.equal(await running('second'), 2, 'the running Job runs on');
});

test('an evicted Job gives back once', async (t) => {
  const name = (await workloadOf('second'))?.metadata?.name ?? '';
  const activate = (active: boolean): Promise<KubeObject> =>
    must(
      client.request({
        method: 'PATCH',
        path: `${WORKLOADS}/${name}`,
        contentType: MERGE_PATCH,
        body: { spec: { active } },
      }),
    );
  await activate(false);
  await runs('third', 1);
  await until('the pods of second to end', async () => (await running('second')) === 0);
  await charges('vision', 100);
  await activate(true);
  await waits('second');
  await charges('vision', 100);
  t.equal(await running('second'), 0);
});

test('a finished Job gives back once', async (t) => {
  await must(
    client.request({
      method: 'PATCH',
      path: `${JOBS}/third`,
      contentType: MERGE_PATCH,
      body: { spec: { activeDeadlineSeconds: 1 } },
    }),
  );
  await until('third to finish', async () => (await condition('third', 'Finished'))?.status === 'True');
  await runs('second', 2);
  await charges('vision', 200);
  for (const job of ['second', 'third']) await remove(`${JOBS}/${job}`);
  await charges('vision', 0);
  t.pass();
});

test('a Job that waits is admitted when room appears', async (t) => {
  const times: number[] = [];
  await submit('room-0', { queue: 'checked', pods: 2, cores: 100, group: 'vision' });
  await runs('room-0', 2);
  for (const next of [1, 2, 3]) {
    await submit(`room-${next}`, { queue: 'checked', pods: 2, cores: 100, group: 'vision' });
    await waits(`room-${next}`);
    const asked = performance.now();
    await remove(`${JOBS}/room-${next - 1}`);
    for (let isAdmitted = false; !isAdmitted; await delay(2))
      isAdmitted = (await condition(`room-${next}`, 'Admitted'))?.status === 'True';
    times.push(performance.now() - asked);
    await runs(`room-${next}`, 2);
  }
  const [, median = 0] = times.sort((a, b) => a - b);
  t.comment(`from the deletion of a Job to Admitted of the one that waits: ${Math.round(median)} ms, median of three`);
  t.equal(times.length, 3);
  await remove(`${JOBS}/room-3`);
  await charges('vision', 0);
});

test('a group gets lent quota back from a running Job, which Kueue queues again', async (t) => {
  const group = (name: string, cores: number, spec: object): object => ({
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'BizGroupResourceQuota',
    metadata: { name },
    spec: { mode: 'elastic', hard: { [KEY]: cores }, ...spec },
  });
  await cluster.apply(
    group('lab', 400, { namespaceSelector: {} }),
    group('owner', 300, { parentBizGroup: 'lab', reclaim: 'Guaranteed' }),
    group('borrower', 100, { parentBizGroup: 'lab' }),
  );
  await charges('borrower', 0);
  for (const job of ['lent-1', 'lent-2']) {
    await submit(job, { queue: 'checked', pods: 2, cores: 100, group: 'borrower' });
    await runs(job, 2);
  }
  await submit('back', { queue: 'checked', pods: 2, cores: 100, group: 'owner' });
  await runs('back', 2);
  await charges('borrower', 200);
  const counts = { 'lent-1': await running('lent-1'), 'lent-2': await running('lent-2') };
  t.same(Object.values(counts).sort(), [0, 2], 'one whole Job was stopped');
  const [stopped = '', other = ''] = Object.entries(counts)
    .sort(([, a], [, b]) => a - b)
    .map(([name]) => name);
  t.match(await condition(stopped, 'Requeued'), { status: 'True' });
  await until('it to wait with the reason', async () => /^waiting for quota: /.test((await check(stopped)).message));
  await remove(`${JOBS}/back`);
  await runs(stopped, 2);
  await charges('borrower', 400);
  t.equal(await running(other), 2);
  for (const job of ['lent-1', 'lent-2']) await remove(`${JOBS}/${job}`);
  await charges('borrower', 0);
});

test('a group of pods is charged once, and starts as a whole', async (t) => {
  const member = (name: string): Promise<KubeObject> =>
    must(
      client.request({
        method: 'POST',
        path: PODS,
        body: {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: {
            name,
            labels: {
              'kueue.x-k8s.io/queue-name': 'checked',
              'kueue.x-k8s.io/pod-group-name': 'gang',
              [GROUP_LABEL]: 'vision',
            },
            annotations: { 'kueue.x-k8s.io/pod-group-total-count': '2' },
          },
          spec: podSpec(name, 100),
        },
      }),
    );
  const phase = async (name: string): Promise<unknown> =>
    (await itemsOf(PODS)).find(({ metadata }) => metadata?.name === name)?.status?.['phase'];
  await member('gang-0');
  await charges('vision', 0);
  t.equal(await phase('gang-0'), 'Pending', 'it waits for the others');
  await member('gang-1');
  for (const name of ['gang-0', 'gang-1']) await until(`${name} to run`, async () => (await phase(name)) === 'Running');
  await charges('vision', 200);
  t.match(await check('gang'), { state: 'Ready' });
  for (const name of ['gang-0', 'gang-1']) await remove(`${PODS}/${name}`);
  // Kueue waits for other pods in their place, and keeps its quota, until the Workload goes.
  await remove(`${WORKLOADS}/gang`);
  await charges('vision', 0);
});

test("Kueue's own quota on GPU resources: order of the queue, and preemption of a whole Job", async (t) => {
  await submit('low', { queue: 'plain', pods: 4, cores: 100 });
  await runs('low', 4);
  for (const name of ['next', 'last']) {
    await submit(name, { queue: 'plain', pods: 2, cores: 100 });
    await until(`${name} to be in the queue`, async () => (await kueue.waitingIn('plain')).includes(name));
    // Kueue orders by times in whole seconds.
    await delay(1_100);
  }
  t.same(await kueue.waitingIn('plain'), ['next', 'last']);
  await submit('urgent', { queue: 'plain', pods: 4, cores: 100, priority: 'urgent' });
  await runs('urgent', 4);
  t.equal(await running('low'), 0, 'the whole Job is preempted');
  t.match(await condition('low', 'QuotaReserved'), { status: 'False' });
  for (const job of ['low', 'next', 'last', 'urgent']) await remove(`${JOBS}/${job}`);
  await until('the pods to end', async () => (await itemsOf(PODS)).length === 0);
});

test('a Job whose pods cannot start is evicted after the time limit of waitForPodsReady, and gives back', async (t) => {
  await kueue.restart({
    waitForPodsReady: {
      timeout: '8s',
      requeuingStrategy: { timestamp: 'Eviction', backoffBaseSeconds: 4, backoffLimitCount: 1 },
    },
  });
  await submit('never', {
    queue: 'checked',
    pods: 2,
    cores: 100,
    group: 'vision',
    nodeSelector: { 'kubernetes.io/hostname': 'no-such-node' },
  });
  await charges('vision', 200);
  await until('the Job to be evicted', async () => (await condition('never', 'Evicted'))?.status === 'True');
  t.match(await condition('never', 'Evicted'), { reason: /PodsReadyTimeout|Deactivated/ });
  await until('its Workload to be given up', async () => (await workloadOf('never'))?.spec?.['active'] === false);
  await charges('vision', 0);
  await remove(`${JOBS}/never`);
});
