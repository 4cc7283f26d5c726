import { plus, times, type Amount } from './amount.js';
import type { Group } from './group.js';
import type { Layout } from './layout.js';
import { POD, type PodSetCharge } from './shape.js';
import type { QuotaState } from './state.js';
import { reservationKey } from './reservation.js';
import { chargedCount, type Workload } from './workload.js';

/** Amounts by slot: first those of `layout.keys`, then those of `layout.cashKeys`. */
export type Tally = Amount[];

/** Nothing of any key. */
export function emptyTally(layout: Layout): Tally {
  return new Array<Amount>(layout.keys.length + layout.cashKeys.length).fill(0);
}

/** What a workload charges in a group with `layout`. */
export function tallyOf(layout: Layout, workload: Workload): Tally {
  const tally = emptyTally(layout);
  addWorkload(tally, layout, workload);
  return tally;
}

/** Adds what a workload charges. */
export function addWorkload(tally: Tally, layout: Layout, workload: Workload): void {
  for (let index = 0; index < workload.podSets.length; index++) {
    addPods(tally, layout, workload.podSets[index] as PodSetCharge, chargedCount(workload, index));
  }
  if (workload.countKey !== '') {
    const slot = layout.slots.get(workload.countKey);
    if (slot !== undefined) tally[slot] = plus(tally[slot] as Amount, 1);
  }
}

/** Adds `count` pods of a set. */
export function addPods(tally: Tally, layout: Layout, podSet: PodSetCharge, count: number): void {
  if (count === 0) return;
  const { slots, needs } = podSet.shape.planFor(layout);
  for (let at = 0; at < slots.length; at++) {
    const need = needs[at] as number;
    const slot = slots[at] as number;
    const amount = need === POD ? count : times(podSet.amounts[need] as Amount, count);
    tally[slot] = tally[slot] === 0 ? amount : plus(tally[slot] as Amount, amount);
  }
}

/** What a workload whose entry is `entry` is charged in `group` now: its entry, or what is reserved for it where that is more. */
export function chargeOf(state: QuotaState, group: Group, key: string, entry: Workload | undefined): Tally | null {
  const tally = entry !== undefined && entry.group === group.name ? tallyOf(group.layout, entry) : null;
  if (group.reserved.size === 0) return tally;
  const reservation = state.reservations.get(reservationKey(key, group.name));
  if (reservation === undefined) return tally;
  const tallies = reservation.candidates.map((candidate) => tallyOf(group.layout, candidate.workload));
  return largest(tally === null ? tallies : [tally, ...tallies]);
}

/** Slot by slot the largest of some tallies of one layout; null of none. */
export function largest(tallies: readonly Tally[]): Tally | null {
  const [first, ...rest] = tallies;
  if (first === undefined) return null;
  return first.map((amount, slot) =>
    rest.reduce((most, tally) => ((tally[slot] as Amount) > most ? (tally[slot] as Amount) : most), amount),
  );
}
