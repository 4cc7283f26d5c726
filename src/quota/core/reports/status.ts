import type { Amount } from '../../../manifests/amount.js';
import { consumedAt, exhaustedAt, levelAt, nextLevelAt, periodOf, usedAt, type Budget } from '../state/budget.js';
import type { DeclaredGrant } from '../state/declared-grant.js';
import { declaredLoans, loanedOf } from '../loans/declare-loans.js';
import { amountsOf, hardOf } from '../state/group-hard.js';
import type { Chain, Group, Mode } from '../state/group.js';
import type { Loan } from '../state/loan.js';
import { CASH, type Key } from '../../../manifests/key.js';
import { roomOf } from '../admission/cohort.js';
import type { QuotaState } from '../state/state.js';

/** A condition of a group, in the style of Kubernetes. */
export interface Condition {
  readonly type: 'OverQuota' | 'CashExhausted' | 'Terminating';
  readonly keys: readonly Key[];
}

/** Amounts by key, in base units; of cash in base units times milliseconds. */
export type Amounts = ReadonlyMap<Key, bigint>;

/** A budget: since its last reset if a grant resets it, otherwise since its creation. */
export interface BudgetStatus {
  /** The key, with `cash/`. */
  readonly key: Key;
  /** The amount of the specification, without grants. */
  readonly base: bigint;
  readonly granted: bigint;
  readonly used: bigint;
  readonly left: bigint;
  /** The highest of 80, 90 and 100 percent that is used; 0 below. */
  readonly level: number;
  /** Time at which the next level is reached if nothing changes, in milliseconds; null if none will be. */
  readonly nextLevelAt: number | null;
  /** Time of the next grant, in milliseconds; null if there is none. */
  readonly nextGrantAt: number | null;
}

/** The limits and the usage of a group. */
export interface GroupStatus {
  readonly name: string;
  readonly parent: string;
  /**
   * Time at which the group was created, in milliseconds: a group that is created again under the same name has a
   * different one.
   */
  readonly createdAt: number;
  readonly mode: Mode;
  readonly hard: Amounts;
  /** The usage of the group's own workloads; for cash, the consumption of its own pods. */
  readonly selfUsed: Amounts;
  /** The sum of `selfUsed` and the children's quotas. */
  readonly used: Amounts;
  /** The amount that the group could still admit, without cash: in an elastic tree it can differ from hard - used. */
  readonly room: Amounts;
  /** Time until which limits are reserved for an object that is not observed yet, in milliseconds; null if none are. */
  readonly limitsReservedUntil: number | null;
  readonly workloads: number;
  readonly reservations: number;
  readonly children: readonly string[];
  /**
   * Cash that pods may have used beyond `used`, because they were deleted while nothing watched them. Keys without such
   * an amount are missing.
   */
  readonly uncertain: Amounts;
  /** The current consumption of cash, in base units of the key. */
  readonly burnRate: Amounts;
  /** Time at which the first budget is used up if nothing changes, in milliseconds; null if none will be. */
  readonly exhaustsAt: number | null;
  readonly budgets: readonly BudgetStatus[];
  readonly grants: readonly DeclaredGrant[];
  /** The part of `hard` that comes from loans; negative for lent quota. */
  readonly loaned: Amounts;
  /** The declared loans that have not ended. */
  readonly loans: readonly Loan[];
  readonly conditions: readonly Condition[];
}

/** The inputs of a group's status; valid while the amounts and limits of the chain do not change. */
export interface StatusSource {
  readonly state: QuotaState;
  /** The group first. */
  readonly chain: Chain;
  readonly workloads: number;
  readonly reservations: number;
  readonly loaned: ReadonlyMap<Key, Amount>;
  readonly loans: readonly Loan[];
}

const NONE: readonly never[] = [];
const NO_AMOUNTS: ReadonlyMap<Key, Amount> = new Map();

/** The source of a group's status, with this chain. */
export function statusSourceOf(state: QuotaState, chain: Chain): StatusSource {
  const { name, workloads, reserved } = chain.first;
  const hasLoans = state.loans.size > 0;
  return {
    state,
    chain,
    workloads: workloads.size,
    reservations: reserved.size,
    loaned: hasLoans ? loanedOf(state, name) : NO_AMOUNTS,
    loans: hasLoans ? declaredLoans(state, name) : NONE,
  };
}

/** The status of one group at `now`. O(keys), and O(depth) for the amount that an elastic group could borrow. */
export function statusOf(state: QuotaState, group: Group, now: number): GroupStatus {
  return statusFrom(statusSourceOf(state, state.chainOf(group)), now);
}

export function statusFrom(source: StatusSource, now: number): GroupStatus {
  const { state, chain, workloads, reservations, loaned, loans } = source;
  const group = chain.first;
  const { amounts, layout } = group;
  const budgets = group.budgets.filter(({ listed }) => listed);
  const hard = hardOf(group);
  const used = amountsOf(
    group,
    (slot) => amounts.totalUsed(slot),
    (budget) => usedAt(budget, now),
  );
  const selfUsed = amountsOf(
    group,
    (slot) => amounts.selfUsed(slot),
    (budget) => consumedAt(budget, now),
  );
  const ends = budgets.flatMap((budget) => exhaustedAt(budget, now) ?? []);
  return {
    name: group.name,
    parent: group.parent,
    mode: group.mode,
    hard,
    selfUsed,
    used,
    room: new Map(layout.keys.map((key, slot) => [key, BigInt(roomOf(state, chain, slot))])),
    createdAt: group.life,
    limitsReservedUntil: group.limitReservation?.expiresAt ?? null,
    workloads,
    reservations,
    children: group.children,
    uncertain: new Map(
      budgets.filter(({ uncertain }) => uncertain > 0n).map(({ key, uncertain }) => [CASH + key, uncertain]),
    ),
    burnRate: new Map(budgets.map(({ key, rate }) => [CASH + key, rate])),
    exhaustsAt: ends.length === 0 ? null : Math.min(...ends),
    budgets: budgets.map((budget) => budgetStatusOf(budget, now)),
    grants: group.declared,
    loaned: new Map([...loaned].map(([key, amount]) => [key, BigInt(amount)])),
    loans,
    conditions: conditionsOf(group, hard, used),
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

function conditionsOf(group: Group, hard: Amounts, used: Amounts): readonly Condition[] {
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
