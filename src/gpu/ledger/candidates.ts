import type { ResourceKind } from '../resources.js';
import { coreIdsOf } from './allocation.js';
import type { Holder } from './identify.js';
import { isAmbiguous, type PendingContainer } from './pending.js';
import type { LedgerState } from './state.js';

/** One request of the kubelet: so many units of one resource. */
export interface Wish {
  readonly kind: ResourceKind;
  readonly size: number;
}

/**
 * The half of a container's request that was answered last and that this one may be the other half of; null without.
 */
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

/** True when it takes the kubelet's word to tell which of the waiting containers this request may come from. */
export function needsHolders(state: LedgerState, pending: readonly PendingContainer[], { kind, size }: Wish): boolean {
  return isAmbiguous(pending, kind, size, openHalf(state, kind)?.ids.length ?? null);
}

/**
 * The waiting containers that this request may come from, by what the kubelet says of those that hold devices already:
 * they do not ask for the same again. It also names the owner of the half that was answered last; the state forgets
 * that half where its owner asks for something else.
 */
export function candidatesOf(
  state: LedgerState,
  pending: readonly PendingContainer[],
  holders: readonly Holder[],
  { kind, size }: Wish,
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
