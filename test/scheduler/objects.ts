import { encodeInventory } from '../../src/gpu/node-inventory.js';
import { NODE_INVENTORY_KEY } from '../../src/gpu/annotations.js';
import { readNode, type Node } from '../../src/kube/node.js';
import { uniformTopology } from '../../src/gpu/topology/topology.js';

/** A container as manifests and schedulers write it. */
export interface ContainerSpec {
  readonly name?: string;
  /** `Always` makes an init container a sidecar. */
  readonly restartPolicy?: string;
  readonly resources?: {
    readonly limits?: Readonly<Record<string, string | number>>;
    readonly requests?: Readonly<Record<string, string | number>>;
  };
}

/** A node of the API. */
export interface NodeObject {
  readonly metadata?: {
    readonly name?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly capacity?: Readonly<Record<string, string>>;
    readonly allocatable?: Readonly<Record<string, string>>;
  };
}

/** The same node as the extender reads it. */
export function nodeOf(object: NodeObject): Node {
  const read = readNode(object);
  if (read === null) throw new Error('a node without a name');
  return read;
}

/** A pod as manifests and schedulers write it. */
export interface PodObject {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: unknown;
  };
  readonly spec?: {
    readonly nodeName?: string | undefined;
    readonly priority?: number;
    readonly schedulingGroup?: { readonly podGroupName: string };
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly affinity?: unknown;
    readonly resources?: ContainerSpec['resources'];
    readonly overhead?: Readonly<Record<string, string | number>>;
    readonly initContainers?: readonly ContainerSpec[];
    readonly containers?: readonly ContainerSpec[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly nominatedNodeName?: string;
    readonly conditions?: readonly Readonly<Record<string, string>>[];
  };
}

const CORE = 'tencent.com/vcuda-core';
const MEMORY = 'tencent.com/vcuda-memory';
const BLOCK = 256 * 2 ** 20;

/** A node of an older agent: capacities, no inventory. */
export function plainNode(
  name: string,
  cores: number,
  blocks: number,
  differing: { labels?: Record<string, string>; annotations?: Record<string, string> } = {},
): NodeObject {
  const amounts = { cpu: '96', memory: '384Gi', pods: '110', [CORE]: String(cores), [MEMORY]: String(blocks) };
  return {
    metadata: { name, labels: { 'kubernetes.io/hostname': name }, ...differing },
    spec: {},
    status: { capacity: amounts, allocatable: amounts },
  };
}

/** A node whose agent publishes GPUs of so many blocks each. */
export function node(
  name: string,
  blocks: readonly number[],
  differing: Partial<{
    unhealthy: number[];
    freeCores: number[];
    labels: Record<string, string>;
    models: string[];
    smGpus: number[];
    allowsResize: boolean;
  }> = {},
): NodeObject {
  const gpus = blocks.map((of, index) => ({
    gpu: {
      index,
      minor: index,
      uuid: `GPU-${name}-${index}`,
      pciBusId: `00000000:0${index}:00.0`,
      model: differing.models?.[index] ?? 'Tesla T4',
      memoryBytes: of * BLOCK,
      numaNode: null,
      ...(differing.smGpus?.includes(index) === true ? { compute: 'sm' as const } : {}),
    },
    healthy: !(differing.unhealthy ?? []).includes(index),
    reason: '',
    foreign: false,
    freeCores: differing.freeCores?.[index] ?? 100,
    freeMemoryBytes: of * BLOCK,
  }));
  const inventory = encodeInventory({
    gpus,
    topology: uniformTopology(gpus.length, 'PHB'),
    allowsResize: differing.allowsResize ?? false,
  });
  const total = blocks.reduce((sum, of) => sum + of, 0);
  return plainNode(name, blocks.length * 100, total, {
    annotations: { [NODE_INVENTORY_KEY]: inventory },
    labels: differing.labels ?? {},
  });
}

/** A pod whose containers request `[cores, blocks]` each; null for a container without GPUs. */
export function pod(
  name: string,
  containers: readonly (readonly [cores: number, blocks: number] | null)[],
  differing: Partial<PodObject['spec'] & object> = {},
): PodObject {
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}`, labels: {}, annotations: {} },
    spec: {
      containers: containers.map((wanted, at) => ({
        name: `c${at}`,
        resources: wanted === null ? {} : { limits: amounts(wanted), requests: amounts(wanted) },
      })),
      ...differing,
    },
    status: { phase: 'Pending' },
  };
}

function amounts([cores, blocks]: readonly [number, number]): Record<string, string> {
  return { ...(cores > 0 ? { [CORE]: String(cores) } : {}), ...(blocks > 0 ? { [MEMORY]: String(blocks) } : {}) };
}
