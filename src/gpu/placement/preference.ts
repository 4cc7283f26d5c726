import { positionsOf, type BitSet } from './bit-set.js';
import { compareFutureValue } from './future-value.js';
import type { Connection, Exact } from './machine.js';

/**
 * Among sets with equal NVLink the best to take from `free`: after which the best disjoint NVLink sets remain; then the
 * nearest by PCIe and NUMA; then the one after which the best disjoint sets by PCIe remain; then the first given.
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

/** The sets after which the best disjoint sets of what remains are worth most, in the order given. */
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

/** Negative when taking position `a` of `free` leaves more than taking `b`. */
export function compareLeft({ nvlink, pcie }: Exact, free: BitSet, a: number, b: number): number {
  const left = ({ futureValue }: Connection, position: number) => futureValue.of(free & ~(1 << position));
  return compareFutureValue(left(nvlink, b), left(nvlink, a)) || compareFutureValue(left(pcie, b), left(pcie, a));
}

/** The order in which the positions of `free` are best taken one by one. */
export function takingOrderOf(exact: Exact, free: BitSet): readonly number[] {
  const order: number[] = [];
  for (let rest = free; rest !== 0; rest &= ~(1 << (order.at(-1) as number))) {
    const singles = positionsOf(rest).map((position) => 1 << position);
    order.push(positionsOf(preferredSet(exact, rest, singles))[0] as number);
  }
  return order;
}
