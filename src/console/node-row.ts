import { NODE_INVENTORY_KEY } from '../gpu/annotations.js';
import { MAX_GPUS, THROUGH_CLAIMS, decodeInventory, type InventoryGpu } from '../gpu/node-inventory.js';
import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import type { AgentPod } from '../kube/agent-pods.js';
import type { Node } from '../kube/node.js';
import type { GpuKind, GpuRow, LateRow, NodeRow, SliceRow } from './rows.js';

/** The fields of a node that the console keeps. */
export interface NodeFacts {
  readonly name: string;
  readonly isReady: boolean;
  readonly isCordoned: boolean;
  readonly gpus: readonly Pick<
    InventoryGpu,
    'gpu' | 'healthy' | 'reason' | 'foreign' | 'freeCores' | 'freeMemoryBytes'
  >[];
  /** A defect of the inventory annotation, as a phrase; null without one. */
  readonly problem: string | null;
  /** The inventory as written, for views of this node alone; null without one. */
  readonly inventory: string | null;
}

/**
 * Reads the GPUs of a node from its agent's inventory, or from its capacity if an older agent publishes none; null for
 * a node without GPUs of ours.
 */
export function nodeFacts({ name, isReady, isCordoned, annotations, allocatable }: Node): NodeFacts | null {
  const inventory = annotations[NODE_INVENTORY_KEY] ?? null;
  const cores = allocatable.get(CORE_RESOURCE) ?? 0;
  if (inventory === null && cores < CORES_PER_GPU) return null;
  const node = { name, isReady, isCordoned, inventory };
  const read = inventory === null ? null : decodeInventory(inventory);
  if (read?.ok === true) {
    const gpus = read.inventory.gpus.map(({ gpu, healthy, reason, foreign, freeCores, freeMemoryBytes }) => ({
      ...{ gpu, healthy, reason, foreign, freeCores, freeMemoryBytes },
    }));
    return { ...node, gpus, problem: null };
  }
  const problem = read === null ? null : `its inventory annotation cannot be read: ${read.reason}`;
  return { ...node, gpus: equalGpus(cores, allocatable.get(MEMORY_RESOURCE) ?? 0), problem };
}

/** The equal GPUs that a capacity stands for, as in the original's extender. */
function equalGpus(cores: number, blocks: number): NodeFacts['gpus'] {
  const count = Math.min(MAX_GPUS, Math.floor(cores / CORES_PER_GPU));
  const memoryBytes = count === 0 ? 0 : Math.floor(blocks / count) * MEMORY_BLOCK_BYTES;
  return Array.from({ length: count }, (_, index) => ({
    gpu: { index, minor: index, uuid: '', pciBusId: '', model: '', memoryBytes, numaNode: null },
    ...{ healthy: true, reason: '', foreign: false, freeCores: CORES_PER_GPU, freeMemoryBytes: memoryBytes },
  }));
}

/**
 * The row of a node. The given part of a GPU is the larger of two amounts: the allocations in its agent's ledger, and
 * the slices of the pods on the node. The agent learns of a pod later than the scheduler.
 */
export function nodeRow(
  node: NodeFacts,
  slices: Iterable<SliceRow>,
  /** Unknown: no agent of this cluster runs as a pod that the console knows. */
  agent: AgentPod | 'unknown' | null,
  /** Percent of use, by index of the GPU, as far as it is known. */
  use: ReadonlyMap<number, number> = new Map(),
): NodeRow {
  const kinds: GpuKind[] = [];
  const given = new Map<number, { cores: number; memoryBytes: number }>();
  for (const { gpu, cores, memoryBytes } of slices) {
    if (gpu === null) continue;
    const before = given.get(gpu) ?? { cores: 0, memoryBytes: 0 };
    given.set(gpu, {
      cores: before.cores + cores,
      memoryBytes: before.memoryBytes + (memoryBytes === 0 ? Infinity : memoryBytes),
    });
  }
  const gpus = node.gpus.map(({ gpu, healthy, reason, foreign, freeCores, freeMemoryBytes }): GpuRow => {
    const { index, model, memoryBytes, instance } = gpu;
    const told = given.get(index) ?? { cores: 0, memoryBytes: 0 };
    let kind = kinds.findIndex((known) => known.model === model && known.memoryBytes === memoryBytes);
    if (kind < 0) kind = kinds.push({ model, memoryBytes }) - 1;
    return {
      index,
      kind,
      allocatedCores: Math.min(CORES_PER_GPU, Math.max(CORES_PER_GPU - freeCores, told.cores)),
      allocatedMemoryBytes: Math.min(memoryBytes, Math.max(memoryBytes - freeMemoryBytes, told.memoryBytes)),
      ...(reason === THROUGH_CLAIMS
        ? { byClaims: true }
        : healthy
          ? foreign
            ? { problem: 'foreign processes use it' }
            : {}
          : { problem: reason || 'unhealthy' }),
      ...(instance === undefined ? {} : { profile: instance.profile }),
      ...(use.has(index) ? { usedPercent: use.get(index) } : {}),
    };
  });
  const { name, isReady, isCordoned } = node;
  const problem = node.problem ?? (isReady ? null : 'the node is not ready');
  const late = lateOf(node, agent);
  return {
    ...{ name, isReady, isCordoned, kinds, gpus },
    ...(problem === null ? {} : { problem }),
    ...(late === null ? {} : { late }),
  };
}

/** Only a running agent keeps the inventory of its node up to date. */
function lateOf({ inventory }: NodeFacts, agent: AgentPod | 'unknown' | null): LateRow | null {
  if (agent === 'unknown' || inventory === null) return null;
  if (agent === null) return { why: 'no agent runs on it' };
  const { isReady, problem, sinceMs } = agent;
  return isReady ? null : { why: `its agent is not ready: ${problem}`, ...(sinceMs === null ? {} : { sinceMs }) };
}
