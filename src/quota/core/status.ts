import { plus, type Amount } from './amount.js';
import { consumedAt, exhaustedAt, levelAt, nextLevelAt, periodOf, usedAt, type Budget } from './budget.js';
import type { DeclaredGrant } from './declared-grant.js';
import { declaredLoans, loanedOf } from './declare-loans.js';
import { hardOf } from './group-hard.js';
import type { Group, Mode } from './group.js';
import type { Loan } from './loan.js';
import { CASH, type Key } from './key.js';
import { chainOf, roomOf } from './cohort.js';
import type { QuotaState } from './state.js';

/** Something worth knowing about a group, in the manner of Kubernetes conditions. */
export interface Condition {
  readonly type: 'OverQuota' | 'CashExhausted' | 'Terminating';
  readonly keys: readonly Key[];
}

/** Amounts by key: in base units, of cash in base units times milliseconds. */
export type Amounts = ReadonlyMap<Key, bigint>;

/** What a budget has: since it was reset last where a grant resets it, of all time otherwise. */
export interface BudgetStatus {
  /** With `cash/`. */
  readonly key: Key;
  /** Of its specification alone, without grants. */
  readonly base: bigint;
  readonly granted: bigint;
  readonly used: bigint;
  readonly left: bigint;
  /** The highest of 80, 90 and 100 percent that is used; 0 below. */
  readonly level: number;
  /** When the next level is reached if nothing changes, milliseconds; null where none is. */
  readonly nextLevelAt: number | null;
  /** When cash is granted next, milliseconds; null where none is. */
  readonly nextGrantAt: number | null;
}

/** What a group has and uses. */
export interface GroupStatus {
  readonly name: string;
  readonly parent: string;
  readonly mode: Mode;
  readonly hard: Amounts;
  /** Of the group's own workloads, and of cash what its own pods consumed. */
  readonly selfUsed: Amounts;
  /** `selfUsed` and what children have. */
  readonly used: Amounts;
  /** What the group could still admit: in an elastic tree more or less than hard - used. Not of cash. */
  readonly room: Amounts;
  /** Until when limits are reserved for an object that is not seen yet, milliseconds; null where none are. */
  readonly limitsReservedUntil: number | null;
  readonly workloads: number;
  readonly reservations: number;
  readonly children: readonly string[];
  /**
   * Of cash: what may have been used beyond `used`, by pods that were deleted while nobody followed them. Keys without
   * any are missing.
   */
  readonly uncertain: Amounts;
  /** Cash that is consumed at this moment: base units of the key. */
  readonly burnRate: Amounts;
  /** When the first budget is spent if nothing changes, milliseconds; null if none ever is. */
  readonly exhaustsAt: number | null;
  readonly budgets: readonly BudgetStatus[];
  readonly grants: readonly DeclaredGrant[];
  /** What `hard` has by loans, beyond the specification: less than nothing of what is lent. */
  readonly loaned: Amounts;
  /** Of the loans that the specification declares, those that are not over. */
  readonly loans: readonly Loan[];
  readonly conditions: readonly Condition[];
}

/** The status of one group at `now`. O(keys), and O(depth) for what an elastic group could borrow. */
export function statusOf(state: QuotaState, group: Group, now: number): GroupStatus {
  const { layout } = group;
  const chain = chainOf(state, group);
  const budgets = group.budgets.filter(({ listed }) => listed);
  const usedOf = (slot: number): bigint => BigInt(plus(group.selfUsed[slot] as Amount, group.childSum[slot] as Amount));
  const used = new Map([
    ...layout.keys.map((key, slot): [Key, bigint] => [key, usedOf(slot)]),
    ...budgets.map((budget): [Key, bigint] => [CASH + budget.key, usedAt(budget, now)]),
  ]);
  const ends = budgets.flatMap((budget) => exhaustedAt(budget, now) ?? []);
  return {
    name: group.name,
    parent: group.parent,
    mode: group.mode,
    hard: hardOf(group),
    selfUsed: new Map([
      ...layout.keys.map((key, slot): [Key, bigint] => [key, BigInt(group.selfUsed[slot] as Amount)]),
      ...budgets.map((budget): [Key, bigint] => [CASH + budget.key, consumedAt(budget, now)]),
    ]),
    used,
    room: new Map(layout.keys.map((key, slot) => [key, BigInt(roomOf(state, chain, slot))])),
    limitsReservedUntil: group.limitReservation?.expiresAt ?? null,
    workloads: group.workloads.size,
    reservations: group.reserved.size,
    children: [...group.children.entries()].map(([name]) => name),
    uncertain: new Map(
      budgets.filter(({ uncertain }) => uncertain > 0n).map(({ key, uncertain }) => [CASH + key, uncertain]),
    ),
    burnRate: new Map(budgets.map(({ key, rate }) => [CASH + key, rate])),
    exhaustsAt: ends.length === 0 ? null : Math.min(...ends),
    budgets: budgets.map((budget) => budgetStatusOf(budget, now)),
    grants: group.declared,
    loaned: new Map([...loanedOf(state, group.name)].map(([key, amount]) => [key, BigInt(amount)])),
    loans: declaredLoans(state, group.name),
    conditions: conditionsOf(group, used),
  };
}

function budgetStatusOf(budget: Budget, now: number): BudgetStatus {
  const { granted, used } = periodOf(budget, now);
  const pending = budget.grants.flatMap(({ left, validFrom }) => (left === null ? [validFrom] : []));
  return {
    key: CASH + budget.key,
    base: budget.base,
    granted,
    used,
    left: granted - used,
    level: levelAt(budget, now),
    nextLevelAt: nextLevelAt(budget, now),
    nextGrantAt: pending.length === 0 ? null : Math.min(...pending),
  };
}

function conditionsOf(group: Group, used: Amounts): readonly Condition[] {
  const hard = hardOf(group);
  const over = group.layout.keys.filter((key) => (used.get(key) ?? 0n) > (hard.get(key) ?? 0n));
  const spent = group.budgets
    .filter(({ listed }) => listed)
    .map(({ key }) => CASH + key)
    .filter((key) => (used.get(key) ?? 0n) >= (hard.get(key) ?? 0n));
  return [
    ...(over.length === 0 ? [] : [{ type: 'OverQuota' as const, keys: over }]),
    ...(spent.length === 0 ? [] : [{ type: 'CashExhausted' as const, keys: spent }]),
    ...(group.terminating ? [{ type: 'Terminating' as const, keys: [] }] : []),
  ];
}
