import type { Key } from './key.js';

/** Cash that is given for a time. Amounts in base units of the key times milliseconds. */
export interface Grant {
  readonly id: string;
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

/** When the budget is spent if nothing changes: null if it never is, now or earlier if it is already. */
export function exhaustedAt(budget: Budget, now: number): number | null {
  const left = budget.hard - usedAt(budget, now);
  if (left <= 0n) return now;
  if (budget.rate <= 0n) return null;
  return now + Number((left + budget.rate - 1n) / budget.rate);
}
