/**
 * Cores of a pod that is not known: how much memory will follow shows only in the next request. Their GPU stays open
 * until then, so that a pod is not refused whose memory another GPU has.
 */
import type { Gpu } from '../gpu.js';
import { place } from '../placement/place.js';
import { isFraction } from '../request.js';
import { MEMORY_BLOCK_BYTES } from '../resources.js';
import { coreIdsOf, type Allocation } from './allocation.js';
import { matchingContainers } from './pairing.js';
import type { PendingContainers } from './pending.js';
import { NOTHING_REUSED, pluginSlots, type LedgerState, type OpenHalf } from './state.js';

/**
 * Whether the answer for cores can leave the GPU open: a part of a GPU whose memory is surely asked for next. Memory
 * that was taken for that of whole GPUs, which need none, may be of these cores.
 */
export function leavesGpuOpen({ open, allocations }: LedgerState, pending: PendingContainers, cores: number): boolean {
  if (!isFraction(cores) || matchingContainers(pending, 'core', cores).length > 0) return false;
  if (open?.kind !== 'joined') return true;
  const before = allocations.get(open.allocationId);
  return before !== undefined && isFraction(coreIdsOf(before).length);
}

/** After a restart: the cores whose memory is asked for next, if their GPU is open; the last ones of several. */
export function openAfterRestart(allocations: Iterable<Allocation>): OpenHalf | null {
  let last: Allocation | null = null;
  for (const allocation of allocations)
    if (allocation.isGpuOpen === true && (last === null || allocation.allocatedAt >= last.allocatedAt))
      last = allocation;
  return last === null ? null : { kind: 'core', allocationId: last.id };
}

/** After a refusal the kubelet fails the pod: nothing waits, and cores with an open GPU wait for no memory any more. */
export function nothingWaits(state: LedgerState): LedgerState {
  const waiting = state.open?.kind === 'core' ? state.allocations.get(state.open.allocationId) : undefined;
  if (waiting?.isGpuOpen !== true) return { ...state, open: null };
  const { isGpuOpen: _, ...closed } = waiting;
  return { ...state, allocations: new Map(state.allocations).set(closed.id, closed), open: null };
}

/**
 * The GPU for an allocation whose GPU is open and that asks for so many memory blocks: its own, or one that has both.
 * Null if there is none.
 */
export function gpuWithRoom(
  state: LedgerState,
  allocation: Allocation,
  memoryBlocks: number,
  reusedMemory: ReadonlySet<string> = NOTHING_REUSED.memoryIds,
): Gpu | null {
  const coreIds = coreIdsOf(allocation);
  const free = pluginSlots(state, { coreIds: new Set(coreIds), memoryIds: reusedMemory });
  const memoryBytes = memoryBlocks * MEMORY_BLOCK_BYTES;
  const own = free.find(({ gpu }) => allocation.parts.some(({ gpuUuid }) => gpuUuid === gpu.uuid));
  if (own !== undefined && own.freeMemoryBytes >= memoryBytes) return own.gpu;
  const placed = place(state.node.topology, free, { cores: coreIds.length, memoryBytes });
  return placed.ok ? (placed.gpus[0] ?? null) : null;
}
