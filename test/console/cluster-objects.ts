import {
  GPU_ASSIGNED_KEY,
  NODE_INVENTORY_KEY,
  PREDICATE_NODE_KEY,
  predicateGpuIndexKey,
} from '../../src/gpu/annotations.js';
import { encodeInventory } from '../../src/gpu/node-inventory.js';
import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { uniformTopology } from '../../src/gpu/topology/topology.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';

const GIB = 2 ** 30;

export interface NodeOptions {
  readonly gpus?: number;
  readonly model?: string;
  readonly memoryGib?: number;
  readonly isReady?: boolean;
  readonly isCordoned?: boolean;
  /** Index of a GPU -> why it is unhealthy. */
  readonly unhealthy?: Readonly<Record<number, string>>;
  readonly inventory?: string;
}

/** A node with the inventory that its agent publishes. */
export function nodeObject(name: string, options: NodeOptions = {}): KubeObject {
  const { gpus = 8, model = 'NVIDIA A100-SXM4-80GB', memoryGib = 80, unhealthy = {} } = options;
  const memoryBytes = memoryGib * GIB;
  const inventory =
    options.inventory ??
    encodeInventory({
      gpus: Array.from({ length: gpus }, (_, index) => ({
        gpu: {
          index,
          minor: index,
          uuid: `GPU-${name}-${index}`,
          pciBusId: `00000000:${(0x10 + index).toString(16)}:00.0`,
          model,
          memoryBytes,
          numaNode: index < gpus / 2 ? 0 : 1,
        },
        healthy: unhealthy[index] === undefined,
        reason: unhealthy[index] ?? '',
        foreign: false,
        freeCores: 100,
        freeMemoryBytes: memoryBytes,
      })),
      topology: uniformTopology(gpus),
    });
  const amounts = {
    cpu: '128',
    memory: '1Ti',
    pods: '250',
    [CORE_RESOURCE]: String(gpus * 100),
    [MEMORY_RESOURCE]: String((gpus * memoryBytes) / MEMORY_BLOCK_BYTES),
  };
  return {
    metadata: { name, annotations: { [NODE_INVENTORY_KEY]: inventory } },
    spec: options.isCordoned === true ? { unschedulable: true } : {},
    status: {
      allocatable: amounts,
      capacity: amounts,
      conditions: [{ type: 'Ready', status: options.isReady === false ? 'False' : 'True' }],
    },
  };
}

export interface PodOptions {
  readonly namespace?: string;
  readonly cores?: number;
  /** Blocks of 256 MiB. */
  readonly blocks?: number;
  readonly node?: string;
  readonly gpus?: readonly number[];
  readonly phase?: string;
  /** The scheduler's reason why it found no node. */
  readonly unscheduled?: string;
  readonly workload?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly reason?: string;
  readonly message?: string;
}

/** A pod with one container that requests GPUs. */
export function podObject(name: string, options: PodOptions = {}): KubeObject {
  const { namespace = 'default', cores = 30, blocks = 16, node, gpus, unscheduled, workload, labels } = options;
  const amounts = { [CORE_RESOURCE]: String(cores), [MEMORY_RESOURCE]: String(blocks) };
  const annotations: Readonly<Record<string, string>> =
    node === undefined || gpus === undefined
      ? {}
      : {
          [predicateGpuIndexKey(0)]: gpus.join(','),
          [PREDICATE_NODE_KEY]: node,
          [GPU_ASSIGNED_KEY]: 'true',
        };
  const phase = options.phase ?? (node === undefined ? 'Pending' : 'Running');
  return {
    metadata: {
      name,
      namespace,
      uid: `${namespace}-${name}`,
      annotations,
      ...(labels === undefined ? {} : { labels }),
      ...(workload === undefined
        ? {}
        : {
            ownerReferences: [
              { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: workload, uid: workload, controller: true },
            ],
          }),
    },
    spec: {
      ...(node === undefined ? {} : { nodeName: node }),
      containers: [{ name: 'main', image: 'app', resources: { limits: amounts, requests: amounts } }],
    },
    status: {
      phase,
      ...(options.reason === undefined ? {} : { reason: options.reason }),
      ...(options.message === undefined ? {} : { message: options.message }),
      ...(node === undefined ? {} : { startTime: '2026-10-01T10:00:00Z' }),
      conditions:
        unscheduled === undefined
          ? node === undefined
            ? []
            : [{ type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-10-01T10:00:00Z' }]
          : [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: unscheduled }],
    },
  };
}

/** The pod of a node's agent. `notReadySince`: the API server marked it as not ready. */
export function agentObject(node: string, notReadySince: string | null = null): KubeObject {
  return {
    metadata: {
      name: `agent-${node}`,
      namespace: 'kube-system',
      labels: { 'app.kubernetes.io/name': 'gpu-manager' },
      ownerReferences: [{ kind: 'DaemonSet', name: 'gpu-manager', uid: 'daemonset', controller: true }],
    },
    spec: { nodeName: node, serviceAccountName: 'gpu-manager', containers: [{ name: 'gpu-manager', args: [] }] },
    status: {
      phase: 'Running',
      containerStatuses: [{ name: 'gpu-manager', ready: true }],
      conditions: notReadySince === null ? [] : [{ type: 'Ready', status: 'False', lastTransitionTime: notReadySince }],
    },
  };
}

/** A busy cluster: `perGpu` pods on every GPU, in a few namespaces. */
export function* clusterObjects(
  nodes: number,
  perGpu: number,
): Generator<{ readonly resource: 'nodes' | 'pods'; readonly object: KubeObject }> {
  const models = ['NVIDIA A100-SXM4-80GB', 'NVIDIA H100 80GB HBM3', 'NVIDIA L40S'];
  const namespaces = ['research', 'search', 'ads', 'vision', 'speech', 'platform'];
  for (let at = 0; at < nodes; at++) {
    const name = `gpu-node-${at}`;
    yield { resource: 'nodes', object: nodeObject(name, { model: models[at % models.length] ?? '' }) };
    yield { resource: 'pods', object: agentObject(name) };
    for (let gpu = 0; gpu < 8; gpu++)
      for (let slot = 0; slot < perGpu; slot++) {
        const number = (at * 8 + gpu) * perGpu + slot;
        const namespace = namespaces[(number * 7 + at) % namespaces.length] ?? '';
        const cores = [20, 30, 50, 100][(number * 5) % 4] ?? 20;
        const pod = podObject(`${['bert-serve', 'train-resnet', 'notebook', 'llm-eval'][number % 4] ?? ''}-${number}`, {
          namespace,
          cores: Math.min(cores, Math.floor(100 / perGpu)),
          blocks: Math.floor(200 / perGpu),
          node: name,
          gpus: [gpu],
          workload: `job-${number % 97}`,
        });
        yield { resource: 'pods', object: pod };
      }
  }
}
