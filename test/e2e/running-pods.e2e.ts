import tap, { test } from 'tap';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import { until } from '../harness/eventually.js';
import { BUSYBOX_IMAGE, TestCluster } from './cluster.js';
import { clusterClient } from './cluster-client.js';
import { customResourcesOrSkip } from './custom-resources.js';
import { QuotaProcess } from './quota-process.js';

tap.setTimeout(600_000);

const NAMESPACE = 'work';
const PORT = 18_451;
const CPU = 'requests.cpu';
/** Longest time until a change of objects is charged. */
const LIMIT_MS = 60_000;

const cluster = new TestCluster();
const client = await clusterClient(cluster);
await customResourcesOrSkip(cluster, client);
const service = new QuotaProcess({
  name: 'running-pods',
  port: PORT,
  kubeconfig: cluster.kubeconfig,
  url: `https://127.0.0.1:${PORT}`,
  directory: cluster.directory,
  more: ['--refresh-period', '2', '--open-groups'],
});
const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gpu-manager-quota';

tap.teardown(async () => {
  await service.end('SIGTERM');
  await client.request({ method: 'DELETE', path: CONFIGURATION });
  await cluster.kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=true', '--timeout=120s');
  client.close();
});

const inNamespace = (...args: readonly string[]): Promise<string> => cluster.kubectl('--namespace', NAMESPACE, ...args);

/** The refusal of the API server, or null. */
const refusalOf = (action: Promise<unknown>): Promise<string | null> =>
  action.then(
    () => null,
    (error: unknown) => (error as Error).message,
  );

async function makeGroup(name: string, cpu: string): Promise<void> {
  await cluster.apply({
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'BizGroupResourceQuota',
    metadata: { name },
    spec: { hard: { [CPU]: cpu, pods: 100 } },
  });
  await until(`group ${name}`, async () => (await usedBy(name)) === '0', LIMIT_MS);
}

const usedBy = (group: string): Promise<string> =>
  cluster.kubectl('get', 'bizgroupresourcequotas', group, '-o', 'jsonpath={.status.used.requests\\.cpu}');
const uses = (group: string, amount: string): Promise<unknown> =>
  until(`${group} to use ${amount}`, async () => (await usedBy(group)) === amount, LIMIT_MS);

async function running(selector: string): Promise<number> {
  const names = await inNamespace('get', 'pods', '-l', selector, '--field-selector=status.phase=Running', '-o', 'name');
  return names.split('\n').filter((name) => name !== '').length;
}

/** Pods that this cluster can run, of 100 millicores each. */
const podSpec = (command: string): object => ({
  hostNetwork: true,
  terminationGracePeriodSeconds: 1,
  containers: [
    {
      name: 'main',
      image: BUSYBOX_IMAGE,
      imagePullPolicy: 'Never',
      command: ['sh', '-c', command],
      resources: { requests: { cpu: '100m' } },
    },
  ],
});

/** The label of the group is on the workload and not on its pods, as the guide says. */
const metadata = (name: string, group: string): object => ({
  name,
  namespace: NAMESPACE,
  labels: { [GROUP_LABEL]: group },
});

const deployment = (name: string, group: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: metadata(name, group),
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: podSpec('sleep 3600') },
  },
});

/** Pods of which only the first one goes on. */
const indexedJob = (name: string, group: string, count: number): object => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: metadata(name, group),
  spec: {
    parallelism: count,
    completions: count,
    completionMode: 'Indexed',
    template: { spec: { ...podSpec('[ $JOB_COMPLETION_INDEX = 0 ] && sleep 3600; true'), restartPolicy: 'Never' } },
  },
});

test('what kubectl delete --cascade=orphan leaves stays charged, also if no replica runs meanwhile', async (t) => {
  await cluster.kubectl('create', 'namespace', NAMESPACE);
  await service.start();
  await makeGroup('team', '400m');
  for (const name of ['first', 'second']) {
    await cluster.apply(deployment(name, 'team'));
    await until(`the pods of ${name}`, async () => (await running(`app=${name}`)) === 2, LIMIT_MS);
  }
  await uses('team', '400m');
  await inNamespace('delete', 'deployment', 'first', '--cascade=orphan', '--timeout=60s');
  t.match(await refusalOf(cluster.apply(deployment('third', 'team'))), /QuotaExceeded/);
  await service.end('SIGTERM');
  // The API server keeps a labelled workload until a replica decides; what it owns comes loose at once.
  await inNamespace('delete', 'deployment', 'second', '--cascade=orphan', '--wait=false');
  const ownersOf = (): Promise<string> =>
    inNamespace('get', 'replicaset', '-l', 'app=second', '-o', 'jsonpath={.items[*].metadata.ownerReferences}');
  await until('the ReplicaSet to come loose', async () => (await ownersOf()) === '', LIMIT_MS);
  await inNamespace('delete', 'replicaset', '-l', 'app=second', '--cascade=orphan', '--timeout=60s');
  await service.start();
  const deployments = (): Promise<string> => inNamespace('get', 'deployments', '-o', 'name');
  await until('the Deployment to go', async () => (await deployments()) === '', LIMIT_MS);
  await uses('team', '400m');
  t.match(await refusalOf(cluster.apply(deployment('third', 'team'))), /QuotaExceeded/);
  t.equal((await running('app=first')) + (await running('app=second')), 4, 'pods that run');
  await inNamespace('delete', 'pods', '-l', 'app=second');
  await uses('team', '200m');
  await inNamespace('delete', 'replicaset', '-l', 'app=first');
  await uses('team', '0');
  t.equal(await refusalOf(cluster.apply(deployment('third', 'team'))), null);
  await inNamespace('delete', 'deployment', 'third');
});

const skip = !cluster.version.atLeast(22) && 'Jobs have indexes from Kubernetes 1.22 on';

test('a Job holds no room for pods that have ended, as the quota of Kubernetes counts', { skip }, async (t) => {
  await makeGroup('batch', '400m');
  await cluster.apply(indexedJob('straggler', 'batch', 4));
  const succeeded = (): Promise<string> => inNamespace('get', 'job', 'straggler', '-o', 'jsonpath={.status.succeeded}');
  await until('three of four pods to succeed', async () => (await succeeded()) === '3', LIMIT_MS);
  await uses('batch', '100m');
  await inNamespace('create', 'quota', 'native', `--hard=${CPU}=4`);
  const native = (): Promise<string> =>
    inNamespace('get', 'quota', 'native', '-o', 'jsonpath={.status.used.requests\\.cpu}');
  await until('the same amount by Kubernetes', async () => (await native()) === '100m', LIMIT_MS);
  await inNamespace('delete', 'quota', 'native');
  t.match(await refusalOf(cluster.apply(indexedJob('large', 'batch', 4))), /QuotaExceeded/);
  t.equal(await refusalOf(cluster.apply(indexedJob('next', 'batch', 3))), null);
  await inNamespace('delete', 'jobs', '--all', '--wait=true', '--timeout=60s');
  await uses('batch', '0');
});
