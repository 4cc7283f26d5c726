import { positionsOf, type BitSet } from './bit-set.js';
import { compareFutureValue } from './future-value.js';
import type { Connection, Exact } from './machine.js';

/**
 * The best of several sets with equal NVLink to take from `free`: the set that leaves the best disjoint NVLink sets;
 * then the nearest by PCIe and NUMA; then the set that leaves the best disjoint PCIe sets; then the first in the list.
 */
export function preferredSet({ nvlink, pcie }: Exact, free: BitSet, sets: readonly BitSet[]): BitSet {
  const near = mostOf(leavingMost(nvlink, free, sets), (set) => pcie.table.of(set));
  return leavingMost(pcie, free, near)[0] as BitSet;
}

/** The sets of the highest value, in the order given. */
export function mostOf(sets: readonly BitSet[], value: (set: BitSet) => number): readonly BitSet[] {
  let best = -Infinity;
  let kept: BitSet[] = [];
  for (const set of sets) {
    const own = value(set);
    if (own < best) continue;
    if (own > best) kept = [];
    best = own;
    kept.push(set);
  }
  return kept;
}

/** The sets that leave the most valuable disjoint sets in `free`, in the order given. */
export function leavingMost({ futureValue }: Connection, free: BitSet, sets: readonly BitSet[]): readonly BitSet[] {
  if (sets.length < 2) return sets;
  let best: readonly number[] | null = null;
  let kept: BitSet[] = [];
  for (const set of sets) {
    const left = futureValue.of(free & ~set);
    const order = best === null ? 1 : compareFutureValue(left, best);
    if (order < 0) continue;
    if (order > 0) kept = [];
    best = left;
    kept.push(set);
  }
  return kept;
}

/** Negative when taking position `a` from `free` leaves more value than taking `b`. */
export function compareLeft({ nvlink, pcie }: Exact, free: BitSet, a: number, b: number): number {
  const left = ({ futureValue }: Connection, position: number) => futureValue.of(free & ~(1 << position));
  return compareFutureValue(left(nvlink, b), left(nvlink, a)) || compareFutureValue(left(pcie, b), left(pcie, a));
}

/** The order in which single positions of `free` are best taken. */
export function takingOrderOf(exact: Exact, free: BitSet): readonly number[] {
  const order: number[] = [];
  for (let rest = free; rest !== 0; rest &= ~(1 << (order.at(-1) as number))) {
    const singles = positionsOf(rest).map((position) => 1 << position);
    order.push(positionsOf(preferredSet(exact, rest, singles))[0] as number);
  }
  return order;
}
