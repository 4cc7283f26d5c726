import { minus } from '../../../manifests/amount.js';
import { chargesOf, commit } from './admission.js';
import type { Group } from '../state/group.js';
import { reservationKey, type Candidate } from '../state/reservation.js';
import type { QuotaState } from '../state/state.js';
import { chargeOf, emptyChargeVector, type ChargeVector } from './charge-vector.js';
import type { Workload } from '../state/workload.js';

/**
 * Replaces the entry and candidates of a workload in a group and adjusts the counters. Tests nothing. The group must be
 * owned.
 */
export function settle(
  state: QuotaState,
  group: Group,
  key: string,
  entry: Workload | null,
  candidates: readonly Candidate[],
): ChargeVector {
  const old = state.workloads.get(key);
  const before = chargeOf(state, group, key, old) ?? emptyChargeVector(group.layout);
  const mine = old?.group === group.name ? old : null;
  if (entry !== null) state.putWorkload(group, entry, mine);
  else if (mine !== null) state.removeWorkload(group, mine);
  if (candidates.length > 0 || group.reserved.has(reservationKey(key, group.name)))
    state.putReservation(group, key, candidates);
  const after = chargeOf(state, group, key, state.workloads.get(key)) ?? emptyChargeVector(group.layout);
  const delta = after.map((amount, slot) => minus(amount, before[slot] ?? 0));
  commit(state, state.ownAll(state.chainOf(group)), delta);
  return delta;
}

/** Releases all charges and reservations of a workload in a group. */
export function release(state: QuotaState, found: Group, key: string): void {
  state.revision++;
  const group = state.own(found);
  const delta = settle(state, group, key, null, []);
  if (state.onEvent !== null)
    state.emit({ type: 'released', group: group.name, subject: key, amounts: chargesOf(group.layout, delta) });
}
