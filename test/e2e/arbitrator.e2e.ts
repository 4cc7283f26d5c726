import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import tap, { test } from 'tap';
import { MERGE_PATCH } from '../../src/kube/client.js';
import type { AllocationStatus } from '../../src/kube/quota/allocation-object.js';
import { manifestsOf } from '../quota-controller/setting.js';
import { NODE, TestCluster } from './cluster.js';
import { clusterClient } from './cluster-client.js';
import { customResourcesOrSkip } from './custom-resources.js';
import { podManifest } from './pods.js';
import { QuotaProcess } from './quota-process.js';
import { until } from '../harness/eventually.js';

tap.setTimeout(900_000);

const GPU = 'nvidia.com/gpu';
const TENANTS = ['first', 'second'] as const;
const GRACE_SECONDS = 12;
const ACCOUNT = 'gpu-manager-quota';

const cluster = new TestCluster();
const client = await clusterClient(cluster);
await customResourcesOrSkip(cluster, client);
const kubeconfig = join(cluster.directory, 'quota-account.json');
const log = (name: string): string => readFileSync(join(cluster.directory, `quota-${name}.log`), 'utf8');

/**
 * A replica with the permissions of the shipped roles only. One write at a time: Kubernetes 1.20 built with a current
 * Go reads all custom resources through one shared iterator, and two concurrent reads end it.
 */
const replica = (name: string, port: number, mode: 'plan' | 'on'): QuotaProcess =>
  new QuotaProcess({
    name,
    port,
    kubeconfig,
    url: `https://127.0.0.1:${port}`,
    directory: cluster.directory,
    more: [
      '--namespace',
      'kube-system',
      '--no-register',
      '--arbitrator',
      mode,
      '--arbitrator-grace',
      String(GRACE_SECONDS),
      '--arbitrator-cooldown',
      '3',
      '--arbitrator-writes',
      '1',
    ],
  });
const planner = replica('planner', 18_445, 'plan');
const replicas = new Map([
  ['one', replica('one', 18_446, 'on')],
  ['two', replica('two', 18_447, 'on')],
]);

tap.teardown(async () => {
  await Promise.all([planner, ...replicas.values()].map((process) => process.end('SIGTERM')));
  await cluster.kubectl('delete', 'namespace', ...TENANTS, '--ignore-not-found', '--wait=true', '--timeout=120s');
  await cluster.kubectl('delete', 'consumers,allocations', '--all');
  await setGpus(null);
  client.close();
});

/** Announces devices without a plugin, as an operator would: the kubelet keeps extended resources that it finds. */
async function setGpus(count: string | null): Promise<void> {
  await client.request({
    method: 'PATCH',
    path: `/api/v1/nodes/${NODE}/status`,
    contentType: MERGE_PATCH,
    body: { status: { capacity: { [GPU]: count }, allocatable: { [GPU]: count } } },
  });
}

/** A token of the service account: requested, or before 1.24 read from the secret that was created with it. */
async function accountToken(): Promise<string | null> {
  const system = (...args: string[]): Promise<string> => cluster.kubectl('-n', 'kube-system', ...args);
  if (cluster.version.atLeast(24)) return system('create', 'token', ACCOUNT);
  const secret = await system('get', 'serviceaccount', ACCOUNT, '-o', 'jsonpath={.secrets[0].name}');
  if (secret === '') return null;
  return Buffer.from(await system('get', 'secret', secret, '-o', 'jsonpath={.data.token}'), 'base64').toString();
}

/** Access with the token of the service account of the manifests. */
async function writeAccountKubeconfig(): Promise<void> {
  const isRole = ({ kind = '' }: { readonly kind?: string }): boolean =>
    /^(ServiceAccount|Secret|Lease|(Cluster)?Role(Binding)?)$/.test(kind);
  await cluster.apply(
    ...['etc/quota/deployment.yaml', 'etc/quota/arbitrator.yaml'].flatMap(manifestsOf).filter(isRole),
  );
  const token = await until('the token of the service account', accountToken);
  const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')) as object;
  writeFileSync(kubeconfig, JSON.stringify({ ...config, users: [{ name: 'admin', user: { token } }] }));
}

/** Pods of one GPU each that run until they are deleted. */
function deployment(namespace: string, replicaCount: number): object {
  const { spec } = podManifest(
    'tenant',
    [{ name: 'main', cores: 0, memoryBlocks: 0, command: 'sleep 100000' }],
    [],
    'Always',
    null,
  ) as { readonly spec: { readonly containers: readonly object[] } };
  const containers = spec.containers.map((container) => ({
    ...container,
    resources: { requests: { cpu: '10m' }, limits: { [GPU]: '1' } },
  }));
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'tenant', namespace },
    spec: {
      replicas: replicaCount,
      selector: { matchLabels: { app: 'tenant' } },
      template: { metadata: { labels: { app: 'tenant' } }, spec: { ...spec, containers } },
    },
  };
}

interface ListedPod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: { readonly phase: string };
}

/** Names of the pods in a phase that are not being deleted. */
async function podsOf(namespace: string, phase: 'Running' | 'Pending'): Promise<readonly string[]> {
  const { items } = JSON.parse(await cluster.kubectl('-n', namespace, 'get', 'pods', '-o', 'json')) as {
    readonly items: readonly ListedPod[];
  };
  return items
    .filter(({ metadata, status }) => status.phase === phase && metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name);
}

async function statusOf(namespace: string): Promise<AllocationStatus> {
  return (
    (
      JSON.parse(await cluster.kubectl('get', 'allocation', namespace, '-o', 'json')) as {
        readonly status?: AllocationStatus;
      }
    ).status ?? {}
  );
}

const running = (namespace: string, count: number): Promise<unknown> =>
  until(
    `${count} pods of ${namespace} to run`,
    async () => (await podsOf(namespace, 'Running')).length === count,
    90_000,
  );
const deserves = (namespace: string, gpus: string | undefined): Promise<unknown> =>
  until(
    `${namespace} to deserve ${gpus ?? 'no'} GPUs`,
    async () => (await statusOf(namespace)).deserved?.[GPU] === gpus,
  );

/** The oldest pod of the first tenant, which no eviction should choose. */
let oldest = '';

test('in plan mode, with read permissions only, a plan is logged and recorded as an event, and nothing else is written', async (t) => {
  await setGpus('2');
  for (const name of TENANTS) await cluster.kubectl('create', 'namespace', name);
  await writeAccountKubeconfig();
  await cluster.kubectl('delete', 'clusterrolebinding', 'gpu-manager-quota-reclaim');
  await cluster.apply(deployment('first', 1));
  await running('first', 1);
  [oldest = ''] = await podsOf('first', 'Running');
  // The API server stores the times of pods in whole seconds.
  await delay(1500);
  await cluster.kubectl('-n', 'first', 'scale', 'deployment', 'tenant', '--replicas=2');
  await running('first', 2);
  await cluster.apply(deployment('second', 1));
  await planner.start();
  await until('the plan', async () => /these pods would be evicted/.test(log('planner')), 60_000);
  t.match(log('planner'), /"pod":"first\/tenant-[^"]*","resource":"nvidia\.com\/gpu","for":\["second"\]/);
  t.notMatch(log('planner'), new RegExp(`"pod":"first/${oldest}"`), 'the younger pod');
  await until('its event', async () =>
    /would be evicted/.test(await cluster.kubectl('get', 'events', '--field-selector', 'reason=ReclaimPlanned')),
  );
  t.equal(await cluster.kubectl('get', 'allocations', '-o', 'name'), '');
  t.equal((await podsOf('first', 'Running')).length, 2);
  await planner.end('SIGTERM');
  await cluster.kubectl('-n', 'second', 'delete', 'deployment', 'tenant');
  await until('the second tenant to be gone', async () => (await podsOf('second', 'Pending')).length === 0);
});

test('T1: a tenant that is alone and requests everything has a fair share of everything', async () => {
  await cluster.apply(...manifestsOf('etc/quota/arbitrator.yaml'));
  for (const each of replicas.values()) await each.start();
  await deserves('first', '2');
  await deserves('second', undefined);
});

test('T2: with a second tenant the fair share of both is half, and the tenant above its share gets an event', async (t) => {
  await cluster.apply(deployment('second', 1));
  await deserves('first', '1');
  await deserves('second', '1');
  const first = await statusOf('first');
  t.equal(first.allocated?.[GPU], '2');
  t.ok(first.overused?.includes(GPU));
  t.equal(first.conditions?.find(({ type }) => type === 'Overused')?.status, 'True');
  t.ok(first.reclaimAt);
  await until('the event', async () =>
    /ReclaimPending/.test(await cluster.kubectl('get', 'events', '-o', 'jsonpath={.items[*].reason}')),
  );
});

test('T3: the leader is killed during the grace period, the other replica ends it in time, the younger pod is evicted, and the waiting pod runs', async (t) => {
  const { wantedSince, reclaimAt } = await statusOf('first');
  const leader = await cluster.kubectl(
    '-n',
    'kube-system',
    'get',
    'lease',
    ACCOUNT,
    '-o',
    'jsonpath={.spec.holderIdentity}',
  );
  await replicas.get(leader)?.end('SIGKILL');
  t.same(await podsOf('first', 'Running').then((names) => names.length), 2, 'no pod is evicted yet');
  await running('second', 1);
  const follower = [...replicas.keys()].find((name) => name !== leader) ?? '';
  t.match(log(follower), /pod evicted/);
  t.notMatch(log(leader), /pod evicted/);
  const evictedAt = Date.parse(/"time":"([^"]+)"[^\n]*pod evicted/.exec(log(follower))?.[1] ?? '');
  t.ok(
    evictedAt >= Date.parse(reclaimAt ?? ''),
    `the grace period from ${wantedSince ?? ''} to ${reclaimAt ?? ''} was kept: ${new Date(evictedAt).toISOString()}`,
  );
  t.same(await podsOf('first', 'Running'), [oldest]);
  t.equal((await podsOf('first', 'Pending')).length, 1, 'its deployment created another pod, which waits');
  await deserves('first', '1');
  await deserves('second', '1');
  await until('the event', async () =>
    /Reclaimed/.test(await cluster.kubectl('-n', 'first', 'get', 'events', '-o', 'jsonpath={.items[*].reason}')),
  );
  await cluster.kubectl('-n', 'second', 'scale', 'deployment', 'tenant', '--replicas=0');
  await running('first', 2);
  await deserves('first', '2');
});

test('a disruption budget prevents the eviction of a pod until it allows one', async (t) => {
  await cluster.apply({
    apiVersion: cluster.version.atLeast(21) ? 'policy/v1' : 'policy/v1beta1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'both', namespace: 'first' },
    spec: { minAvailable: 2, selector: { matchLabels: { app: 'tenant' } } },
  });
  await until(
    'the budget to be counted',
    async () =>
      (await cluster.kubectl('-n', 'first', 'get', 'pdb', 'both', '-o', 'jsonpath={.status.currentHealthy}')) === '2',
  );
  const before = await podsOf('first', 'Running');
  await cluster.kubectl('-n', 'second', 'scale', 'deployment', 'tenant', '--replicas=1');
  await until('first to be overused', async () => (await statusOf('first')).overused?.includes(GPU));
  const graceIsOver = Date.now() + (GRACE_SECONDS + 3) * 1000;
  await until('the grace to be over', () => Promise.resolve(Date.now() > graceIsOver), 60_000);
  t.equal((await statusOf('first')).reclaimAt, undefined, 'an eviction that is impossible causes no event');
  t.same(await podsOf('first', 'Running'), before);
  await cluster.kubectl('-n', 'first', 'delete', 'pdb', 'both');
  await running('second', 1);
  t.equal((await podsOf('first', 'Running')).length, 1);
});

test('reservations precede equal shares, and an object that cannot be satisfied carries a condition', async (t) => {
  const consumer = (name: string, spec: object): object => ({
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'Consumer',
    metadata: { name },
    spec,
  });
  await cluster.apply(
    consumer('first', { reserved: { [GPU]: 2 }, weight: 2 }),
    consumer('second', { hard: { [GPU]: 1 }, reserved: { [GPU]: '2' } }),
  );
  await until('the condition', async () =>
    /ReservedAboveHard/.test(await cluster.kubectl('get', 'consumer', 'second', '-o', 'yaml')),
  );
  t.match(
    await cluster.kubectl('get', 'consumer', 'first', '-o', 'jsonpath={.status.conditions[0].reason}'),
    /ReservedAboveCluster/,
    'three GPUs are reserved, two exist',
  );
  await t.rejects(
    cluster.apply(consumer('third', { reserved: { [GPU]: '-1' } })),
    /should match|Invalid value/,
    'the schema refuses an invalid amount',
  );
  await cluster.apply(consumer('second', { hard: { [GPU]: 1 } }));
  await deserves('first', '2');
  await running('first', 2);
  t.equal((await podsOf('second', 'Running')).length, 0);
});

test('a group gets lent quota back: a Job is suspended and a Deployment scaled down for a refused Job, and both come back', async (t) => {
  for (const each of replicas.values()) await each.end('SIGTERM');
  await setGpus(null);
  const configurations = manifestsOf('etc/quota/deployment.yaml').filter(({ kind = '' }) =>
    /WebhookConfiguration$/.test(kind),
  );
  await cluster.apply(...configurations);
  if (cluster.version.atLeast(30)) await cluster.apply(...manifestsOf('etc/admission/quota.yaml'));
  const giver = new QuotaProcess({
    name: 'giver',
    port: 18_448,
    kubeconfig,
    url: 'https://127.0.0.1:18448',
    directory: cluster.directory,
    more: ['--namespace', 'kube-system', '--arbitrator', 'on', '--arbitrator-grace', '2', '--arbitrator-cooldown', '1'],
  });
  t.teardown(async () => {
    await giver.end('SIGTERM');
    await cluster.kubectl('-n', 'first', 'delete', 'jobs,deployments', '--all');
    await cluster.kubectl('delete', '--ignore-not-found', '-f', 'etc/admission/quota.yaml');
    for (const { kind = '' } of configurations) await cluster.kubectl('delete', kind.toLowerCase(), ACCOUNT);
  });
  await cluster.kubectl('-n', 'first', 'delete', 'deployment', 'tenant');
  await giver.start();
  const group = (name: string, cpu: string, spec: object): object => ({
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'BizGroupResourceQuota',
    metadata: { name },
    spec: { mode: 'elastic', hard: { 'limits.cpu': cpu }, ...spec },
  });
  await until('the groups to be created', async () => {
    await cluster.apply(
      group('root', '400m', { namespaceSelector: {} }),
      group('owner', '300m', { parentBizGroup: 'root', reclaim: 'Guaranteed' }),
      group('borrower', '100m', { parentBizGroup: 'root' }),
    );
    return true;
  });
  const { spec } = podManifest(
    'tenant',
    [{ name: 'main', cores: 0, memoryBlocks: 0, command: 'sleep 100000' }],
    [],
    'Never',
    null,
  ) as { readonly spec: { readonly containers: readonly object[] } };
  const podSpec = (cpu: string): object => ({
    ...spec,
    terminationGracePeriodSeconds: 1,
    containers: spec.containers.map((each) => ({ ...each, resources: { requests: { cpu: '1m' }, limits: { cpu } } })),
  });
  const job = (name: string, of: string, cpu: string): object => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'first', labels: { 'biz.group.resource.quota': of } },
    spec: { template: { spec: podSpec(cpu) } },
  });
  const web = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'first', labels: { 'biz.group.resource.quota': 'borrower' } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { ...podSpec('100m'), restartPolicy: 'Always' } },
    },
  };
  const created = (...objects: readonly object[]): Promise<unknown> =>
    until('an admission', async () => {
      await cluster.apply(...objects);
      return true;
    });
  await created(job('b1', 'borrower', '200m'));
  await created(web);
  await running('first', 3);
  const field = (object: string, path: string): Promise<string> =>
    cluster.kubectl('-n', 'first', 'get', object, '-o', `jsonpath={${path}}`);
  await t.rejects(cluster.apply(job('o1', 'owner', '300m')), /exceeded quota/);
  await created(job('o1', 'owner', '300m'));
  t.equal(await field('job/b1', '.spec.suspend'), 'true');
  t.equal(await field('deployment/web', '.spec.replicas'), '0');
  await until('the event', async () =>
    /started again when there is room/.test(await cluster.kubectl('-n', 'first', 'get', 'events')),
  );
  await cluster.kubectl('-n', 'first', 'delete', 'job', 'o1');
  await until('the Job to be resumed', async () => (await field('job/b1', '.spec.suspend')) !== 'true');
  await until('the replicas to come back', async () => (await field('deployment/web', '.spec.replicas')) === '2');
  await running('first', 3);
  if (!cluster.version.atLeast(30)) return;
  const account = `system:serviceaccount:kube-system:${ACCOUNT}`;
  const as = (patch: object): Promise<string> =>
    cluster.kubectl('-n', 'first', 'patch', 'job', 'b1', '--type=merge', '-p', JSON.stringify(patch), '--as', account);
  await t.rejects(as({ spec: { backoffLimit: 1 } }), /suspends a workload or lets it run, and changes nothing else/);
  await t.rejects(as({ metadata: { labels: { 'biz.group.resource.quota': 'root' } } }), /changes no label/);
  await as({ spec: { suspend: true } });
});
