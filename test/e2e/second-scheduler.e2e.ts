import tap, { test } from 'tap';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';
import { AgentProcess } from './agent-process.js';
import { NODE, TestCluster } from './cluster.js';
import { podManifest } from './pods.js';

const MANIFESTS = fileURLToPath(new URL('../../../etc/scheduler/', import.meta.url));
const SCHEDULER = 'gpu-manager-scheduler';
const GPUS = 4;

const cluster = new TestCluster();
// The MutatingAdmissionPolicy is stable from this version on.
if (!cluster.version.atLeast(36)) {
  tap.plan(0, 'MutatingAdmissionPolicy needs Kubernetes 1.36');
  process.exit(0);
}
const agent = new AgentProcess(cluster, JSON.stringify({ gpus: Array.from({ length: GPUS }, () => ({})) }));

tap.setTimeout(900_000);
tap.teardown(async () => {
  for (const name of ['scheduler-2a', 'scheduler-2b', 'extender']) await cluster.processes.stop(name);
  await cluster.kubectl('delete', 'mutatingadmissionpolicybindings,mutatingadmissionpolicies', '--all');
  await agent.stop();
});

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
}

interface ListedPod {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly schedulerName: string;
    readonly nodeName?: string;
    readonly containers: readonly { readonly resources: { readonly limits?: Readonly<Record<string, string>> } }[];
  };
  readonly status: { readonly phase: string };
}

const manifestsOf = (name: string): readonly Manifest[] =>
  parseAllDocuments(readFileSync(join(MANIFESTS, name), 'utf8')).map((document) => document.toJS() as Manifest);

/** A kube-scheduler with the shipped configuration, beside the scheduler of the cluster. */
function startSecond(name: string): void {
  const shipped = manifestsOf('deployment.yaml').find(({ kind }) => kind === 'ConfigMap')?.data?.['scheduler.yaml'];
  const file = join(cluster.directory, `${name}.yaml`);
  const quick = 'leaderElect: true, leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s';
  writeFileSync(
    file,
    `${shipped?.replace('leaderElect: true', quick) ?? ''}clientConnection: { kubeconfig: ${cluster.kubeconfig} }\n`,
  );
  cluster.processes.start(name, cluster.version.program('kube-scheduler'), [`--config=${file}`, '--secure-port=0']);
}

async function pods(namespace = 'default'): Promise<readonly ListedPod[]> {
  return (JSON.parse(await cluster.kubectl('get', 'pods', '-n', namespace, '-o', 'json')) as { items: ListedPod[] })
    .items;
}

const pod = (name: string, cores: number, namespace = 'default'): object => {
  const container = { name: 'main', cores, memoryBlocks: cores === 0 ? 0 : 1, command: 'sleep 600' };
  const made = podManifest(name, [container], [], 'Never', null) as { readonly metadata: object };
  return { ...made, metadata: { ...made.metadata, namespace } };
};

const allRun = (count: number): Promise<unknown> =>
  until(`${count} pods to run`, async () => {
    const all = await pods();
    return all.length === count && all.every(({ status }) => status.phase === 'Running');
  });

/** Cores of each GPU that running pods hold by the annotations of the extender. */
async function coresByGpu(): Promise<ReadonlyMap<string, number>> {
  const held = new Map<string, number>();
  for (const { metadata, spec } of await pods()) {
    const cores = Number(spec.containers[0]?.resources.limits?.['tencent.com/vcuda-core'] ?? 0);
    const gpu = metadata.annotations?.['tencent.com/predicate-gpu-idx-0'];
    if (cores > 0) held.set(gpu ?? 'none', (held.get(gpu ?? 'none') ?? 0) + cores);
  }
  return held;
}

test('a second scheduler runs beside the one of the cluster', async (t) => {
  await agent.start();
  cluster.processes.start('extender', process.execPath, [MAIN, 'extender', `--kubeconfig=${cluster.kubeconfig}`]);
  await until('the extender to be ready', async () => (await fetch('http://127.0.0.1:3456/readyz')).ok);
  await cluster.apply(...manifestsOf('policy.yaml'));
  startSecond('scheduler-2a');
  startSecond('scheduler-2b');
  await until('one of them to lead', async () =>
    (await cluster.kubectl('get', 'lease', SCHEDULER, '-n', 'kube-system')).includes(SCHEDULER),
  );
  // The API server takes a moment to use a new policy.
  await until('the policy to be used', async () => {
    await cluster.apply(pod('probe', 10));
    const [probe] = await pods();
    if (probe?.spec.schedulerName === SCHEDULER) return true;
    await cluster.removePods('probe');
    return false;
  });
  await cluster.removePods('probe');
  t.pass();
});

test('both schedulers place the pods of their kind, and no GPU is given away twice', async (t) => {
  const gpuPods = Array.from({ length: 12 }, (_, index) => pod(`gpu-${index}`, 30));
  const others = Array.from({ length: 4 }, (_, index) => pod(`cpu-${index}`, 0));
  await cluster.apply(...gpuPods.flatMap((each, index) => [each, ...(index < 4 ? [others[index] as object] : [])]));
  await allRun(16);
  for (const { metadata, spec } of await pods())
    t.equal(spec.schedulerName, metadata.name.startsWith('gpu') ? SCHEDULER : 'default-scheduler', metadata.name);
  const held = await coresByGpu();
  t.equal(held.size, GPUS, 'all GPUs are used');
  t.ok(
    [...held.values()].every((cores) => cores === 90),
    JSON.stringify([...held]),
  );
});

test('another replica goes on when the one that schedules ends', async (t) => {
  // One of the two schedules, and ends here.
  for (const [index, name] of ['scheduler-2a', 'scheduler-2b'].entries()) {
    await cluster.processes.stop(name, 'SIGKILL');
    await cluster.removePods(`gpu-${index}`);
    await cluster.apply(pod(`late-${index}`, 30));
    await allRun(16);
    startSecond(name);
  }
  t.ok([...(await coresByGpu()).values()].every((cores) => cores <= 100));
});

test('a namespace with the label keeps the scheduler of the cluster', async (t) => {
  await cluster.kubectl('create', 'namespace', 'own');
  await cluster.kubectl('label', 'namespace', 'own', 'tencent.com/gpu-scheduler=default');
  await cluster.kubectl('create', 'serviceaccount', 'default', '-n', 'own').catch(() => '');
  await cluster.apply(pod('plain', 5, 'own'));
  const [plain] = await pods('own');
  t.equal(plain?.spec.schedulerName, 'default-scheduler');
  await until('it to be placed', async () => (await pods('own'))[0]?.spec.nodeName === NODE);
  await cluster.kubectl('delete', 'namespace', 'own', '--wait=false');
});
