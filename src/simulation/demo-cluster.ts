import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildConsole } from '../console/run.js';
import { GPU_ASSIGNED_KEY, PREDICATE_NODE_KEY, predicateGpuIndexKey } from '../gpu/annotations.js';
import { NVIDIA_GPU } from '../gpu/foreign-requests.js';
import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import { Lifecycle } from '../host/lifecycle.js';
import type { Log } from '../host/log.js';
import { record, text, timestamp, type JsonRecord } from '../kube/json.js';
import { readNode } from '../kube/node.js';
import { readPod } from '../kube/pod.js';
import { gangText } from '../cluster/explain/waiting-text.js';
import { knownPods } from '../cluster/explain/cluster-state.js';
import { explainIn } from '../cluster/explain/why-waiting.js';
import { readClusterLedger } from '../quota-controller/ledger/cluster-ledger.js';
import { ApiObjects, type StoredObject } from './api-objects.js';
import { ClaimCluster } from './claim-cluster.js';
import { DemoQuota } from './demo-quota.js';
import { DEMO_KINDS, DEMO_NODES, DEMO_WORKLOADS, podOfWorkload, workload } from './demo-workloads.js';
import type { GivenContainer } from './kubelet/kubelet.js';
import type { EmulatedPod } from './kubelet/pod.js';
import { SimulatedNode } from './simulated-node.js';

/** Name of the node whose GPUs have programs. */
export const LIVE_NODE = 'gpu-v100-1';
const CLAIM_NODE = 'gpu-a10-1';
const CLAIM_NAMESPACE = 'search';
/** What commands find by discovery. */
const SERVED = [
  { group: '', version: 'v1', plural: 'pods', kind: 'Pod', shortNames: ['po'] },
  ...Object.entries(DEMO_KINDS).map(([kind, { plural, apiVersion }]) => {
    const [group = '', version = ''] = apiVersion.split('/');
    return { group, version, plural, kind };
  }),
];
/** Quota and fair shares are written so often. */
const REPORT_MS = 10_000;
/** More than the group of its namespace has left. */
const REFUSED = workload('vision', 'ReplicaSet', 'anomaly-5f7b9d6c88', ['-1', '-2'], {
  cores: 50,
  memoryGib: 20,
  accelerator: 'l40s',
  ageMinutes: 2,
});

export interface DemoClusterOptions {
  /** Directory of all files. Keep the path short, because the length of socket paths is limited. */
  readonly directory: string;
  readonly log: Log;
  readonly console: { readonly port: number; readonly address: string };
}

/**
 * A simulated cluster with the console: real agents on emulated kubelets, the placement of the scheduler extender, the
 * quota engine and the arbitration, around an emulated API server. Nothing in it is a cluster of Kubernetes.
 */
export class DemoCluster {
  readonly objects = new ApiObjects();
  readonly #options: DemoClusterOptions;
  readonly #nodes = new Map<string, SimulatedNode>();
  readonly #claims: ClaimCluster;
  #quota: DemoQuota | null = null;
  #reports: NodeJS.Timeout | undefined;
  #console: { readonly lifecycle: Lifecycle; readonly port: () => number } | null = null;

  constructor(options: DemoClusterOptions) {
    const { directory, log } = options;
    this.#options = options;
    const gpus = JSON.stringify({ gpus: [gpuOf('NVIDIA A10', 24, '8.6'), gpuOf('NVIDIA A10', 24, '8.6')] });
    this.#claims = new ClaimCluster({
      ...{ directory: join(directory, 'c'), gpus, log, config: {} },
      ...{ objects: this.objects, nodeName: CLAIM_NODE, namespace: CLAIM_NAMESPACE },
    });
  }

  /** Port of the console. */
  get port(): number {
    return this.#console?.port() ?? 0;
  }

  get kubeconfigPath(): string {
    return join(this.#options.directory, 'kubeconfig');
  }

  /** Starts the API server alone; agents can connect to it. */
  async open(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true });
    this.objects.served = SERVED;
    await this.objects.start();
    await writeFile(this.kubeconfigPath, this.objects.kubeconfig());
    this.objects.reach = (pod) => this.#portOf(pod);
  }

  /** Makes the cluster around a node that runs already, with its pods, and serves the console. */
  async start(live: SimulatedNode, onLive: readonly LivePod[]): Promise<void> {
    this.#nodes.set(LIVE_NODE, live);
    this.#putNode(LIVE_NODE, 'v100', 4, 16);
    for (const { name, accelerator, gpus, model, memoryGib, capability } of DEMO_NODES) {
      const node = new SimulatedNode({
        directory: join(this.#options.directory, accelerator),
        gpus: JSON.stringify({ gpus: Array.from({ length: gpus }, () => gpuOf(model, memoryGib, capability)) }),
        ...{ log: this.#options.log, knowsPods: true },
        config: { standalone: false, kubeconfig: this.kubeconfigPath, nodeName: name },
      });
      this.#putNode(name, accelerator, gpus, memoryGib);
      await node.start();
      this.#nodes.set(name, node);
    }
    this.#putNode(CLAIM_NODE, 'a10', 0, 0);
    await this.#claims.start();
    this.#nodes.set(CLAIM_NODE, this.#claims.node);
    for (const name of this.#nodes.keys()) this.#putAgent(name);
    this.objects.onStored((stored) => this.#annotate(stored));
    await this.#fill(onLive);
    this.#console = await this.#openConsole();
  }

  async stop(): Promise<void> {
    clearInterval(this.#reports);
    await this.#console?.lifecycle.stop();
    await this.#quota?.close();
    if (this.#nodes.has(CLAIM_NODE)) await this.#claims.stop();
    for (const [name, node] of this.#nodes) if (name !== LIVE_NODE && name !== CLAIM_NODE) await node.stop();
    if (this.objects.isListening) await this.objects.stop();
  }

  async #fill(onLive: readonly LivePod[]): Promise<void> {
    const now = Date.now();
    for (const { pod, containers } of onLive) this.#putRunning(pod, LIVE_NODE, containers, now);
    const quota = await DemoQuota.open(this.objects, this.kubeconfigPath);
    this.#quota = quota;
    for (const wanted of DEMO_WORKLOADS) {
      await quota.admit(wanted);
      const pods = wanted.pods.map((suffix) => podOfWorkload(wanted, suffix, now));
      for (const pod of pods) this.objects.put('pods', pod);
      for (const pod of pods) {
        const { uid, createdAt } = readPod(pod);
        if (await this.#schedule(pod)) await quota.started(wanted, uid, createdAt ?? now);
      }
    }
    await quota.admit(REFUSED);
    await this.#claim('a10-shared', { cores: 60, memoryMib: 12_288 }, ['batch-embed-0', 'batch-embed-1']);
    await this.#claim('a10-rerank', { cores: 70, memoryMib: 8_192 }, ['rerank-0']);
    await this.#claim('a10-index', { cores: 80, memoryMib: 16_384 }, ['index-builder-0']);
    this.objects.put('pods', {
      metadata: { name: 'tracker-0', namespace: 'vision', uid: 'vision-tracker-0' },
      spec: { containers: [{ name: 'main', resources: { limits: { [NVIDIA_GPU]: '1' } } }] },
      status: waiting(`0/${this.#nodes.size} nodes are available: ${this.#nodes.size} Insufficient ${NVIDIA_GPU}.`),
    });
    quota.report();
    this.#reports = setInterval(() => quota.report(), REPORT_MS).unref();
  }

  /**
   * Places a pod as scheduler and extender do, and lets its kubelet admit it; else it waits with their reasons:
   * false.
   */
  async #schedule(pod: JsonRecord): Promise<boolean> {
    const wanted = readPod(pod);
    const state = {
      nodes: this.objects.all('nodes').flatMap((node) => readNode(node) ?? []),
      pods: this.objects.all('pods').map(readPod).map(knownPods()),
    };
    const { nodes, gang } = await explainIn(state, wanted, 'fragmentation');
    const [best] = nodes;
    const node = best?.fits === true ? this.#nodes.get(best.node) : undefined;
    const isHeld = gang !== null && gang.placed + gang.fitTogether < (gang.minimum ?? 0);
    if (best === undefined || node === undefined || isHeld) {
      const words = isHeld ? gangText(gang) : schedulersWords(nodes);
      this.objects.put('pods', { ...pod, status: waiting(words) });
      return false;
    }
    const emulated = emulatedPod(pod);
    const admission = await node.kubelet.admit(emulated);
    if (!admission.ok) throw new Error(`${wanted.name} was refused on ${best.node}: ${admission.message}`);
    for (const { name } of emulated.containers) await node.kubelet.startContainer(emulated.uid, name);
    this.#putRunning(pod, best.node, admission.containers, wanted.createdAt ?? Date.now());
    return true;
  }

  /** Agents of the demonstration know pods from their kubelets, which follow the annotations of the API server. */
  #annotate({ plural, object }: StoredObject): void {
    if (plural !== 'pods') return;
    const { uid, node, annotations } = readPod(object);
    const kubelet = this.#nodes.get(node ?? '')?.kubelet;
    if (kubelet?.pods.some((pod) => pod.uid === uid) === true) kubelet.annotate(uid, annotations);
  }

  #putRunning(pod: JsonRecord, node: string, containers: readonly GivenContainer[], sinceMs: number): void {
    const metadata = record(pod['metadata']);
    const since = timestamp(sinceMs);
    this.objects.put('pods', {
      metadata: {
        ...metadata,
        annotations: {
          ...record(metadata['annotations']),
          ...Object.fromEntries(containers.map((container, at) => [predicateGpuIndexKey(at), gpusOf(container)])),
          [PREDICATE_NODE_KEY]: node,
          [GPU_ASSIGNED_KEY]: 'true',
        },
      },
      spec: { ...record(pod['spec']), nodeName: node },
      status: {
        ...{ phase: 'Running', startTime: since },
        conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: since }],
      },
    });
  }

  /** Creates a claim and the pods that use it; they wait if no GPU has room. */
  async #claim(name: string, request: { cores: number; memoryMib: number }, pods: readonly string[]): Promise<void> {
    this.#claims.createClaim(name, request);
    if (this.#claims.schedule(name)) {
      for (const pod of pods) {
        const started = await this.#claims.startPod(pod, name);
        if (!started.ok) throw new Error(`${pod} did not start: ${started.reason}`);
      }
      return;
    }
    for (const pod of pods)
      this.objects.put('pods', {
        metadata: { name: pod, namespace: CLAIM_NAMESPACE, uid: pod },
        spec: {
          resourceClaims: [{ name: 'g', resourceClaimName: name }],
          containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
        },
        status: waiting(`0/${this.#nodes.size} nodes are available: ${this.#nodes.size} cannot allocate all claims.`),
      });
  }

  async #openConsole() {
    const { log, console } = this.#options;
    const { parts, port } = await buildConsole(
      {
        ...{ address: console.address, port: console.port, tls: null, tokenReview: false, prometheus: null },
        kubeconfig: { origin: '--kubeconfig', files: [this.kubeconfigPath] },
        ...{ clusterName: 'demo', agentNamespace: 'kube-system', isSimulated: true },
      },
      log,
      readClusterLedger,
    );
    const lifecycle = new Lifecycle(parts, log);
    await lifecycle.start();
    return { lifecycle, port };
  }

  /** A node as its kubelet reports it; what its agent wrote stays. */
  #putNode(name: string, accelerator: string, gpus: number, memoryGib: number): void {
    const known = this.objects.all('nodes').find(({ metadata }) => metadata['name'] === name);
    const metadata = record(known?.metadata);
    const blocks = (gpus * memoryGib * 2 ** 30) / MEMORY_BLOCK_BYTES;
    const amounts = {
      ...{ cpu: '64', memory: '512Gi', pods: '110' },
      ...(gpus === 0 ? {} : { [CORE_RESOURCE]: String(gpus * CORES_PER_GPU), [MEMORY_RESOURCE]: String(blocks) }),
    };
    this.objects.put('nodes', {
      metadata: {
        ...metadata,
        name,
        labels: { ...record(metadata['labels']), accelerator, 'nvidia-device-enable': 'enable' },
      },
      status: { allocatable: amounts, capacity: amounts, conditions: [{ type: 'Ready', status: 'True' }] },
    });
  }

  #putAgent(node: string): void {
    this.objects.put('pods', {
      metadata: {
        ...{ name: `gpu-manager-${node}`, namespace: 'kube-system' },
        labels: { 'app.kubernetes.io/name': 'gpu-manager' },
        annotations: { 'prometheus.io/port': String(this.#nodes.get(node)?.agent.httpPort()) },
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'gpu-manager', uid: 'gpu-manager', controller: true },
        ],
      },
      spec: { nodeName: node, serviceAccountName: 'gpu-manager', containers: [{ name: 'gpu-manager', args: [] }] },
      status: { phase: 'Running', containerStatuses: [{ name: 'gpu-manager', ready: true }] },
    });
  }

  #portOf(pod: string): number | null {
    const node = this.#nodes.get(pod.replace(/^gpu-manager-/u, ''));
    return node?.agent.httpPort() ?? null;
  }
}

/** A pod that runs on the live node already, as the API server has it, and what its kubelet gave it. */
export interface LivePod {
  readonly pod: JsonRecord;
  readonly containers: readonly GivenContainer[];
}

function gpuOf(model: string, memoryGib: number, computeCapability: string): object {
  return { model, memoryMiB: memoryGib * 1024, computeCapability };
}

function emulatedPod(pod: JsonRecord): EmulatedPod {
  const { uid, namespace, name, containers } = readPod(pod);
  return {
    ...{ uid, namespace, name, initContainers: [] },
    containers: containers.map((container) => ({
      name: container.name,
      cores: Number(container.extended(CORE_RESOURCE)),
      memoryBlocks: Number(container.extended(MEMORY_RESOURCE)),
    })),
  };
}

/** Indexes of the GPUs of a container, as the extender writes them. */
function gpusOf({ annotations }: GivenContainer): string {
  return text(annotations['tencent.com/vcuda-device'])
    .split(',')
    .map((path) => /(\d+)$/u.exec(path)?.[1] ?? '')
    .join(',');
}

function waiting(message: string): JsonRecord {
  return {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  };
}

/** The message of kube-scheduler: how many nodes have which reason. */
function schedulersWords(nodes: readonly { readonly reason: string }[]): string {
  const counts = new Map<string, number>();
  for (const { reason } of nodes) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodes.length} nodes are available: ${reasons.join(', ')}.`;
}
