import type { Amount } from '../../../manifests/amount.js';
import type { Group } from '../state/group.js';
import type { Key } from '../../../manifests/key.js';
import type { QuotaState } from '../state/state.js';
import type { Amounts } from './status.js';
import { unchargedGpus } from '../admission/uncharged-gpus.js';
import { chargeOf, type ChargeVector } from '../admission/charge-vector.js';
import { chargedCount, type Workload } from '../state/workload.js';

/** The charge of one workload in its group. */
export interface Charge {
  /** Key by `refKey`. */
  readonly workload: string;
  readonly group: string;
  readonly pods: number;
  /** True for an admitted workload that has not been observed. */
  readonly isReserved: boolean;
  /** Amounts in base units, by charged key. Hours are not included: pods use them while they run. */
  readonly amounts: Amounts;
}

/**
 * The charges of a group's workloads, including reserved charges, one after the other; valid while nothing changes.
 * O(workloads of the group).
 */
export function* chargesOf(state: QuotaState, group: Group): Generator<Charge> {
  const charge = (workload: string, entry: Workload | undefined, pods: number): readonly Charge[] => {
    const vector = chargeOf(state, group, workload, entry);
    if (vector === null) return [];
    const isReserved = entry === undefined;
    return [{ workload, group: group.name, pods, isReserved, amounts: amountsOf(group, vector) }];
  };
  for (const entry of group.workloads.values(state.workloads)) yield* charge(entry.key, entry, podsOf(entry));
  for (const [key] of group.reserved.entries()) {
    const reservation = state.reservations.get(key);
    if (reservation === undefined || state.workloads.get(reservation.workload)?.group === group.name) continue;
    const pods = Math.max(...reservation.candidates.map(({ workload }) => podsOf(workload)));
    yield* charge(reservation.workload, undefined, pods);
  }
}

/** A workload whose GPUs are not limited by its group. */
export interface UnchargedGpus {
  /** Key by `refKey`. */
  readonly workload: string;
  /** The resources that name its GPUs, and that no key of the group charges. */
  readonly resources: readonly string[];
}

/** The workloads of a group that have GPUs which no key of the group charges. O(workloads of the group). */
export function unchargedOf(state: QuotaState, group: Group): readonly UnchargedGpus[] {
  const found: UnchargedGpus[] = [];
  group.workloads.forEach(state.workloads, (workload) => {
    const resources = unchargedGpus(group.layout, workload);
    if (resources.length > 0) found.push({ workload: workload.key, resources });
  });
  return found;
}

function podsOf(workload: Workload): number {
  return workload.podSets.reduce((sum, _, index) => sum + chargedCount(workload, index), 0);
}

function amountsOf({ layout }: Group, vector: ChargeVector): Amounts {
  return new Map(
    layout.keys.flatMap((key, slot): [Key, bigint][] =>
      vector[slot] === 0 ? [] : [[key, BigInt(vector[slot] as Amount)]],
    ),
  );
}
