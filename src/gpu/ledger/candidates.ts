import type { ResourceKind } from '../resources.js';
import { setMemory, withAllocation } from './allocate.js';
import { coreIdsOf, memoryIdsOf } from './allocation.js';
import type { Holder } from './identify.js';
import { isJoinedToWholeGpus } from './open-gpu.js';
import {
  isAmbiguous,
  matchingContainers,
  type PendingContainer,
  type PendingContainers,
  type ResourceRequest,
} from './pending.js';
import type { LedgerState } from './state.js';

/** The half request that was answered last if this request may complete it; else null. */
function openHalf(
  state: LedgerState,
  kind: ResourceKind,
): { readonly kind: ResourceKind; readonly ids: readonly string[] } | null {
  const { open } = state;
  if (open === null || open.kind === kind || open.kind === 'joined') return null;
  if (open.kind === 'memory') return { kind: 'memory', ids: open.memoryIds };
  const allocation = state.allocations.get(open.allocationId);
  return { kind: 'core', ids: allocation === undefined ? [] : coreIdsOf(allocation) };
}

/** True when only the kubelet's list of holders can tell which waiting container sends this request. */
export function needsHolders(
  state: LedgerState,
  pending: readonly PendingContainer[],
  { kind, size }: ResourceRequest,
): boolean {
  return isAmbiguous(pending, kind, size, openHalf(state, kind)?.ids.length ?? null);
}

/**
 * The waiting containers that may send this request. Containers that hold devices already, according to the kubelet,
 * are left out: they do not ask again. The holders also name the owner of the half that was answered last; the state
 * drops that half if its owner requests other amounts.
 */
export function candidatesOf(
  state: LedgerState,
  pending: readonly PendingContainer[],
  holders: readonly Holder[],
  { kind, size }: ResourceRequest,
): { readonly state: LedgerState; readonly pending: readonly PendingContainer[] } {
  const byContainer = new Map(holders.map((holder) => [keyOf(holder.container), holder]));
  const heldBy = (container: PendingContainer, of: ResourceKind): readonly string[] => {
    const holder = byContainer.get(keyOf(container));
    return (of === 'core' ? holder?.coreIds : holder?.memoryIds) ?? [];
  };
  const half = openHalf(state, kind);
  const owner =
    half === null ? undefined : pending.find((container) => heldBy(container, half.kind).includes(half.ids[0] ?? ''));
  const other = owner !== undefined && (kind === 'core' ? owner.cores : owner.memoryBlocks) !== size;
  return {
    state: other ? { ...state, open: null } : state,
    pending: pending.filter((container) => heldBy(container, kind).length === 0),
  };
}

/**
 * True when only the kubelet can tell whether the memory before these cores belongs to them, because their pod is
 * unknown: the memory was attributed to whole GPUs, which need none, to cores that may have memory already, or to a
 * pod that has ended.
 */
export function isPairingUnsure(
  { open, allocations }: LedgerState,
  pending: PendingContainers,
  { kind, size }: ResourceRequest,
): boolean {
  if (kind !== 'core' || open === null || matchingContainers(pending, kind, size).length > 0) return false;
  if (open.kind !== 'core' && open.isUnsure === true) return true;
  return isJoinedToWholeGpus({ open, allocations });
}

/**
 * The state with its last answers paired according to the kubelet's holders: memory without cores waits for its cores,
 * and ids without a holder wait for nothing.
 */
export function pairedByKubelet(state: LedgerState, holders: readonly Holder[]): LedgerState {
  const { open } = state;
  if (open === null) return state;
  const listed = holders.filter(({ isListed }) => isListed);
  const allocation = open.kind === 'memory' ? undefined : state.allocations.get(open.allocationId);
  if (open.kind === 'core') {
    const [first = ''] = allocation === undefined ? [] : coreIdsOf(allocation);
    return listed.some(({ coreIds }) => coreIds.includes(first)) ? state : { ...state, open: null };
  }
  const owner = listed.find(({ memoryIds }) => memoryIds.includes(open.memoryIds[0] ?? ''));
  if (open.kind === 'memory') {
    // Kubelets do not list init containers. Memory that was requested after the pod of its cores was over can only
    // belong to the container that is being admitted.
    if (owner === undefined) return open.wasJoined === true ? state : { ...state, open: null };
    return owner.coreIds.length === 0 ? state : { ...state, open: null };
  }
  if (owner === undefined || allocation === undefined) return state;
  if (owner.coreIds.length > 0) return { ...state, open: null };
  const { memoryIds, takenAt } = open;
  const taken = new Set(memoryIds);
  const kept = memoryIdsOf(allocation).filter((id) => !taken.has(id));
  const next = withAllocation(state, setMemory(state, allocation, kept));
  return { ...next, halves: [...next.halves, { memoryIds, takenAt }], open: { kind: 'memory', memoryIds } };
}

function keyOf(container: { readonly podUid: string; readonly container: string }): string {
  return `${container.podUid}/${container.container}`;
}
