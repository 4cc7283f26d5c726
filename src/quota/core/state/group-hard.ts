import type { Amount } from '../../../manifests/amount.js';
import type { Budget } from './budget.js';
import type { Group } from './group.js';
import { CASH, type Key } from '../../../manifests/key.js';

/** An amount for each key of a group and for each budget that limits it, in base units. */
export function amountsOf(
  group: Group,
  ofSlot: (slot: number) => Amount,
  ofBudget: (budget: Budget) => bigint,
): ReadonlyMap<Key, bigint> {
  const amounts = new Map<Key, bigint>();
  const { keys } = group.layout;
  for (let slot = 0; slot < keys.length; slot++) amounts.set(keys[slot] as Key, BigInt(ofSlot(slot)));
  for (const budget of group.budgets) if (budget.listed) amounts.set(CASH + budget.key, ofBudget(budget));
  return amounts;
}

/** The limits of a group by key, with budgets; in base units, for cash in base units times milliseconds. */
export function hardOf(group: Group): ReadonlyMap<Key, bigint> {
  return amountsOf(
    group,
    (slot) => group.amounts.hard(slot),
    ({ hard }) => hard,
  );
}
