import { minus } from '../../../manifests/amount.js';
import type { Group } from '../state/group.js';
import type { Key } from '../../../manifests/key.js';
import { charge } from '../admission/cohort.js';
import { selfUsedOf } from '../admission/recompute.js';
import type { QuotaEvent } from '../state/event.js';
import type { QuotaState } from '../state/state.js';

/** A counter that differed from the sum of the workloads. */
export interface Drift {
  readonly group: string;
  readonly key: Key;
  readonly counted: bigint;
  readonly recomputed: bigint;
}

/** Result of a refresh. */
export interface DriftReport {
  readonly groups: number;
  readonly workloads: number;
  readonly drift: readonly Drift[];
}

/**
 * Recounts the usage of every group from its workloads, corrects and reports differences. Yields after `slice`
 * workloads so that the caller can do other work; a group is always counted as a whole.
 */
export function* refreshSlices(state: QuotaState, slice: number): Generator<undefined, DriftReport> {
  const drift: Drift[] = [];
  let [groups, workloads, since] = [0, 0, 0];
  for (const name of [...state.groups.entries()].map(([known]) => known)) {
    const found = state.group(name);
    if (found === undefined) continue;
    drift.push(...recount(state, found));
    groups++;
    workloads += found.workloads.size;
    since += found.workloads.size + 1;
    if (since < slice) continue;
    since = 0;
    yield;
  }
  return { groups, workloads, drift };
}

/** The events of a refresh, one for each group that differed. */
export function driftEvents(
  { drift }: DriftReport,
  { now: at, revision }: Pick<QuotaState, 'now' | 'revision'>,
): readonly QuotaEvent[] {
  return [...new Set(drift.map(({ group }) => group))].map((group) => ({
    type: 'drift',
    at,
    revision,
    group,
    reason: drift.flatMap((each) => (each.group === group ? [each.key] : [])).join(', '),
  }));
}

/** The whole refresh without interruption. */
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
    const counted = found.amounts.selfUsed(slot);
    if (counted === amount) return;
    const key = found.layout.keys[slot] as Key;
    drift.push({ group: found.name, key, counted: BigInt(counted), recomputed: BigInt(amount) });
    charge(state, state.ownAll(state.chainOf(found)), slot, minus(amount, counted));
  });
  return drift;
}
