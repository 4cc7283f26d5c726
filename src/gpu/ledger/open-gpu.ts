/**
 * Cores allocated to an unknown pod: the pod's memory request becomes known only with the next call. The choice of the
 * GPU stays open until then, so that a pod is not refused if another GPU has enough memory.
 */
import { dividedRequest } from '../division.js';
import { allows, ANY_GPUS } from '../gpu-selection.js';
import type { Gpu } from '../gpu.js';
import { place } from '../placement/place.js';
import { isFraction } from '../request.js';
import { MEMORY_BLOCK_BYTES } from '../resources.js';
import { coreIdsOf, memoryIdsOf, type Allocation } from './allocation.js';
import { matchingContainers, type PendingContainers } from './pending.js';
import { inTurn } from './pod-plan.js';
import { pluginSlots, type LedgerState, type MemoryHalf, type OpenHalf } from './state.js';

/**
 * Whether the GPU can stay open after an allocation of cores: it must be a part of a GPU, and its memory must
 * certainly be requested next. Memory attributed to whole GPUs, which need none, may belong to these cores, and so
 * may memory that was given to cores which may have had memory already.
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
  const waiting = [...allocations].filter(({ phase }) => phase === 'allocated');
  const last = waiting.sort((a, b) => a.allocatedAt - b.allocatedAt).at(-1);
  const half = [...halves].sort((a, b) => a.takenAt - b.takenAt).at(-1);
  if (half !== undefined && (last === undefined || half.takenAt >= last.allocatedAt)) {
    const { memoryIds, gpuUuid } = half;
    return { kind: 'memory', memoryIds, isUnsure: true, gpuUuid };
  }
  if (last === undefined) return null;
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
 * with enough cores and memory that the pod's annotations allow. Null if there is none.
 */
export function gpuWithRoom(
  state: LedgerState,
  allocation: Allocation,
  { size, pending }: { readonly size: number; readonly pending: PendingContainers },
): Gpu | null {
  const coreIds = coreIdsOf(allocation);
  const own = { coreIds: new Set(coreIds), memoryIds: new Set<string>() };
  const free = pluginSlots(state, own, allocation.suspendable === true);
  const memoryBytes = size * MEMORY_BLOCK_BYTES;
  const known = matchingContainers(pending, 'memory', size);
  const selection = inTurn(state, known, { kind: 'memory', size })[0]?.selection ?? ANY_GPUS;
  const present = free.find(({ gpu }) => allocation.parts.some(({ gpuUuid }) => gpuUuid === gpu.uuid));
  if (present !== undefined && present.freeMemoryBytes >= memoryBytes && allows(selection, present.gpu))
    return present.gpu;
  const request = { cores: coreIds.length, memoryBlocks: size };
  const placed = place(state.node.topology, free, { ...dividedRequest(request, selection), selection });
  return placed.ok ? (placed.gpus[0] ?? null) : null;
}
