import type { BorrowedHours } from '../../kube/quota/group-object.js';
import { CASH, cashTarget, unitOfKey, type Key } from '../../manifests/key.js';
import { HOUR_MS } from '../../manifests/quantity.js';
import type { Quantities } from '../../manifests/quantities.js';
import type { GroupStatus } from '../../quota/index.js';

/** What a group had at a time. */
interface Sample {
  /** Milliseconds. */
  readonly at: number;
  /** Decayed hours beyond the guaranteed part, by key without `cash/`; base units times milliseconds. */
  readonly borrowed: ReadonlyMap<Key, number>;
  /** All hours of the ledger until then, by the same keys and in the same unit. */
  readonly counted: ReadonlyMap<Key, bigint>;
}

/**
 * The hours that groups had beyond their guaranteed part, from the hours of the ledger. Hours lose half of their weight
 * in each half-life. Only keys with a budget have hours.
 */
export class BorrowedHoursMeter {
  readonly #samples = new Map<string, Sample>();

  /** Counts the hours of a group until `now`; `written` is what its status had, for a meter that has just begun. */
  count(known: GroupStatus, written: BorrowedHours | undefined, halfLifeMs: number, now: number): void {
    const before = this.#samples.get(known.name) ?? (written === undefined ? null : sampleOf(written));
    this.#samples.set(known.name, next(known, before, halfLifeMs, now));
  }

  forget(group: string): void {
    this.#samples.delete(group);
  }

  /** The hours of a group by key, in base units; undefined for a group that was not counted. */
  of(group: string): Quantities | undefined {
    const sample = this.#samples.get(group);
    return sample === undefined ? undefined : new Map([...sample.borrowed].map(([key, sum]) => [key, sum / MS]));
  }

  /** The hours of a group for its status; undefined for a group that was not counted or has no budgets. */
  written(group: string): BorrowedHours | undefined {
    const sample = this.#samples.get(group);
    if (sample === undefined || sample.counted.size === 0) return undefined;
    return {
      at: new Date(sample.at).toISOString(),
      hours: Object.fromEntries([...sample.borrowed].map(([key, sum]) => [key, String(sum / MS / scaleOf(key))])),
      counted: Object.fromEntries([...sample.counted].map(([key, sum]) => [key, String(sum)])),
    };
  }
}

const MS = Number(HOUR_MS);

function scaleOf(key: Key): number {
  return 10 ** unitOfKey(key).decimals;
}

function sampleOf({ at, hours, counted }: BorrowedHours): Sample {
  const readable = Object.entries(counted).filter(([, sum]) => /^-?\d+$/u.test(sum));
  return {
    at: Date.parse(at) || 0,
    borrowed: new Map(Object.entries(hours).map(([key, sum]) => [key, (Number(sum) || 0) * MS * scaleOf(key)])),
    counted: new Map(readable.map(([key, sum]) => [key, BigInt(sum)])),
  };
}

function next(known: GroupStatus, before: Sample | null, halfLifeMs: number, now: number): Sample {
  const counted = new Map<Key, bigint>();
  const borrowed = new Map<Key, number>();
  const passed = Math.max(0, now - (before?.at ?? now));
  const halves = passed / halfLifeMs;
  for (const [cashKey, sum] of known.selfUsed) {
    const key = cashTarget(cashKey);
    if (key === null) continue;
    counted.set(key, sum);
    const had = before?.counted.get(key);
    const more = had === undefined || sum < had ? 0 : Number(sum - had) - guaranteed(known, key) * passed;
    // Hours of the last interval were had evenly in it, and have lost a part of their weight already.
    const weight = halves === 0 ? 1 : (1 - 2 ** -halves) / (halves * Math.LN2);
    borrowed.set(key, (before?.borrowed.get(key) ?? 0) * 2 ** -halves + Math.max(0, more) * weight);
  }
  return { at: now, borrowed, counted };
}

/** What a group is guaranteed itself: its quota without the quotas of its children, base units. */
function guaranteed({ hard, used, selfUsed }: GroupStatus, key: Key): number {
  const children = (used.get(key) ?? 0n) - (selfUsed.get(key) ?? 0n);
  const own = (hard.get(key) ?? 0n) - children;
  return own > 0n ? Number(own) : 0;
}

/** Formats the hours of a group's status: `cash/limits.cpu 12.5`. */
export function borrowedHoursText({ hours }: BorrowedHours): string {
  return Object.entries(hours)
    .map(([key, sum]) => `${CASH}${key} ${Number(sum).toFixed(1)}`)
    .join(', ');
}
