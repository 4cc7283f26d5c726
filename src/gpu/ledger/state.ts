import type { DeviceIds } from '../device-id.js';
import type { Gpu } from '../gpu.js';
import type { GpuSlot } from '../placement/slot.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../resources.js';
import type { Topology } from '../topology/topology.js';
import type { Allocation } from './allocation.js';
import type { ClaimUnit } from './claim-unit.js';
import { isOffered, type ClaimGpus, type Door } from './door.js';
import type { LegacyHolding } from './legacy-holding.js';

/** The node as far as the ledger needs it. Replaced whole when a GPU comes, goes, falls ill or recovers. */
export interface LedgerNode {
  /** In the order of the topology's positions. */
  readonly gpus: readonly LedgerGpu[];
  readonly topology: Topology;
  readonly ids: DeviceIds;
  /** Whether parts of a GPU may be handed out. */
  readonly shareMode: boolean;
}

export interface LedgerGpu {
  readonly gpu: Gpu;
  /** False when unhealthy or excluded: what it holds stays, nothing new is placed on it. */
  readonly usable: boolean;
  /** Processes on it that belong to no container of ours: the GPU is taken last. */
  readonly processCount: number;
}

/** The GPUs of these names, each a UUID or `/dev/nvidia<minor>`; null unless the node has every one of them. */
export function gpusNamed(node: LedgerNode, names: readonly string[]): readonly Gpu[] | null {
  const found = node.gpus.filter(({ gpu }) => names.includes(gpu.uuid) || names.includes(`/dev/nvidia${gpu.minor}`));
  return names.length > 0 && found.length === names.length ? found.map(({ gpu }) => gpu) : null;
}

/** Memory ids that the kubelet asked for before the core ids of the same container. */
export interface MemoryHalf {
  readonly memoryIds: readonly string[];
  readonly takenAt: number;
}

/**
 * The last answer, as far as the next request may belong to it; the kubelet handles one container after another.
 * `core` and `memory` wait for their other half. `joined`: memory that was taken for the other half of cores before it,
 * until the next request shows whether it was.
 */
export type OpenHalf =
  | { readonly kind: 'core'; readonly allocationId: string }
  | { readonly kind: 'memory'; readonly memoryIds: readonly string[] }
  | {
      readonly kind: 'joined';
      readonly allocationId: string;
      readonly memoryIds: readonly string[];
      readonly takenAt: number;
    };

/** The whole truth about who holds what. Never changed in place. */
export interface LedgerState {
  readonly node: LedgerNode;
  readonly allocations: ReadonlyMap<string, Allocation>;
  readonly halves: readonly MemoryHalf[];
  readonly open: OpenHalf | null;
  /** What containers hold that the original's plugin started. */
  readonly legacy: readonly LegacyHolding[];
  /** What resource claims hold, by unit id. */
  readonly units: ReadonlyMap<string, ClaimUnit>;
  /** By which way each GPU is given, by UUID; see `doorOf` for those that are missing. */
  readonly doors: ReadonlyMap<string, Door>;
  /** GPUs that the configuration gives to claims. */
  readonly claimGpus: ClaimGpus;
}

export function emptyLedger(node: LedgerNode, claimGpus: ClaimGpus = 'none'): LedgerState {
  return {
    node,
    allocations: new Map(),
    halves: [],
    open: null,
    legacy: [],
    units: new Map(),
    doors: new Map(),
    claimGpus,
  };
}

/** What is held of one GPU. Sets of ids: an init container and the container after it may hold the same ones. */
export interface Usage {
  readonly coreIds: ReadonlySet<string>;
  readonly memoryIds: ReadonlySet<string>;
}

const usageOfState = new WeakMap<LedgerState, ReadonlyMap<string, Usage>>();

/** What is held of each GPU, by UUID. */
export function usage(state: LedgerState): ReadonlyMap<string, Usage> {
  const known = usageOfState.get(state);
  if (known !== undefined) return known;
  const byGpu = new Map<string, { coreIds: Set<string>; memoryIds: Set<string> }>();
  const of = (gpuUuid: string) => {
    let entry = byGpu.get(gpuUuid);
    if (entry === undefined) byGpu.set(gpuUuid, (entry = { coreIds: new Set(), memoryIds: new Set() }));
    return entry;
  };
  for (const { gpu } of state.node.gpus) of(gpu.uuid);
  for (const allocation of state.allocations.values()) {
    for (const part of allocation.parts) {
      const entry = of(part.gpuUuid);
      for (const id of part.coreIds) entry.coreIds.add(id);
      for (const id of part.memoryIds) entry.memoryIds.add(id);
    }
  }
  for (const half of state.halves) {
    for (const id of half.memoryIds) {
      const gpuUuid = state.node.ids.decode(id)?.gpuUuid;
      if (gpuUuid !== undefined) of(gpuUuid).memoryIds.add(id);
    }
  }
  usageOfState.set(state, byGpu);
  return byGpu;
}

/** Ids that a request brings along although somebody holds them already: they count as free for that request. */
export interface Reused {
  readonly coreIds: ReadonlySet<string>;
  readonly memoryIds: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();
export const NOTHING_REUSED: Reused = { coreIds: NOTHING, memoryIds: NOTHING };

/** What is left of each GPU, for placement. */
export function slots(state: LedgerState, reused: Reused = NOTHING_REUSED): GpuSlot[] {
  const held = usage(state);
  return state.node.gpus.map(({ gpu, usable, processCount }) => {
    const entry = held.get(gpu.uuid);
    const kept = keptFor(state, gpu.uuid);
    const freeBlocks = memoryBlocks(gpu.memoryBytes) - kept.memoryBlocks - counted(entry?.memoryIds, reused.memoryIds);
    return {
      gpu,
      freeCores: Math.max(0, CORES_PER_GPU - kept.cores - counted(entry?.coreIds, reused.coreIds)),
      freeMemoryBytes: Math.max(0, freeBlocks) * MEMORY_BLOCK_BYTES,
      processCount,
      usable,
    };
  });
}

/** The same, for requests of the device plugin: GPUs that are given through resource claims are not to be had. */
export function pluginSlots(state: LedgerState, reused: Reused = NOTHING_REUSED): GpuSlot[] {
  return slots(state, reused).map((slot) => ({
    ...slot,
    usable: slot.usable && isOffered(state, slot.gpu.uuid, 'plugin'),
  }));
}

/**
 * What of a GPU is kept for containers that hold no ids of ours: those of the original's plugin, and those of resource
 * claims.
 */
export function keptFor(
  state: LedgerState,
  gpuUuid: string,
): { readonly cores: number; readonly memoryBlocks: number } {
  let [cores, blocks] = [0, 0];
  const add = (part: { readonly gpuUuid: string; readonly cores: number; readonly memoryBlocks: number }): void => {
    if (part.gpuUuid !== gpuUuid) return;
    cores += part.cores;
    blocks += part.memoryBlocks;
  };
  for (const { parts } of state.legacy) parts.forEach(add);
  for (const { devices } of state.units.values()) devices.forEach(add);
  return { cores, memoryBlocks: blocks };
}

function counted(held: ReadonlySet<string> = NOTHING, reused: ReadonlySet<string>): number {
  if (reused.size === 0) return held.size;
  let count = held.size;
  for (const id of reused) if (held.has(id)) count -= 1;
  return count;
}

/** The GPUs (indexes) that ids belong to, ascending. */
export function ownersOf(state: LedgerState, ids: readonly string[]): number[] {
  const uuids = new Set(ids.map((id) => state.node.ids.decode(id)?.gpuUuid));
  return state.node.gpus.filter(({ gpu }) => uuids.has(gpu.uuid)).map(({ gpu }) => gpu.index);
}
