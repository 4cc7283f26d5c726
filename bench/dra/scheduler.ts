import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sliceObject } from '../../src/agent/dra/slice-object.js';
import { publishedDevices, type PublishedGpu } from '../../src/gpu/claims/published-device.js';
import { planSlices } from '../../src/gpu/claims/slice-plan.js';
import { NODE_INVENTORY_KEY } from '../../src/gpu/annotations.js';
import { encodeInventory } from '../../src/gpu/node-inventory.js';
import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { uniformTopology } from '../../src/gpu/topology/topology.js';
import { packageFile } from '../../src/host/package-files.js';
import { TestCluster } from '../../test/e2e/cluster.js';
import type { KubernetesVersion } from '../../test/e2e/kubernetes-version.js';
import { until } from '../../test/harness/eventually.js';

export const NODES = 100;
export const PODS = 1_000;
const GPUS = 8;
const BLOCKS = 320;
/** Every pod asks for this part of a GPU: three fit on each. */
const SHARE = { cores: 30, memoryBlocks: 16 } as const;
const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const TOPOLOGY = uniformTopology(GPUS, 'NODE');

/** How pods ask for their part of a GPU. */
export type Way = 'claims' | 'extender';

/**
 * Pods per second that a real kube-scheduler binds on simulated nodes of eight GPUs, from the first binding to the last
 * one. All pods wait before it starts, and it may make 2,000 requests a second.
 */
export async function throughput(version: KubernetesVersion, way: Way): Promise<number> {
  const cluster = new TestCluster(version);
  try {
    await cluster.startServer();
    await create(cluster, 'accounts', [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }]);
    const names = Array.from({ length: NODES }, (_, at) => `node-${at}`);
    await create(cluster, 'nodes', names.map(nodeObject));
    // The node controller, which does not run here, would remove the taint of new nodes.
    await cluster.kubectl('taint', 'nodes', '--all', 'node.kubernetes.io/not-ready-');
    const pods = Array.from({ length: PODS }, (_, at) => `pod-${at}`);
    if (way === 'claims') {
      await cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
      await create(cluster, 'slices', names.map(resourceSlice));
      await create(cluster, 'claims', pods.map(claimObject));
    }
    await create(
      cluster,
      'pods',
      pods.map((name) => podObject(name, way)),
    );
    if (way === 'extender') {
      cluster.processes.start('extender', process.execPath, [MAIN, 'extender', `--kubeconfig=${cluster.kubeconfig}`]);
      await until('the extender to be ready', async () => (await fetch('http://127.0.0.1:3456/readyz')).ok, 60_000);
    }
    cluster.startScheduler([`--config=${schedulerConfig(cluster, way)}`]);
    return await boundPerSecond(cluster);
  } finally {
    await cluster.stop();
  }
}

async function boundPerSecond(cluster: TestCluster): Promise<number> {
  const bound = async (): Promise<number> =>
    (await cluster.kubectl('get', 'pods', '--field-selector=spec.nodeName!=', '-o', 'name')).split('\n').filter(Boolean)
      .length;
  let first: { readonly count: number; readonly at: number } | null = null;
  const deadline = performance.now() + 300_000;
  for (;;) {
    const count = await bound();
    const at = performance.now();
    if (first === null && count > 0) first = { count, at };
    if (first !== null && count === PODS) return (1_000 * (count - first.count)) / (at - first.at);
    if (at > deadline) throw new Error(`${count} of ${PODS} pods were bound in 300 s`);
    await sleep(50);
  }
}

async function create(cluster: TestCluster, name: string, items: readonly object[]): Promise<void> {
  const file = join(cluster.directory, `${name}.json`);
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await cluster.kubectl('create', '-f', file);
}

/** The shipped configuration, or one without the extender, with limits that do not slow the scheduler down. */
function schedulerConfig(cluster: TestCluster, way: Way): string {
  const path = join(cluster.directory, 'scheduler.yaml');
  const shipped = readFileSync(packageFile('etc/extender/scheduler-config.yaml'), 'utf8');
  const text = way === 'extender' ? shipped : shipped.slice(0, shipped.indexOf('extenders:'));
  writeFileSync(
    path,
    text
      .replace('/etc/kubernetes/scheduler.conf', `${cluster.kubeconfig}\n  qps: 2000\n  burst: 2000`)
      .concat('leaderElection:\n  leaderElect: false\n'),
  );
  return path;
}

function gpusOf(node: string): PublishedGpu[] {
  return Array.from({ length: GPUS }, (_, index) => ({
    index,
    minor: index,
    uuid: `GPU-${node}-${index}`,
    pciBusId: `00000000:0${index}:00.0`,
    model: 'NVIDIA H100 80GB HBM3',
    memoryBytes: BLOCKS * MEMORY_BLOCK_BYTES,
    numaNode: null,
    modelName: 'H100',
    computeCapability: '9.0',
    pcieRoot: null,
    illness: null,
  }));
}

function nodeObject(name: string): object {
  const cards = gpusOf(name).map((gpu) => ({
    gpu,
    healthy: true,
    reason: '',
    foreign: false,
    freeCores: 100,
    freeMemoryBytes: gpu.memoryBytes,
  }));
  const amounts = {
    cpu: '96',
    memory: '512Gi',
    pods: '110',
    [CORE_RESOURCE]: String(100 * GPUS),
    [MEMORY_RESOURCE]: String(BLOCKS * GPUS),
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: { 'kubernetes.io/hostname': name },
      annotations: { [NODE_INVENTORY_KEY]: encodeInventory({ cards, topology: TOPOLOGY }) },
    },
    status: { capacity: amounts, allocatable: amounts },
  };
}

function resourceSlice(node: string): object {
  const gpus = gpusOf(node);
  const devices = publishedDevices(
    { gpus, topology: TOPOLOGY, wholeInstances: false, driverVersion: '580.95.05', cudaVersion: 13_000 },
    () => true,
  );
  const [write] = planSlices(node, devices, []).writes;
  if (write === undefined) throw new Error('a node without a ResourceSlice');
  return sliceObject(write.slice, { name: node, uid: `uid-${node}` }, null);
}

const claimObject = (name: string): object => ({
  apiVersion: 'resource.k8s.io/v1',
  kind: 'ResourceClaim',
  metadata: { name },
  spec: {
    devices: {
      requests: [
        {
          name: 'gpu',
          exactly: {
            deviceClassName: 'vgpu.tencent.com',
            capacity: { requests: { cores: String(SHARE.cores), memory: `${SHARE.memoryBlocks * 256}Mi` } },
          },
        },
      ],
    },
  },
});

function podObject(name: string, way: Way): object {
  const limits = { [CORE_RESOURCE]: String(SHARE.cores), [MEMORY_RESOURCE]: String(SHARE.memoryBlocks) };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      automountServiceAccountToken: false,
      containers: [
        { name: 'main', image: 'none', resources: way === 'claims' ? { claims: [{ name: 'g' }] } : { limits } },
      ],
      ...(way === 'claims' ? { resourceClaims: [{ name: 'g', resourceClaimName: name }] } : {}),
    },
  };
}
