import { plus, times, type Amount } from '../../../manifests/amount.js';
import type { Budget } from '../state/budget.js';
import type { Group } from '../state/group.js';
import type { Key } from '../../../manifests/key.js';
import { flowOf } from './cohort.js';
import { reservationKey } from '../state/reservation.js';
import type { PodSetCharge } from '../state/request-shape.js';
import type { QuotaState } from '../state/state.js';
import { addPods, addWorkload, chargeOf, emptyChargeVector, type ChargeVector } from './charge-vector.js';

/** Recounts the charges of a group's workloads and reservations, by slot. */
export function selfUsedOf(state: QuotaState, group: Group): ChargeVector {
  const { layout } = group;
  const sum = emptyChargeVector(layout);
  // Most workloads share their pod lists; each list is counted first and multiplied once.
  const alike = new Map<readonly PodSetCharge[], number>();
  const objects = new Map<Key, number>();
  group.workloads.forEach(state.workloads, (workload) => {
    if (group.reserved.size > 0 && group.reserved.has(reservationKey(workload.key, group.name))) return;
    const { podSets, countKey, heldReplicas } = workload;
    if (heldReplicas > 0) return addWorkload(sum, layout, workload);
    alike.set(podSets, (alike.get(podSets) ?? 0) + 1);
    if (countKey !== '') objects.set(countKey, (objects.get(countKey) ?? 0) + 1);
  });
  for (const [podSets, count] of alike) {
    const vector = emptyChargeVector(layout);
    for (const podSet of podSets) addPods(vector, layout, podSet, podSet.count);
    vector.forEach((amount, slot) => {
      sum[slot] = plus(sum[slot] as Amount, times(amount, count));
    });
  }
  for (const [key, count] of objects) {
    const slot = layout.slots.get(key);
    if (slot !== undefined) sum[slot] = plus(sum[slot] as Amount, count);
  }
  group.reserved.forEach((_, key) => {
    const workload = state.reservations.get(key)?.workload ?? '';
    const charge = chargeOf(state, group, workload, state.workloads.get(workload)) ?? [];
    charge.forEach((amount, slot) => {
      sum[slot] = plus(sum[slot] as Amount, amount);
    });
  });
  return sum.slice(0, layout.keys.length);
}

/** Sums over the children of a group for one key. */
export interface ChildSums {
  readonly childSum: Amount;
  readonly lent: Amount;
  readonly spilled: Amount;
}

/** Recounts the quota, loans and spilled usage of the children. O(children). */
export function childrenOf(state: QuotaState, group: Group, key: Key): ChildSums {
  let sums: ChildSums = { childSum: 0, lent: 0, spilled: 0 };
  for (const name of group.children) {
    const child = state.group(name);
    const slot = child?.layout.slots.get(key);
    if (child === undefined || slot === undefined) continue;
    const { lends, spills } = flowOf(child, slot);
    sums = {
      childSum: plus(sums.childSum, child.amounts.hard(slot)),
      lent: plus(sums.lent, lends),
      spilled: plus(sums.spilled, spills),
    };
  }
  return sums;
}

/** Sum of the children's budgets for a key that is charged by the hour. O(children). */
export function childCashOf(state: QuotaState, group: Group, key: Key): bigint {
  let sum = 0n;
  for (const name of group.children) {
    const child = state.group(name);
    sum += (child === undefined ? undefined : budgetOf(child, key))?.hard ?? 0n;
  }
  return sum;
}

/** The budget that limits a key in a group. */
export function budgetOf(group: Group, key: Key): Budget | undefined {
  return group.budgets.find((budget) => budget.listed && budget.key === key);
}
