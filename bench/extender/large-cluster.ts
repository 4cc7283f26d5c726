import type { ClusterObserver, ClusterSource } from '../../src/cluster/cluster-source.js';
import { readPod } from '../../src/kube/pod.js';
import { nodeOf, type NodeObject, type PodObject } from '../../test/scheduler/objects.js';
import { PodViews } from '../../src/cluster/pod-view.js';
import type { KubeAnswer } from '../../src/kube/client.js';
import { failure } from '../../src/kube/failure.js';
import type { PodName, PodWriter } from '../../src/scheduler/pod-writer.js';
import { NODE_INVENTORY_KEY } from '../../src/gpu/annotations.js';
import { encodeInventory } from '../../src/gpu/node-inventory.js';
import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { topologyOfPairs } from '../../src/gpu/topology/topology.js';
import { randomIndex, type Random } from '../openb/random.js';

/** Kinds of node: GPUs, blocks of each, CPUs; the first is the most frequent. */
const NODE_KINDS = [
  { count: 8, blocks: 128, cpu: 96 },
  { count: 2, blocks: 64, cpu: 104 },
  { count: 8, blocks: 320, cpu: 128 },
  { count: 4, blocks: 128, cpu: 64 },
] as const;

/** The requests of GPU pods: cores, blocks, CPUs. */
const POD_KINDS = [
  [30, 20, 4],
  [50, 40, 8],
  [20, 16, 2],
  [80, 60, 4],
  [10, 8, 2],
  [100, 0, 11],
  [47, 30, 8],
  [65, 40, 12],
  [200, 0, 24],
  [800, 0, 88],
] as const;

/** A cluster in memory: the extender sees reports and bindings at once. */
export class LargeCluster implements ClusterSource, PodWriter {
  readonly silentMs = 0;
  readonly nodes: readonly NodeObject[];
  #pods: readonly PodObject[];
  readonly #views = new PodViews();
  readonly #waiting = new Map<string, PodObject>();
  #observer: ClusterObserver | null = null;

  constructor(nodes: readonly NodeObject[], pods: readonly PodObject[]) {
    this.nodes = nodes;
    this.#pods = pods;
  }

  /** The pods that the observer has not seen yet. */
  get pods(): readonly PodObject[] {
    return this.#pods;
  }

  start(observer: ClusterObserver): void {
    this.#observer = observer;
    this.nodes.forEach((node) => observer.nodeSeen(nodeOf(node)));
    this.#pods.forEach((pod) => observer.podSeen(this.#views.view(readPod(pod))));
    // Like the pages of a list: kept, they would be most of the heap that is marked.
    this.#pods = [];
    observer.synced();
  }

  async stop(): Promise<void> {
    this.#observer = null;
  }

  create(pod: PodObject): void {
    this.#waiting.set(pod.metadata?.uid ?? '', pod);
    this.#observer?.podSeen(this.#views.view(readPod(pod)));
  }

  delete(uid: string): void {
    this.#observer?.podGone(uid);
  }

  async bind(pod: PodName, node: string, annotations: Readonly<Record<string, string>>): Promise<KubeAnswer> {
    const object = this.#waiting.get(pod.uid);
    if (object === undefined) return failure('not-found', 'no such pod');
    this.#waiting.delete(pod.uid);
    const bound = {
      ...object,
      metadata: { ...object.metadata, annotations },
      spec: { ...object.spec, nodeName: node },
    };
    setImmediate(() => this.#observer?.podSeen(this.#views.view(readPod(bound))));
    return { ok: true, body: null };
  }

  async read(): Promise<{ ok: true; pod: null }> {
    return { ok: true, pod: null };
  }

  async refreshPods(): Promise<void> {}

  async annotate(): Promise<'done'> {
    return 'done';
  }
}

/**
 * A cluster of so many nodes with so many pods, of which `gpuPods` have a GPU; each takes the first GPU with room, node
 * after node.
 */
export function largeCluster(random: Random, nodeCount: number, podCount: number, gpuPods: number): LargeCluster {
  const kinds = Array.from(
    { length: nodeCount },
    () => NODE_KINDS[Math.min(NODE_KINDS.length - 1, Math.floor(random() ** 2 * NODE_KINDS.length))] ?? NODE_KINDS[0],
  );
  const nodes = kinds.map((kind, at) => nodeObject(`node-${at}`, kind));
  const pods = Array.from({ length: podCount - gpuPods }, (_, at) =>
    webPod(`web-${at}`, `node-${randomIndex(random, nodeCount)}`),
  );
  const free = kinds.map((kind) => new Array<number>(kind.count).fill(100));
  for (let at = 0; at < gpuPods; at++) {
    const [cores, blocks] = POD_KINDS[randomIndex(random, 5)] ?? POD_KINDS[0];
    const node = randomIndex(random, nodeCount);
    const gpu = (free[node] ?? []).findIndex((left) => left >= cores);
    if (gpu < 0) continue;
    (free[node] as number[])[gpu] = ((free[node] as number[])[gpu] as number) - cores;
    const pod = gpuPod(`gpu-${at}`, cores, blocks, 2);
    pods.push({
      ...pod,
      metadata: { ...pod.metadata, annotations: { 'tencent.com/predicate-gpu-idx-0': String(gpu) } },
      spec: { ...pod.spec, nodeName: `node-${node}` },
    });
  }
  return new LargeCluster(nodes, pods);
}

/** A pod of one of the usual kinds. */
export function newPod(random: Random, name: string): PodObject {
  const [cores, blocks, cpu] = POD_KINDS[randomIndex(random, POD_KINDS.length)] ?? POD_KINDS[0];
  return gpuPod(name, cores, blocks, cpu);
}

/** A pod of high priority that asks for a whole GPU. */
export function importantPod(name: string): PodObject {
  const pod = gpuPod(name, CORES_PER_GPU, 0, 2);
  return { ...pod, spec: { ...pod.spec, priority: 1_000 } };
}

/** A pod of so many containers of the usual kinds that use a part of a GPU. */
export function newPodOf(containers: number, random: Random, name: string): PodObject {
  const parts = POD_KINDS.filter(([cores]) => cores < CORES_PER_GPU);
  const pods = Array.from({ length: containers }, () => {
    const [cores, blocks, cpu] = parts[randomIndex(random, parts.length)] ?? POD_KINDS[0];
    return gpuPod(name, cores, blocks, cpu);
  });
  const all = pods.flatMap(({ spec }) => spec?.containers ?? []);
  return { ...pods[0], spec: { containers: all.map((container, at) => ({ ...container, name: `part-${at}` })) } };
}

function nodeObject(name: string, kind: (typeof NODE_KINDS)[number]): NodeObject {
  const memoryBytes = kind.blocks * MEMORY_BLOCK_BYTES;
  const gpus = Array.from({ length: kind.count }, (_, index) => ({
    gpu: {
      index,
      minor: index,
      uuid: `GPU-${name}-${index}`,
      pciBusId: `00000000:0${index}:00.0`,
      model: 'T4',
      memoryBytes,
      numaNode: Math.floor(index / 4),
    },
    healthy: true,
    reason: '',
    foreign: false,
    freeCores: 100,
    freeMemoryBytes: memoryBytes,
  }));
  const topology = topologyOfPairs(kind.count, (a, b) => ({
    level: Math.floor(a / 2) === Math.floor(b / 2) ? 'PIX' : 'SYS',
    nvlinks: kind.blocks > 300 ? 12 : 0,
  }));
  return {
    metadata: {
      name,
      labels: { 'kubernetes.io/hostname': name },
      annotations: { [NODE_INVENTORY_KEY]: encodeInventory({ gpus: gpus, topology }) },
    },
    status: {
      allocatable: {
        cpu: String(kind.cpu),
        memory: '512Gi',
        [CORE_RESOURCE]: String(kind.count * 100),
        [MEMORY_RESOURCE]: String(kind.count * kind.blocks),
      },
    },
  };
}

function gpuPod(name: string, cores: number, blocks: number, cpu: number): PodObject {
  const limits = { [CORE_RESOURCE]: String(cores), ...(blocks === 0 ? {} : { [MEMORY_RESOURCE]: String(blocks) }) };
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: { containers: [{ name: 'main', resources: { requests: { cpu: String(cpu), memory: '8Gi' }, limits } }] },
    status: { phase: 'Running' },
  };
}

function webPod(name: string, nodeName: string): PodObject {
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: { nodeName, containers: [{ name: 'web', resources: { requests: { cpu: '100m', memory: '128Mi' } } }] },
    status: { phase: 'Running' },
  };
}
