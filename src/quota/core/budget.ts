import type { Key } from './key.js';

/** Cash that is given for a time. Amounts in base units of the key times milliseconds. */
export interface Grant {
  readonly id: string;
  /** Once it began, with what it took over. */
  readonly amount: bigint;
  readonly validFrom: number;
  /** Infinity for a grant without end. */
  readonly expiresAt: number;
  /** `topup` adds to what is there; `reset` begins anew and keeps at most `carryOverMax` of what is left. */
  readonly mode: 'topup' | 'reset';
  readonly carryOverMax: bigint;
  /** Comes again after so long, 0 for once. */
  readonly everyMs: number;
  /** What of it is not consumed; null before `validFrom`. Consumption draws from the grant that ends first. */
  readonly left: bigint | null;
}

/**
 * Cash of one key in one group: what its own pods consumed until t is `offset + rate * t`, exactly, whatever order the
 * pods' events came in. Changed in place by the state that owns the group.
 */
export interface Budget {
  /** What is charged by the hour: `limits.cpu`. */
  readonly key: Key;
  /** False for a key that left `hard`: consumption is still counted, nothing is limited. */
  listed: boolean;
  /** Of the specification. */
  base: bigint;
  /** `base` and what grants added, less what they forfeited. */
  hard: bigint;
  offset: bigint;
  rate: bigint;
  /** Pods count from here on: the moment the key was added to a group that had pods. -Infinity else. */
  readonly since: number;
  /** Sum of the children's `hard`. */
  childSum: bigint;
  /** How much use grants have been told of. */
  settled: bigint;
  grants: Grant[];
  /** What pods may have used beyond what is counted: they were deleted while nobody followed them. */
  uncertain: bigint;
  /** Highest threshold that was announced: 0, 80, 90 or 100. */
  announced: number;
}

/** A budget of which nothing is used. */
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

/** What the group's own pods consumed until `now`. */
export function consumedAt(budget: Budget, now: number): bigint {
  return budget.offset + budget.rate * BigInt(now);
}

/** Consumed, and given to children. */
export function usedAt(budget: Budget, now: number): bigint {
  return consumedAt(budget, now) + budget.childSum;
}

/**
 * What a budget has, and how much of that is used: since it was reset last where a grant resets it, of all time
 * otherwise.
 */
export function periodOf(budget: Budget, now: number): { readonly granted: bigint; readonly used: bigint } {
  const used = usedAt(budget, now);
  if (!budget.grants.some(({ mode, left }) => mode === 'reset' && left !== null)) return { granted: budget.hard, used };
  const granted = budget.grants.reduce((sum, { amount, left }) => (left === null ? sum : sum + amount), 0n);
  return { granted, used: granted - (budget.hard - used) };
}

/** Percent of a budget at which people are told. */
export const LEVELS = [100, 90, 80] as const;

/** The highest of the levels that use has reached; 0 below all of them. */
export function levelAt(budget: Budget, now: number): 0 | (typeof LEVELS)[number] {
  const { granted, used } = periodOf(budget, now);
  if (granted <= 0n) return 0;
  return LEVELS.find((level) => used * 100n >= granted * BigInt(level)) ?? 0;
}

/** When the next level is reached if nothing changes; null where none is. */
export function nextLevelAt(budget: Budget, now: number): number | null {
  const { granted, used } = periodOf(budget, now);
  if (granted <= 0n || budget.rate <= 0n) return null;
  const next = [...LEVELS].reverse().find((level) => used * 100n < granted * BigInt(level));
  if (next === undefined) return null;
  const missing = (granted * BigInt(next) + 99n) / 100n - used;
  return now + Number((missing + budget.rate - 1n) / budget.rate);
}

/** When the budget is spent if nothing changes: null if it never is, now or earlier if it is already. */
export function exhaustedAt(budget: Budget, now: number): number | null {
  const left = budget.hard - usedAt(budget, now);
  if (left <= 0n) return now;
  if (budget.rate <= 0n) return null;
  return now + Number((left + budget.rate - 1n) / budget.rate);
}
