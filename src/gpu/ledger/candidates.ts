import type { ResourceKind } from '../resources.js';
import { coreIdsOf } from './allocation.js';
import type { Holder } from './identify.js';
import { isAmbiguous, type PendingContainer } from './pending.js';
import type { LedgerState } from './state.js';

/** One request of the kubelet: a number of units of one resource. */
export interface ResourceRequest {
  readonly kind: ResourceKind;
  readonly size: number;
}

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
 * drops that half if its owner asks for other amounts.
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

function keyOf(container: { readonly podUid: string; readonly container: string }): string {
  return `${container.podUid}/${container.container}`;
}
