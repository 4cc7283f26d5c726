import { plus, times, type Amount } from '../../../manifests/amount.js';
import type { Group } from '../state/group.js';
import type { Layout } from '../amounts/layout.js';
import { POD, type PodSetCharge } from '../state/request-shape.js';
import type { QuotaState } from '../state/state.js';
import { reservationKey } from '../state/reservation.js';
import { chargedCount, type Workload } from '../state/workload.js';

/** Amounts by slot: the amounts of `layout.keys`, then the amounts of `layout.cashKeys`. */
export type ChargeVector = Amount[];

export function emptyChargeVector(layout: Layout): ChargeVector {
  return new Array<Amount>(layout.keys.length + layout.cashKeys.length).fill(0);
}

/** The charge of a workload in a group with `layout`. */
export function chargeVectorOf(layout: Layout, workload: Workload): ChargeVector {
  const vector = emptyChargeVector(layout);
  addWorkload(vector, layout, workload);
  return vector;
}

export function addWorkload(vector: ChargeVector, layout: Layout, workload: Workload): void {
  for (let index = 0; index < workload.podSets.length; index++) {
    addPods(vector, layout, workload.podSets[index] as PodSetCharge, chargedCount(workload, index));
  }
  if (workload.countKey !== '') {
    const slot = layout.slots.get(workload.countKey);
    if (slot !== undefined) vector[slot] = plus(vector[slot] as Amount, 1);
  }
}

/** Adds `count` pods of a set. */
export function addPods(vector: ChargeVector, layout: Layout, podSet: PodSetCharge, count: number): void {
  if (count === 0) return;
  const { slots, needs } = podSet.shape.planFor(layout);
  for (let at = 0; at < slots.length; at++) {
    const need = needs[at] as number;
    const slot = slots[at] as number;
    const amount = need === POD ? count : times(podSet.amounts[need] as Amount, count);
    vector[slot] = vector[slot] === 0 ? amount : plus(vector[slot] as Amount, amount);
  }
}

/** The present charge of a workload with entry `entry` in `group`: the larger of its entry and its reservation. */
export function chargeOf(
  state: QuotaState,
  group: Group,
  key: string,
  entry: Workload | undefined,
): ChargeVector | null {
  const vector = entry !== undefined && entry.group === group.name ? chargeVectorOf(group.layout, entry) : null;
  // The state's map is checked first: reading the group's map costs another memory access.
  if (state.reservations.size === 0 || group.reserved.size === 0) return vector;
  const reservation = state.reservations.get(reservationKey(key, group.name));
  if (reservation === undefined) return vector;
  const vectors = reservation.candidates.map((candidate) => chargeVectorOf(group.layout, candidate.workload));
  return largest(vector === null ? vectors : [vector, ...vectors]);
}

/** The maximum of each slot over several vectors of one layout; null for no vectors. */
export function largest(vectors: readonly ChargeVector[]): ChargeVector | null {
  const [first, ...rest] = vectors;
  if (first === undefined) return null;
  return first.map((amount, slot) =>
    rest.reduce((most, vector) => ((vector[slot] as Amount) > most ? (vector[slot] as Amount) : most), amount),
  );
}
