import { amountOf, minus, plus, type Amount } from '../../../manifests/amount.js';
import { usedAt } from '../state/budget.js';
import type { Violation } from '../admission/decision.js';
import { uncertainOf, type Group } from '../state/group.js';
import type { ReadSpec } from '../state/group-spec.js';
import { CASH, type Key } from '../../../manifests/key.js';
import { restructure } from '../admission/cohort.js';
import { announceThreshold } from '../pods/threshold.js';
import { budgetOf } from '../admission/recompute.js';
import type { QuotaState } from '../state/state.js';

/**
 * A child's quota is taken from its parent key by key. It is never summed from typed to general keys, which would count
 * it twice. Only keys that the parent limits are charged to it.
 */

/** A key that the parent limits and the child would not; null for none. */
export function missingParentKey(parent: Group, spec: ReadSpec): Key | null {
  const missing = parent.layout.keys.find((key) => !spec.hard.has(key));
  if (missing !== undefined) return missing;
  const cash = parent.layout.cashKeys.find((key) => !spec.cash.has(key));
  return cash === undefined ? null : CASH + cash;
}

/** Change of a child's quota, by key of the parent and by budget. */
export interface ChildQuotaChange {
  readonly hard: ReadonlyMap<Key, Amount>;
  readonly cash: ReadonlyMap<Key, bigint>;
}

/** The difference between two specifications of a child, for the keys of its parent. */
export function childQuotaChange(
  parent: Group,
  spec: Pick<ReadSpec, 'hard' | 'cash'>,
  old: Group | null,
): ChildQuotaChange {
  const before = (key: Key): Amount => {
    const slot = old?.layout.slots.get(key);
    return old === null || slot === undefined ? 0 : old.amounts.hard(slot);
  };
  return {
    hard: new Map(parent.layout.keys.map((key) => [key, minus(spec.hard.get(key) ?? 0, before(key))])),
    cash: new Map(
      parent.layout.cashKeys.map((key) => [
        key,
        (spec.cash.get(key) ?? 0n) - ((old === null ? undefined : budgetOf(old, key))?.base ?? 0n),
      ]),
    ),
  };
}

/** Keys for which the parent lacks room. Only increases are tested. */
export function childQuotaViolations(parent: Group, change: ChildQuotaChange, now: number): readonly Violation[] {
  const violations: Violation[] = [];
  for (const [key, need] of change.hard) {
    const slot = parent.layout.slots.get(key) as number;
    const used = parent.amounts.totalUsed(slot);
    const hard = minus(parent.amounts.hard(slot), amountOf(uncertainOf(parent, key)));
    if (need <= 0 || plus(used, need) <= hard) continue;
    const short = BigInt(minus(plus(used, need), hard));
    violations.push({
      group: parent.name,
      key,
      hard: BigInt(hard),
      used: BigInt(used),
      requested: BigInt(need),
      short,
    });
  }
  for (const [key, need] of change.cash) {
    const budget = budgetOf(parent, key);
    if (budget === undefined || need <= 0n) continue;
    const used = usedAt(budget, now);
    const hard = budget.hard - uncertainOf(parent, CASH + key);
    const short = used + need - hard;
    if (short > 0n) violations.push({ group: parent.name, key: CASH + key, hard, used, requested: need, short });
  }
  return violations;
}

/** Charges the change to the parent, or releases it. */
export function applyChildQuota(state: QuotaState, parent: Group, change: ChildQuotaChange): void {
  restructure(state, parent, () => {
    for (const [key, amount] of change.hard) {
      const slot = parent.layout.slots.get(key) as number;
      parent.amounts.addChildSum(slot, amount);
    }
  });
  for (const [key, amount] of change.cash) {
    const budget = budgetOf(parent, key);
    if (budget === undefined) continue;
    budget.childSum += amount;
    announceThreshold(state, parent, budget);
  }
}
