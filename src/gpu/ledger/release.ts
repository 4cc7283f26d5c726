import { coreIdsOf, memoryIdsOf, type Allocation } from './allocation.js';
import { setMemory, withAllocation, without } from './allocate.js';
import type { LedgerState } from './state.js';

export interface Released {
  readonly state: LedgerState;
  readonly freed: readonly Allocation[];
}

/**
 * Frees allocations whose ids the kubelet offers for a new container: the offer proves that no container holds them.
 * `reused` are the ids that the kubelet offers because an init container of the same pod had them.
 *
 * When the kubelet fails a pod without a refusal by the agent, half of the pod's request stays in the ledger and may
 * have been joined to the first request of the next pod. The offer reveals this: cores lose the memory of the failed
 * pod and wait for their own, and memory that was joined to the cores of the failed pod waits for its own cores.
 */
export function observeOffered(state: LedgerState, available: readonly string[], reused: readonly string[]): Released {
  const offered = new Set(available);
  for (const id of reused) offered.delete(id);
  const isOffered = (id: string): boolean => offered.has(id);
  const freed: Allocation[] = [];
  let next = state;
  for (const allocation of state.allocations.values()) {
    // This runs for every allocation in every preferred allocation, so it builds no list: the result is nearly always
    // false.
    const over = allocation.parts.some((part) => part.coreIds.some(isOffered));
    const lent = allocation.parts.some((part) => part.memoryIds.some(isOffered));
    if (over || (lent && allocation.phase === 'started')) {
      const open =
        next.open?.kind === 'joined' && next.open.allocationId === allocation.id && !next.open.memoryIds.some(isOffered)
          ? next.open
          : null;
      freed.push(allocation);
      next = without(next, allocation.id);
      if (open !== null) {
        const { memoryIds, takenAt, gpuUuid, isUnsure: wasJoined } = open;
        next = {
          ...next,
          halves: [...next.halves, { memoryIds, takenAt, gpuUuid }],
          open: { kind: 'memory', memoryIds, isUnsure: true, wasJoined, gpuUuid },
        };
      }
    } else if (lent) {
      const kept = setMemory(
        next,
        allocation,
        memoryIdsOf(allocation).filter((id) => !isOffered(id)),
      );
      // The cores that were allocated after these wait for the memory that is requested now.
      const passed = next.open !== null && (next.open.kind === 'memory' || next.open.allocationId !== allocation.id);
      next = {
        ...withAllocation(next, kept),
        open: passed ? next.open : { kind: 'core', allocationId: allocation.id, isUnsure: true },
      };
    }
  }
  const halves = next.halves.filter((half) => !half.memoryIds.some(isOffered));
  if (halves.length < next.halves.length) {
    const open = next.open?.kind === 'memory' && next.open.memoryIds.some(isOffered) ? null : next.open;
    next = { ...next, halves, open };
  }
  return { state: next, freed };
}

/** Frees the allocations of ended pods. */
export function releaseEnded(state: LedgerState, endedPods: ReadonlySet<string>): Released {
  const freed = [...state.allocations.values()].filter(
    ({ owners }) => owners.length > 0 && owners.every((owner) => endedPods.has(owner.podUid)),
  );
  return { state: withoutAll(state, freed), freed };
}

/** The facts that the ledger is compared with, all of one moment. */
export interface Evidence {
  /** Every core and memory id that the kubelet names as held. */
  readonly heldIds: ReadonlySet<string>;
  /** UIDs of pods that succeeded, failed or were deleted. */
  readonly endedPods: ReadonlySet<string>;
  readonly now: number;
  /** How long an allocation that nothing confirms is kept; covers an Allocate that the kubelet has not recorded yet. */
  readonly graceMs: number;
}

/**
 * Frees allocations of ended pods at once, and allocations without a holder after the grace period. The caller must
 * have the kubelet's full answer: a missing answer is no evidence.
 */
export function reconcile(state: LedgerState, evidence: Evidence): Released {
  const ended = releaseEnded(state, evidence.endedPods);
  const freed = [...ended.freed];
  let next = ended.state;
  for (const allocation of next.allocations.values()) {
    const listed = coreIdsOf(allocation).some((id) => evidence.heldIds.has(id));
    const isConfirmed = listed || (allocation.phase === 'allocated' && isWithin(evidence, allocation.allocatedAt));
    if (isConfirmed) {
      if (allocation.missingSince !== null) next = withAllocation(next, { ...allocation, missingSince: null });
    } else if (allocation.missingSince === null || allocation.missingSince > evidence.now) {
      next = withAllocation(next, { ...allocation, missingSince: evidence.now });
    } else if (!isWithin(evidence, allocation.missingSince)) {
      freed.push(allocation);
    }
  }
  // A clock that was set back must not extend the grace period.
  const dated = next.halves.map((half) => (half.takenAt > evidence.now ? { ...half, takenAt: evidence.now } : half));
  const kept = dated.filter(
    (half) => isWithin(evidence, half.takenAt) || half.memoryIds.some((id) => evidence.heldIds.has(id)),
  );
  const changed = kept.length < next.halves.length || kept.some((half, at) => half !== next.halves[at]);
  return { state: withoutAll(changed ? { ...next, halves: kept } : next, freed), freed };
}

/** True within the grace period after `since`; false if `since` is in the future because the clock was set back. */
function isWithin({ now, graceMs }: Evidence, since: number): boolean {
  return since <= now && now - since < graceMs;
}

function withoutAll(state: LedgerState, freed: readonly Allocation[]): LedgerState {
  return freed.reduce((next, allocation) => without(next, allocation.id), state);
}

/** True when the allocation holds any of these core or memory ids. */
export function holdsAny(allocation: Allocation, ids: ReadonlySet<string>): boolean {
  return coreIdsOf(allocation).some((id) => ids.has(id)) || memoryIdsOf(allocation).some((id) => ids.has(id));
}

/** Allocations of started containers that hold any of these ids. */
export function startedWith(state: LedgerState, ids: readonly string[]): Allocation[] {
  const wanted = new Set(ids);
  const isWanted = (id: string): boolean => wanted.has(id);
  return [...state.allocations.values()].filter(
    ({ phase, parts }) =>
      phase === 'started' && parts.some((part) => part.coreIds.some(isWanted) || part.memoryIds.some(isWanted)),
  );
}

/** The ids that the kubelet offers, without the ids of these allocations, except mandatory ids. */
export function withoutIdsOf(
  allocations: readonly Allocation[],
  available: readonly string[],
  mustInclude: readonly string[],
): string[] {
  const held = new Set(allocations.flatMap((allocation) => [...coreIdsOf(allocation), ...memoryIdsOf(allocation)]));
  for (const id of mustInclude) held.delete(id);
  return available.filter((id) => !held.has(id));
}
