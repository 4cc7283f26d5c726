/**
 * Pairing: the half of a container's request that was answered last and that the next request may complete. The kubelet
 * requests cores and memory in separate calls, and names no pod.
 */
import type { PlacementOptions } from '../placement/request.js';
import { divisionOf } from '../division.js';
import type { GpuSelection } from '../gpu-selection.js';
import { isFraction, type ContainerRequest } from '../request.js';
import type { Allocation } from './allocation.js';
import { matchingContainers, mayBelongTogether, type PendingContainers, type ResourceRequest } from './pending.js';
import { ownersOf, type LedgerState } from './state.js';

/** The memory ids that wait for their cores, if this request for cores may belong to them. */
export function openMemory(state: LedgerState, cores: number, pending: PendingContainers): readonly string[] | null {
  if (state.open?.kind !== 'memory') return null;
  const { memoryIds, isUnsure = false } = state.open;
  const known = matchingContainers(pending, 'core', cores);
  // The memory may belong to a pod that has ended: a known container that requests another amount does not wait for
  // it.
  if (isUnsure && known.length > 0 && known.every(({ memoryBlocks }) => memoryBlocks !== memoryIds.length)) return null;
  return mayBelongTogether(pending, cores, memoryIds.length) ? memoryIds : null;
}

/** The GPU (index) that the answer for the waiting memory ids named, if it named one: their cores have to be there. */
export function gpuOfOpenMemory({ open, node }: LedgerState): readonly number[] {
  const uuid = open?.kind === 'memory' ? open.gpuUuid : undefined;
  return node.gpus.filter(({ gpu }) => gpu.uuid === uuid).map(({ gpu }) => gpu.index);
}

/** The allocation that waits for its memory, if this request for memory may belong to it. */
export function openCores(state: LedgerState, memoryBlocks: number, pending: PendingContainers): Allocation | null {
  if (state.open?.kind !== 'core') return null;
  const allocation = state.allocations.get(state.open.allocationId);
  if (allocation === undefined) return null;
  const cores = allocation.parts.reduce((sum, part) => sum + part.coreIds.length, 0);
  return mayBelongTogether(pending, cores, memoryBlocks) ? allocation : null;
}

/** The half that was answered last, as a request that may complete it sees it. */
export interface WaitingHalf {
  readonly coreIds: readonly string[];
  readonly memoryIds: readonly string[];
  /** The GPUs (indexes) of these ids. */
  readonly gpus: readonly number[];
  readonly wanted: ContainerRequest;
  /** Where the other half can be, the best first. */
  readonly scopes: readonly PlacementOptions[];
  /** Whether the other half can be nowhere else. */
  readonly isBound: boolean;
  /** Whether cores that were answered are of a suspendable container; null for memory, whose cores tell. */
  readonly isSuspendable: boolean | null;
}

/**
 * `must`: the GPUs (indexes) of ids that the request must reuse; `selection`: that of the container that seems to ask.
 */
export function waitingHalf(
  state: LedgerState,
  { kind, size, pending }: ResourceRequest & { readonly pending: PendingContainers },
  must: readonly number[],
  selection: GpuSelection,
): WaitingHalf | null {
  if (kind === 'memory') {
    const allocation = openCores(state, size, pending);
    if (allocation === null) return null;
    const coreIds = allocation.parts.flatMap((part) => part.coreIds);
    const gpus = state.node.gpus
      .filter(({ gpu }) => allocation.parts.some(({ gpuUuid }) => gpuUuid === gpu.uuid))
      .map(({ gpu }) => gpu.index);
    const own = { mustInclude: gpus, among: gpus };
    const scopes = allocation.isGpuOpen === true ? [own, {}] : [own];
    return {
      coreIds,
      memoryIds: [],
      gpus,
      wanted: { cores: coreIds.length, memoryBlocks: size },
      scopes,
      isBound: true,
      isSuspendable: allocation.suspendable === true,
    };
  }
  const memoryIds = openMemory(state, size, pending);
  if (memoryIds === null) return null;
  const named = gpuOfOpenMemory(state);
  const gpus = named.length > 0 ? named : ownersOf(state, memoryIds);
  const count = divisionOf(size, selection).gpus;
  const own =
    gpus.length <= count ? { mustInclude: [...new Set([...gpus, ...must])] } : { among: gpus, mustInclude: must };
  return {
    coreIds: [],
    memoryIds,
    gpus,
    wanted: { cores: size, memoryBlocks: memoryIds.length },
    scopes: isFraction(size) && gpus.length !== count ? [] : [own],
    isBound: named.length > 0,
    isSuspendable: null,
  };
}
