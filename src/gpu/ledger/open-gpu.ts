/**
 * Cores allocated to an unknown pod: the pod's memory request becomes known only with the next call. The choice of the
 * GPU stays open until then, so that a pod is not refused if another GPU has enough memory.
 */
import type { Gpu } from '../gpu.js';
import { place } from '../placement/place.js';
import { isFraction } from '../request.js';
import { MEMORY_BLOCK_BYTES } from '../resources.js';
import { coreIdsOf, memoryIdsOf, type Allocation } from './allocation.js';
import { matchingContainers } from './pairing.js';
import type { PendingContainers } from './pending.js';
import { NOTHING_REUSED, pluginSlots, type LedgerState, type MemoryHalf, type OpenHalf } from './state.js';

/**
 * Whether the GPU can stay open after an allocation of cores: it must be a part of a GPU, and its memory must certainly
 * be requested next. Memory attributed to whole GPUs, which need none, may belong to these cores, and so may memory
 * that was given to cores which may have had theirs.
 */
export function leavesGpuOpen({ open, allocations }: LedgerState, pending: PendingContainers, cores: number): boolean {
  if (!isFraction(cores) || matchingContainers(pending, 'core', cores).length > 0) return false;
  if (open?.kind !== 'joined') return true;
  return open.isUnsure !== true && !isJoinedToWholeGpus({ open, allocations });
}

/** Whether the last answer gave memory to cores that need none, or whose allocation is gone. */
export function isJoinedToWholeGpus({ open, allocations }: Pick<LedgerState, 'open' | 'allocations'>): boolean {
  if (open?.kind !== 'joined') return false;
  const before = allocations.get(open.allocationId);
  return before === undefined || !isFraction(coreIdsOf(before).length);
}

/**
 * After a restart: the last answer, if its container has not started. A kubelet that waits for the agent repeats that
 * request or continues with the other half.
 */
export function openAfterRestart(allocations: Iterable<Allocation>, halves: readonly MemoryHalf[]): OpenHalf | null {
  let last: Allocation | null = null;
  for (const allocation of allocations)
    if (allocation.phase === 'allocated' && (last === null || allocation.allocatedAt >= last.allocatedAt))
      last = allocation;
  const half = halves.reduce<MemoryHalf | null>(
    (latest, each) => (latest === null || each.takenAt >= latest.takenAt ? each : latest),
    null,
  );
  if (half !== null && (last === null || half.takenAt >= last.allocatedAt)) {
    const { memoryIds, gpuUuid } = half;
    return { kind: 'memory', memoryIds, isUnsure: true, ...(gpuUuid === undefined ? {} : { gpuUuid }) };
  }
  if (last === null) return null;
  const memoryIds = memoryIdsOf(last);
  return memoryIds.length === 0
    ? { kind: 'core', allocationId: last.id, isUnsure: true }
    : { kind: 'joined', allocationId: last.id, memoryIds, takenAt: last.allocatedAt, isRestored: true };
}

/**
 * After a refusal, the kubelet fails the pod: no request is pending, and cores with an open GPU no longer wait for
 * memory.
 */
export function nothingWaits(state: LedgerState): LedgerState {
  const waiting = state.open?.kind === 'core' ? state.allocations.get(state.open.allocationId) : undefined;
  if (waiting?.isGpuOpen !== true) return { ...state, open: null };
  const { isGpuOpen: _, ...closed } = waiting;
  return { ...state, allocations: new Map(state.allocations).set(closed.id, closed), open: null };
}

/**
 * The GPU for an allocation with an open GPU that requests this many memory blocks: its present GPU, or another one
 * with enough cores and memory. Null if there is none.
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
