import { without } from './allocate.js';
import { allocationId, coreIdsOf, memoryIdsOf, type Allocation, type ContainerRef } from './allocation.js';
import { identify, type Holder } from './identify.js';
import { gpusNamed, type LedgerState } from './state.js';

export interface TakenOver {
  readonly state: LedgerState;
  /** Allocations that the ledger lacked. */
  readonly adopted: readonly { readonly allocation: Allocation; readonly container: ContainerRef }[];
  /** Allocations of an old checkpoint whose ids the kubelet has given to other containers since. */
  readonly dropped: readonly Allocation[];
  readonly refused: readonly { readonly container: ContainerRef; readonly reason: string }[];
}

/**
 * Corrects the ledger from the kubelet's holders: adds missing allocations, and corrects owners and memory. This is
 * needed after a start with a missing or outdated checkpoint. Allocations within the grace period stay unchanged: the
 * kubelet may not have recorded them fully yet.
 */
export function takeOver(
  state: LedgerState,
  holders: readonly Holder[],
  { now, graceMs }: { readonly now: number; readonly graceMs: number },
): TakenOver {
  const ours = holders.filter(
    ({ coreIds }) => coreIds.length > 0 && coreIds.every((id) => state.node.ids.decode(id)?.kind === 'core'),
  );
  const named = new Set(ours.map(({ coreIds }) => allocationId(coreIds)));
  const isYoung = ({ phase, allocatedAt }: Allocation): boolean =>
    phase === 'allocated' && Math.abs(now - allocatedAt) < graceMs;
  const adopted: TakenOver['adopted'][number][] = [];
  const dropped: Allocation[] = [];
  const refused: TakenOver['refused'][number][] = [];
  let next = state;
  for (const holder of ours) {
    const { container } = holder;
    let known = next.allocations.get(allocationId(holder.coreIds));
    if (known !== undefined && (isYoung(known) || agrees(next, known, holder))) continue;
    if (known !== undefined && !hasItsGpus(next, known, holder)) {
      next = without(next, known.id);
      known = undefined;
    }
    if (known === undefined) {
      const cores = new Set(holder.coreIds);
      const overlapping = [...next.allocations.values()].filter(
        (other) => !named.has(other.id) && coreIdsOf(other).some((id) => cores.has(id)),
      );
      // The main container of a pod in admission uses ids of its init container.
      if (overlapping.some(isYoung)) continue;
      dropped.push(...overlapping);
      next = overlapping.reduce((rest, { id }) => without(rest, id), next);
    }
    const answer = identify(next, holder, now);
    if (answer.ok) {
      next = answer.state;
      if (answer.adopted) adopted.push({ allocation: answer.allocation, container });
    } else {
      refused.push({ container, reason: answer.reason });
    }
  }
  return { state: next, adopted, dropped, refused };
}

/**
 * True when the allocation belongs to this holder, as far as the kubelet names the owner, and has the GPUs and memory
 * that the kubelet names.
 */
function agrees(state: LedgerState, allocation: Allocation, holder: Holder): boolean {
  const { container, memoryIds } = holder;
  const held = new Set(memoryIdsOf(allocation));
  const isOwner = ({ podUid, container: name }: ContainerRef): boolean =>
    podUid === container.podUid && name === container.container;
  const owned = container.podUid === '' ? allocation.owners.length > 0 : allocation.owners.some(isOwner);
  const shared = allocation.owners.length > 1;
  return (
    owned &&
    memoryIds.every((id) => held.has(id)) &&
    (shared || held.size === memoryIds.length) &&
    hasItsGpus(state, allocation, holder)
  );
}

/** False when the holder has other GPUs: the ids of one GPU may be used for different other GPUs. */
function hasItsGpus(state: LedgerState, { parts }: Allocation, { gpuNames }: Holder): boolean {
  const given = gpusNamed(state.node, gpuNames);
  return (
    given === null ||
    (given.length === parts.length && given.every(({ uuid }) => parts.some(({ gpuUuid }) => gpuUuid === uuid)))
  );
}
