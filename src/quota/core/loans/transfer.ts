import { minus, type Amount } from '../../../manifests/amount.js';
import { refusal } from '../admission/admission.js';
import { usedAt, type Budget } from '../state/budget.js';
import { restructure } from '../admission/cohort.js';
import { readHours } from '../state/declared-grant.js';
import { loanedOf } from './declare-loans.js';
import { LazyDecision, type Decision } from '../admission/decision.js';
import { hardOf } from '../state/group-hard.js';
import type { Hard } from '../state/group-spec.js';
import type { Group } from '../state/group.js';
import { cashTarget, type Key } from '../../../manifests/key.js';
import { announceThreshold } from '../pods/threshold.js';
import { readQuantity, type Quantity } from '../../../manifests/quantity.js';
import { budgetOf } from '../admission/recompute.js';
import type { QuotaState } from '../state/state.js';

/** A permanent transfer of quota to a sibling. */
export interface TransferSpec {
  readonly from: string;
  readonly to: string;
  readonly amounts: Hard;
}

/**
 * Moves quota from one child of a group to another. Their sum stays, so that the parent is not tested. The giver keeps
 * its usage and its children's quotas; of budgets it can give only the amount in its specification, not grants. Either
 * all keys move or none.
 */
export function transfer(state: QuotaState, { from, to, amounts }: TransferSpec): Decision {
  const [giver, taker] = [state.group(from), state.group(to)];
  if (giver === undefined || taker === undefined)
    return refusal(state, 'GroupNotFound', `there is no group ${(giver === undefined ? from : to).slice(0, 80)}`);
  if (giver === taker || giver.parent !== taker.parent)
    return refusal(state, 'TransferRefused', `${giver.name} and ${taker.name} are not siblings`);
  const keys = Object.keys(amounts);
  if (keys.length === 0) return refusal(state, 'InvalidQuantity', 'a transfer needs at least one amount');
  const hard = new Map<Key, Amount>();
  const cash = new Map<Key, bigint>();
  for (const key of keys) {
    const problem = readOne(giver, taker, key, amounts[key] as Quantity, hard, cash, state);
    if (problem !== null) return refusal(state, problem.code, problem.reason);
  }
  state.revision++;
  const groups = [state.own(giver), state.own(taker)] as const;
  const before = groups.map(hardOf);
  groups.forEach((group, index) => give(state, group, hard, cash, index === 0 ? -1 : 1));
  groups.forEach((group, index) => {
    state.groupChanged(group);
    const was = before[index];
    state.emit({ type: 'groupUpdated', group: group.name, ...(was && { before: was }), after: hardOf(group) });
  });
  return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision, path: [giver.name, taker.name] });
}

type Problem = { readonly code: 'UnknownKey' | 'InvalidQuantity' | 'TransferRefused'; readonly reason: string };

function readOne(
  giver: Group,
  taker: Group,
  key: Key,
  quantity: Quantity,
  hard: Map<Key, Amount>,
  cash: Map<Key, bigint>,
  state: QuotaState,
): Problem | null {
  const target = cashTarget(key);
  const invalid: Problem = {
    code: 'InvalidQuantity',
    reason: `invalid amount of a transfer: ${key.slice(0, 80)}=${String(quantity).slice(0, 64)}`,
  };
  if (target === null) {
    const slot = giver.layout.slots.get(key);
    if (slot === undefined || !taker.layout.slots.has(key)) return unlimited(key);
    const read = readQuantity(key, quantity, 'down');
    if (!read.ok || read.amount <= 0) return invalid;
    const used = giver.amounts.totalUsed(slot);
    const left = minus(giver.amounts.hard(slot), read.amount);
    // Borrowed quota cannot be given.
    if (left < used || left < (loanedOf(state, giver.name).get(key) ?? 0)) return needed(giver, key);
    hard.set(key, read.amount);
    return null;
  }
  const budget = listed(giver, target);
  if (budget === undefined || listed(taker, target) === undefined) return unlimited(key);
  const amount = readHours(target, quantity);
  if (amount === null || amount <= 0n) return invalid;
  if (budget.base < amount || budget.hard - amount < usedAt(budget, state.now)) return needed(giver, key);
  cash.set(target, amount);
  return null;
}

function listed(group: Group, key: Key): Budget | undefined {
  const budget = budgetOf(group, key);
  return budget?.listed === true ? budget : undefined;
}

function unlimited(key: Key): Problem {
  return { code: 'UnknownKey', reason: `${key.slice(0, 80)} is not limited by both groups` };
}

function needed({ name }: Group, key: Key): Problem {
  return { code: 'TransferRefused', reason: `group ${name} needs its ${key} itself` };
}

function give(
  state: QuotaState,
  group: Group,
  hard: ReadonlyMap<Key, Amount>,
  cash: ReadonlyMap<Key, bigint>,
  sign: 1 | -1,
): void {
  restructure(state, group, () => {
    for (const [key, amount] of hard) {
      const slot = group.layout.slots.get(key) as number;
      group.amounts.addHard(slot, sign > 0 ? amount : minus(0, amount));
    }
  });
  for (const [key, amount] of cash) {
    const budget = budgetOf(group, key) as Budget;
    budget.base += BigInt(sign) * amount;
    budget.hard += BigInt(sign) * amount;
    announceThreshold(state, group, budget);
  }
}
