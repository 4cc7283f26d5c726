import { minus, type Amount } from './amount.js';
import type { Group } from './group.js';
import type { Key } from './key.js';
import { announceThreshold } from './pods.js';
import { chainOf, charge } from './cohort.js';
import { selfUsedOf } from './recompute.js';
import type { QuotaState } from './state.js';

/** A counter that is not what the workloads add up to. */
export interface Drift {
  readonly group: string;
  readonly key: Key;
  readonly counted: bigint;
  readonly recomputed: bigint;
}

/** What a refresh found. */
export interface DriftReport {
  readonly groups: number;
  readonly workloads: number;
  readonly drift: readonly Drift[];
}

/**
 * Counts every group's use anew from its workloads, corrects and reports what differs, and announces budgets whose
 * thresholds were passed by time alone. Yields after each `slice` workloads, so that a caller can do other things
 * between: each group is counted in one go.
 */
export function* refreshSlices(state: QuotaState, slice: number): Generator<undefined, DriftReport> {
  const drift: Drift[] = [];
  let [groups, workloads, since] = [0, 0, 0];
  for (const name of [...state.groups.entries()].map(([known]) => known)) {
    const found = state.group(name);
    if (found === undefined) continue;
    drift.push(...recount(state, found));
    for (const budget of found.budgets) announceThreshold(state, found, budget);
    groups++;
    workloads += found.workloads.size;
    since += found.workloads.size + 1;
    if (since < slice) continue;
    since = 0;
    yield;
  }
  return { groups, workloads, drift };
}

/** The whole refresh at once. */
export function refresh(state: QuotaState): DriftReport {
  const slices = refreshSlices(state, Infinity);
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
  }
}

function recount(state: QuotaState, found: Group): readonly Drift[] {
  const recomputed = selfUsedOf(state, found);
  const drift: Drift[] = [];
  recomputed.forEach((amount, slot) => {
    const counted = found.selfUsed[slot] as Amount;
    if (counted === amount) return;
    const key = found.layout.keys[slot] as Key;
    drift.push({ group: found.name, key, counted: BigInt(counted), recomputed: BigInt(amount) });
    charge(state, state.ownAll(chainOf(state, found)), slot, minus(amount, counted));
  });
  if (drift.length > 0)
    state.emit({ type: 'drift', group: found.name, reason: drift.map(({ key }) => key).join(', ') });
  return drift;
}
