import type { DeviceIds } from '../device-id.js';
import type { Gpu } from '../gpu.js';
import type { MadeInstance } from '../mig-partition.js';
import { isInstance } from '../mig.js';
import type { GpuSlot } from '../placement/slot.js';
import { factorOf, roomFor, type HeldAmount } from '../offer.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../resources.js';
import type { Topology } from '../topology/topology.js';
import type { Allocation, Part } from './allocation.js';
import type { ClaimUnit } from './claim-unit.js';
import { isOffered, type ClaimGpus, type GpuMode } from './gpu-mode.js';
import type { LegacyHolding } from './legacy-holding.js';

/** The node as the ledger sees it. Replaced as a whole when GPUs are added or removed or change their health. */
export interface LedgerNode {
  /** In the order of the topology's positions. */
  readonly gpus: readonly LedgerGpu[];
  readonly topology: Topology;
  readonly ids: DeviceIds;
  /** Whether parts of a GPU may be allocated. */
  readonly shareMode: boolean;
  /** MIG instances are allocated whole, by separate ids; no request for cores gets one. */
  readonly wholeInstances: boolean;
  /** How many times its real capacity each GPU offers, the rest to suspendable containers; absent: 1. */
  readonly suspendFactor?: number;
}

export interface LedgerGpu {
  readonly gpu: Gpu;
  /** False when unhealthy or excluded: existing allocations stay, new ones go elsewhere. */
  readonly usable: boolean;
  /** Number of foreign processes; a GPU with foreign processes is chosen last. */
  readonly processCount: number;
}

/** Whether a GPU is a MIG instance that only requests for whole instances get. */
export function isGivenWhole(node: Pick<LedgerNode, 'wholeInstances'>, gpu: Gpu): boolean {
  return node.wholeInstances && isInstance(gpu);
}

/** The GPUs of these names, each a UUID or `/dev/nvidia<minor>`; null unless the node has every one of them. */
export function gpusNamed(node: LedgerNode, names: readonly string[]): readonly Gpu[] | null {
  const found = node.gpus.filter(({ gpu }) => names.includes(gpu.uuid) || names.includes(`/dev/nvidia${gpu.minor}`));
  return names.length > 0 && found.length === names.length ? found.map(({ gpu }) => gpu) : null;
}

/** Memory ids that the kubelet requested before the core ids of the same container. */
export interface MemoryHalf {
  readonly memoryIds: readonly string[];
  readonly takenAt: number;
  /** The GPU that their cores have to be on; absent where the answer for the cores names it. */
  readonly gpuUuid?: string;
  /** As in `Allocation`. */
  readonly suspendable?: true;
}

/**
 * The last answer while the next request may belong to it; the kubelet handles one container after another. `core` and
 * `memory` wait for their other half. `joined`: memory that was joined to the cores before it; the next request
 * confirms this or undoes it.
 */
export type OpenHalf =
  | {
      readonly kind: 'core';
      readonly allocationId: string;
      /** True where these cores may have their memory already, or where their pod may be over. */
      readonly isUnsure?: boolean;
    }
  | {
      readonly kind: 'memory';
      readonly memoryIds: readonly string[];
      /** As in `MemoryHalf`. */
      readonly gpuUuid?: string;
      /** True where the pod of these ids may be over. */
      readonly isUnsure?: boolean;
      /** True where these ids were joined to cores whose pod was over. */
      readonly wasJoined?: boolean;
    }
  | {
      readonly kind: 'joined';
      readonly allocationId: string;
      readonly memoryIds: readonly string[];
      readonly takenAt: number;
      /** As in `MemoryHalf`. */
      readonly gpuUuid?: string;
      /** True after a restart of the agent: the kubelet may repeat the request, since the answer may be lost. */
      readonly isRestored?: boolean;
      /** As for cores. */
      readonly isUnsure?: boolean;
    };

/** All allocations of the node. Immutable. */
export interface LedgerState {
  readonly node: LedgerNode;
  readonly allocations: ReadonlyMap<string, Allocation>;
  readonly halves: readonly MemoryHalf[];
  readonly open: OpenHalf | null;
  /** Shares of containers that the original's plugin started. */
  readonly legacy: readonly LegacyHolding[];
  /** Devices of resource claims, by unit id. */
  readonly units: ReadonlyMap<string, ClaimUnit>;
  /** The mode of each GPU, by UUID; `modeOf` answers for missing ones. */
  readonly modes: ReadonlyMap<string, GpuMode>;
  /** GPUs that the configuration gives to claims. */
  readonly claimGpus: ClaimGpus;
  /** MIG instances that the agent created, by device name. */
  readonly instances: ReadonlyMap<string, MadeInstance>;
}

export function emptyLedger(node: LedgerNode, claimGpus: ClaimGpus = 'none'): LedgerState {
  return {
    node,
    allocations: new Map(),
    halves: [],
    open: null,
    legacy: [],
    units: new Map(),
    modes: new Map(),
    instances: new Map(),
    claimGpus,
  };
}

/**
 * The allocated ids of one GPU. These are sets, because an init container and the container after it may hold the same
 * ids.
 */
export interface Usage {
  readonly coreIds: ReadonlySet<string>;
  readonly memoryIds: ReadonlySet<string>;
  /** What resized containers have beyond their ids. */
  readonly grown: { readonly cores: number; readonly memoryBlocks: number };
  /** What suspendable containers hold of these ids. */
  readonly suspendable: readonly Pick<Part, 'coreIds' | 'memoryIds'>[];
  /** How its containers share it. */
  readonly ways: ReadonlySet<Allocation['compute']>;
}

interface OpenUsage {
  readonly coreIds: Set<string>;
  readonly memoryIds: Set<string>;
  readonly grown: { cores: number; memoryBlocks: number };
  readonly ways: Set<Allocation['compute']>;
  readonly suspendable: Pick<Part, 'coreIds' | 'memoryIds'>[];
}

const usageOfState = new WeakMap<LedgerState, ReadonlyMap<string, Usage>>();

/** The allocated ids of each GPU, by UUID. */
export function usage(state: LedgerState): ReadonlyMap<string, Usage> {
  const known = usageOfState.get(state);
  if (known !== undefined) return known;
  const byGpu = new Map<string, OpenUsage>();
  const of = (gpuUuid: string) => {
    let entry = byGpu.get(gpuUuid);
    if (entry === undefined) {
      const grown = { cores: 0, memoryBlocks: 0 };
      entry = { coreIds: new Set(), memoryIds: new Set(), grown, ways: new Set(), suspendable: [] };
      byGpu.set(gpuUuid, entry);
    }
    return entry;
  };
  for (const { gpu } of state.node.gpus) of(gpu.uuid);
  for (const { parts, grown, compute, suspendable } of state.allocations.values()) {
    for (const part of parts) {
      const entry = of(part.gpuUuid);
      entry.ways.add(compute);
      entry.grown.cores += grown?.cores ?? 0;
      entry.grown.memoryBlocks += grown?.memoryBlocks ?? 0;
      for (const id of part.coreIds) entry.coreIds.add(id);
      for (const id of part.memoryIds) entry.memoryIds.add(id);
      if (suspendable === true) entry.suspendable.push(part);
    }
  }
  for (const half of state.halves) {
    const named = new Map<string, string[]>();
    for (const id of half.memoryIds) {
      const gpuUuid = half.gpuUuid ?? state.node.ids.decode(id)?.gpuUuid;
      if (gpuUuid === undefined) continue;
      of(gpuUuid).memoryIds.add(id);
      const ids = named.get(gpuUuid);
      if (ids === undefined) named.set(gpuUuid, [id]);
      else ids.push(id);
    }
    if (half.suspendable !== true) continue;
    for (const [gpuUuid, memoryIds] of named) of(gpuUuid).suspendable.push({ coreIds: [], memoryIds });
  }
  usageOfState.set(state, byGpu);
  return byGpu;
}

/** Ids of a request that another container of the pod holds already: they count as free for that request. */
export interface Reused {
  readonly coreIds: ReadonlySet<string>;
  readonly memoryIds: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();
const NOTHING_REUSED: Reused = { coreIds: NOTHING, memoryIds: NOTHING };

/**
 * The free capacity of each GPU, for placement: for containers that must run, or for suspendable ones, which find more.
 */
export function slots(state: LedgerState, reused: Reused = NOTHING_REUSED, isSuspendable = false): GpuSlot[] {
  return state.node.gpus.map(({ gpu, usable, processCount }) => {
    const held = heldOn(state, gpu.uuid, reused);
    const factor = factorOf(gpu, state.node.suspendFactor);
    const freeBlocks = roomFor(memoryBlocks(gpu.memoryBytes), factor, held.memoryBlocks, isSuspendable);
    return {
      gpu,
      freeCores: roomFor(CORES_PER_GPU, factor, held.cores, isSuspendable),
      freeMemoryBytes: freeBlocks * MEMORY_BLOCK_BYTES,
      // Suspendable containers have to take turns with these.
      processCount: processCount + (isSuspendable ? held.suspendable : 0),
      usable,
    };
  });
}

/** What containers hold of a GPU, and how many of them are suspendable. `reused` ids are not counted. */
export function heldOn(
  state: LedgerState,
  gpuUuid: string,
  reused: Reused = NOTHING_REUSED,
): { readonly cores: HeldAmount; readonly memoryBlocks: HeldAmount; readonly suspendable: number } {
  const entry = usage(state).get(gpuUuid);
  const kept = usedWithoutIds(state, gpuUuid);
  const parts = entry?.suspendable ?? [];
  // A whole GPU has all its memory, though it was not asked for.
  const real = memoryBlocks(state.node.gpus.find(({ gpu }) => gpu.uuid === gpuUuid)?.gpu.memoryBytes ?? 0);
  const unnamed = parts.filter(
    ({ coreIds, memoryIds }) => memoryIds.length === 0 && counted(new Set(coreIds), reused.coreIds) === CORES_PER_GPU,
  ).length;
  const amounts = (list: 'coreIds' | 'memoryIds', without: number): HeldAmount => {
    const all = counted(entry?.[list], reused[list]);
    const sizes = parts.map((part) => counted(new Set(part[list]), reused[list]));
    const ids = counted(new Set(parts.flatMap((part) => part[list])), reused[list]);
    return { running: without + all - ids, suspendable: ids, largest: Math.max(0, ...sizes) };
  };
  const memory = amounts('memoryIds', kept.memoryBlocks);
  return {
    cores: amounts('coreIds', kept.cores),
    memoryBlocks: {
      running: memory.running,
      suspendable: memory.suspendable + unnamed * real,
      largest: unnamed > 0 ? Math.max(memory.largest, real) : memory.largest,
    },
    suspendable: parts.filter(({ coreIds }) => coreIds.length > 0 && !coreIds.some((id) => reused.coreIds.has(id)))
      .length,
  };
}

/** The free capacity for requests of the device plugin: GPUs in claim mode are unusable. */
export function pluginSlots(state: LedgerState, reused: Reused = NOTHING_REUSED, isSuspendable = false): GpuSlot[] {
  return slots(state, reused, isSuspendable).map((slot) => ({
    ...slot,
    usable:
      slot.usable &&
      isOffered(state, slot.gpu.uuid, 'plugin') &&
      !isGivenWhole(state.node, slot.gpu) &&
      !isSharedOtherwise(state, slot.gpu),
  }));
}

/**
 * Whether containers on a GPU share it in another way than the node shares it now. It gets no new ones until they have
 * ended: programs of one kind would take the share of the other.
 */
export function isSharedOtherwise(state: LedgerState, { uuid, compute }: Gpu): boolean {
  const ways = usage(state).get(uuid)?.ways ?? new Set();
  if (ways.size > (ways.has(compute) ? 1 : 0)) return true;
  const isHere = ({ gpuUuid }: { readonly gpuUuid: string }): boolean => gpuUuid === uuid;
  return (
    compute === 'sm' &&
    (state.legacy.some(({ parts }) => parts.some(isHere)) ||
      [...state.units.values()].some(({ devices }) => devices.some(isHere)))
  );
}

/**
 * The capacity of a GPU that containers use without our ids: containers of the original's plugin, resource claims, and
 * what resized containers have beyond their ids.
 */
export function usedWithoutIds(
  state: LedgerState,
  gpuUuid: string,
): { readonly cores: number; readonly memoryBlocks: number } {
  const { grown } = usage(state).get(gpuUuid) ?? {};
  let [cores, blocks] = [grown?.cores ?? 0, grown?.memoryBlocks ?? 0];
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

/** `ids` of an earlier container of the same pod, which the next container reuses, with all ids beside them. */
export function reusedWith(state: LedgerState, ids: readonly string[]): Reused {
  if (ids.length === 0) return NOTHING_REUSED;
  const wanted = new Set(ids);
  const holders = [...state.allocations.values()].flatMap(({ parts }) => {
    const held = parts.flatMap(({ coreIds, memoryIds }) => [...coreIds, ...memoryIds]);
    return held.some((id) => wanted.has(id)) ? parts : [];
  });
  return {
    coreIds: new Set([...ids, ...holders.flatMap(({ coreIds }) => coreIds)]),
    memoryIds: new Set([...ids, ...holders.flatMap(({ memoryIds }) => memoryIds)]),
  };
}

/** The indexes of the GPUs that ids name, ascending. */
export function ownersOf(state: LedgerState, ids: readonly string[]): number[] {
  const uuids = new Set(ids.map((id) => state.node.ids.decode(id)?.gpuUuid));
  return state.node.gpus.filter(({ gpu }) => uuids.has(gpu.uuid)).map(({ gpu }) => gpu.index);
}
