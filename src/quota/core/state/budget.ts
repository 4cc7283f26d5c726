import type { Key } from '../../../manifests/key.js';
import type { Period } from '../amounts/period.js';

/** A grant of a budget. Amounts are in base units of the key times milliseconds. */
export interface Grant {
  readonly id: string;
  /** After its beginning with the carried-over amount. */
  readonly amount: bigint;
  readonly validFrom: number;
  /** Infinity without an end. */
  readonly expiresAt: number;
  /** `topup` adds to the present grants; `reset` replaces them and carries over at most `carryOverMax`. */
  readonly mode: 'topup' | 'reset';
  readonly carryOverMax: bigint;
  readonly every: Period;
  /** The unused amount; null before `validFrom`. Usage is taken from the grant that expires first. */
  readonly left: bigint | null;
}

/**
 * Budget of one key in one group. The usage of the group's own pods until t is exactly `offset + rate * t`, independent
 * of the order of their events. Changed in place by the state that owns the group.
 */
export interface Budget {
  /** The key that is charged by the hour, such as `limits.cpu`. */
  readonly key: Key;
  /** False for a key that is no longer in `hard`: usage is counted but not limited. */
  listed: boolean;
  /** The amount in the specification. */
  base: bigint;
  /** `base` plus grants, minus expired amounts. */
  hard: bigint;
  offset: bigint;
  rate: bigint;
  /** Usage of pods counts from this time: when the key was added to a group with pods; otherwise -Infinity. */
  readonly since: number;
  /** Sum of the children's `hard`. */
  childSum: bigint;
  /** Usage that has been taken from grants. */
  settled: bigint;
  grants: Grant[];
  /** Possible usage beyond the counted usage, by pods that were deleted while no process watched them. */
  uncertain: bigint;
  /** The highest announced threshold: 0, 80, 90 or 100. */
  announced: number;
}

/** A budget without usage. */
export function newBudget(key: Key, hard: bigint, since: number): Budget {
  return {
    key,
    listed: true,
    base: hard,
    hard,
    offset: 0n,
    rate: 0n,
    since,
    childSum: 0n,
    settled: 0n,
    grants: [],
    uncertain: 0n,
    announced: 0,
  };
}

/** Usage of the group's own pods until `now`. */
export function consumedAt(budget: Budget, now: number): bigint {
  return budget.offset + budget.rate * BigInt(now);
}

/** Usage of own pods plus the budgets of children. */
export function usedAt(budget: Budget, now: number): bigint {
  return consumedAt(budget, now) + budget.childSum;
}

/** The budget and its usage: since the last reset if a grant resets it, otherwise since its creation. */
export function periodOf(budget: Budget, now: number): { readonly granted: bigint; readonly used: bigint } {
  const used = usedAt(budget, now);
  if (!budget.grants.some(({ mode, left }) => mode === 'reset' && left !== null)) return { granted: budget.hard, used };
  const granted = budget.grants.reduce((sum, { amount, left }) => (left === null ? sum : sum + amount), 0n);
  return { granted, used: granted - (budget.hard - used) };
}

/** Thresholds at which events are emitted, in percent. */
export const LEVELS = [100, 90, 80] as const;

/** The highest threshold that usage has reached; 0 below all. */
export function levelAt(budget: Budget, now: number): 0 | (typeof LEVELS)[number] {
  const { granted, used } = periodOf(budget, now);
  if (granted <= 0n) return 0;
  return LEVELS.find((level) => used * 100n >= granted * BigInt(level)) ?? 0;
}

/** When usage reaches the next threshold at the current rate; null if it never does. */
export function nextLevelAt(budget: Budget, now: number): number | null {
  const { granted, used } = periodOf(budget, now);
  if (granted <= 0n || budget.rate <= 0n) return null;
  const next = [...LEVELS].reverse().find((level) => used * 100n < granted * BigInt(level));
  if (next === undefined) return null;
  const missing = (granted * BigInt(next) + 99n) / 100n - used;
  return now + Number((missing + budget.rate - 1n) / budget.rate);
}

/** When the budget is exhausted at the current rate; null if never, `now` or earlier if it already is. */
export function exhaustedAt(budget: Budget, now: number): number | null {
  const left = budget.hard - usedAt(budget, now);
  if (left <= 0n) return now;
  if (budget.rate <= 0n) return null;
  return now + Number((left + budget.rate - 1n) / budget.rate);
}
