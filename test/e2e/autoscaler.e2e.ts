import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { AgentProcess } from './agent-process.js';
import { bareNode } from './bare-node.js';
import { NODE, TestCluster } from './cluster.js';
import { startExtender } from './extender-process.js';
import { kubernetesHome } from './kubernetes-version.js';
import { podManifest } from './pods.js';

/** The guide of the cluster autoscaler, with its simulated cloud, whose new nodes are objects without a machine. */

const PROGRAM = join(kubernetesHome(), 'engines/autoscaler/cluster-autoscaler');
const CORE = 'tencent.com/vcuda-core';
const MEMORY = 'tencent.com/vcuda-memory';
const GPU_LABEL = 'example.com/accelerator';
const GROUP = 'example.com/node-group';
const GPUS = 2;

const cluster = new TestCluster();
if (!cluster.version.atLeast(34) || !existsSync(PROGRAM)) {
  tap.plan(
    0,
    `no ${PROGRAM}: docs/reference/comparison.md says which program to put there (for Kubernetes 1.34 and later)`,
  );
  process.exit(0);
}
const agent = new AgentProcess(cluster, JSON.stringify({ gpus: Array.from({ length: GPUS }, () => ({})) }));

interface NodeObject {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly status: { readonly allocatable: Readonly<Record<string, string>> };
}

interface PodObject {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly nodeName?: string };
}

const listed = async <T>(...what: readonly string[]): Promise<readonly T[]> =>
  (JSON.parse(await cluster.kubectl('get', ...what, '-o', 'json')) as { readonly items: readonly T[] }).items;

/** Names of the nodes that the autoscaler made, of a group. */
async function nodesOf(group: string): Promise<readonly string[]> {
  return (await listed<NodeObject>('nodes', '-l', `${GROUP}=${group}`)).map(({ metadata }) => metadata.name);
}

async function pods(): Promise<ReadonlyMap<string, PodObject>> {
  return new Map((await listed<PodObject>('pods')).map((pod) => [pod.metadata.name, pod]));
}

const pod = (name: string, cores: number, blocks: number): object =>
  podManifest(name, [{ name: 'main', cores, memoryBlocks: blocks, command: 'sleep 600' }], [], 'Never', null);

/** Removes pods, also from nodes without a kubelet, and the nodes that the autoscaler made. */
async function clear(): Promise<void> {
  await cluster.kubectl('delete', 'pods', '--all', '--force', '--grace-period=0');
  await until('the pods to be gone', async () => (await pods()).size === 0);
  await cluster.kubectl('delete', 'nodes', '-l', GROUP);
}

const log = (): string => readFileSync(cluster.processes.logOf('autoscaler'), 'utf8');

/** Waits until the autoscaler has looked at the waiting pods `times` more times. */
async function looks(times: number): Promise<void> {
  const count = (): number => log().split('Starting main loop').length;
  const before = count();
  await until(`the autoscaler to look ${times} times`, () => count() >= before + times, 60_000);
}

/** A node of a group as the guide has its tags. */
const template = (group: string, amounts: Readonly<Record<string, string>>, labels: object = {}): object =>
  bareNode(group, amounts, {
    labels: { [GROUP]: group, ...labels },
    annotations: { 'cluster-autoscaler.kwok.nodegroup/max-count': '4' },
  });

async function startAutoscaler(...templates: readonly object[]): Promise<void> {
  const configMap = (name: string, data: object): object => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'kube-system' },
    data,
  });
  await cluster.processes.stop('autoscaler');
  await cluster.apply(
    configMap('kwok-provider-config', {
      config: JSON.stringify({
        apiVersion: 'v1alpha1',
        readNodesFrom: 'configmap',
        nodegroups: { fromNodeLabelKey: GROUP },
        nodes: { skipTaint: true, gpuConfig: { gpuLabelKey: GPU_LABEL, availableGPUTypes: { any: {} } } },
        configmap: { name: 'templates' },
      }),
    }),
    configMap('templates', { templates: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: templates }) }),
  );
  cluster.processes.start('autoscaler', 'env', [
    'KWOK_PROVIDER_MODE=local',
    'POD_NAMESPACE=kube-system',
    `KUBECONFIG=${cluster.kubeconfig}`,
    PROGRAM,
    '--cloud-provider=kwok',
    `--kubeconfig=${cluster.kubeconfig}`,
    '--namespace=kube-system',
    '--leader-elect=false',
    '--scan-interval=1s',
    '--scale-down-enabled=false',
    '--address=127.0.0.1:18085',
    '--v=4',
  ]);
  await looks(1);
}

tap.setTimeout(600_000);
tap.before(async () => {
  await agent.start();
  await startExtender(cluster);
  await until('the node to offer its GPUs', async () => {
    const { amounts, labels } = await offered();
    return amounts[MEMORY] !== undefined && labels['gaia.tencent.com/gpu-product'] !== undefined;
  });
});
tap.teardown(async () => {
  await cluster.processes.stop('autoscaler');
  await clear();
  await cluster.processes.stop('extender');
  await agent.stop();
});

/** The amounts and labels that the commands of the guide print. */
async function offered(): Promise<{
  readonly amounts: Record<string, string>;
  readonly labels: Record<string, string>;
}> {
  const guide = readFileSync(packageFile('docs/guides/cluster-autoscaler.md'), 'utf8');
  const [, commands = ''] = /^## 1[^]*?```sh\n([^]*?)```/m.exec(guide) ?? [];
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', commands.replaceAll('NODE', NODE)], {
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
  });
  const printed = [...stdout.matchAll(/"([^"]+)":"([^"]+)"/g)].map(
    ([, key = '', value = '']): readonly [string, string] => [key, value],
  );
  const isAmount = ([key]: readonly [string, string]): boolean => key === CORE || key === MEMORY;
  return {
    amounts: Object.fromEntries(printed.filter(isAmount)),
    labels: Object.fromEntries(printed.filter((one) => !isAmount(one))),
  };
}

test('a group without nodes grows for a pod of whole GPUs, and the extender places it', async (t) => {
  const { amounts, labels } = await offered();
  const cores = String(GPUS * 100);
  t.equal(amounts[CORE], cores);
  t.match(labels, { 'gaia.tencent.com/gpu-model': /./, 'gaia.tencent.com/gpu-product': /./ });
  const blocks = Number(amounts[MEMORY]);
  await startAutoscaler(
    template('gpus', amounts, labels),
    template('cpus', {}),
    template('cores-only', { [CORE]: cores }),
  );
  await cluster.apply(pod('first', GPUS * 100, blocks));
  await until('the node to be full', async () => (await pods()).get('first')?.spec.nodeName === NODE);
  await cluster.apply(pod('second', GPUS * 100, blocks));
  const placed = await until('the second pod to be placed', async () => {
    const second = (await pods()).get('second');
    return second?.spec.nodeName !== undefined && second;
  });
  const [added, ...more] = await nodesOf('gpus');
  t.same(more, []);
  t.equal(placed.spec.nodeName, added);
  t.equal(placed.metadata.annotations?.['tencent.com/predicate-gpu-idx-0'], '0,1');
  t.same(await nodesOf('cpus'), [], 'a template that says nothing of GPUs is not tried');
  t.same(await nodesOf('cores-only'), [], 'nor one that leaves out the memory');
  await clear();
});

test('slices of a size that divides 100 get as many nodes as they need', async (t) => {
  await startAutoscaler(template('gpus', (await offered()).amounts), template('cpus', {}));
  await cluster.kubectl('cordon', NODE);
  const names = Array.from({ length: 9 }, (_, index) => `half-${index}`);
  await cluster.apply(...names.map((name) => pod(name, 50, 1)));
  await until('all to be placed', async () =>
    [...(await pods()).values()].every(({ spec }) => spec.nodeName !== undefined),
  );
  t.equal((await nodesOf('gpus')).length, 3, '9 halves need 4.5 GPUs, which are three nodes of two');
  await clear();
});

test('slices whose sum fits and that fit on no single GPU keep waiting, as the guide says', async (t) => {
  await cluster.apply(...['a', 'b', 'c'].map((name) => pod(name, 60, 1)));
  await until(
    'two to be placed',
    async () => [...(await pods()).values()].filter(({ spec }) => spec.nodeName !== undefined).length === 2,
  );
  await looks(5);
  t.equal((await nodesOf('gpus')).length, 1);
  t.equal([...(await pods()).values()].filter(({ spec }) => spec.nodeName === undefined).length, 1);
  await clear();
});

test('a node with the GPU label of its cloud counts as unready', async (t) => {
  const { amounts } = await offered();
  await startAutoscaler(template('gpus', amounts, { [GPU_LABEL]: 'any' }), template('cpus', {}));
  await cluster.apply(pod('one', 100, 1));
  await until('it to be placed', async () => (await pods()).get('one')?.spec.nodeName !== undefined);
  const [added = ''] = await nodesOf('gpus');
  await until('the autoscaler to say so', () =>
    log().includes(`Overriding status of node ${added}, which seems to have unready GPU`),
  );
  t.equal((await pods()).get('one')?.spec.nodeName, added, 'pods run there all the same');
  await clear();
  await cluster.kubectl('uncordon', NODE);
});
