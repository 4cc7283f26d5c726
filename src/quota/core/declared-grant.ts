import { CASH, cashTarget, type Key } from './key.js';
import { HOUR_MS, readQuantity, type Quantity } from './quantity.js';
import type { Refusal } from './refusal.js';
import { readDuration, readMoment, type Duration, type Moment } from './time.js';

/**
 * Cash that the specification of a group gives it: a thousand card-hours every week. The engine gives it when its time
 * comes, once for each time, whatever becomes of the group's object meanwhile.
 */
export interface GroupGrant {
  /** Of one group, unique. A grant that was given once is not given again under the same name. */
  readonly name: string;
  /** A cash key of the group: `cash/requests.nvidia.com/gpu`. */
  readonly key: Key;
  /** In unit-hours. */
  readonly amount: Quantity;
  /** The amount is for each of so many persons; 1 without. */
  readonly persons?: number | undefined;
  /** When it is given first; when it is declared without. */
  readonly from?: Moment | undefined;
  /** It is given again after so long. Once without. */
  readonly every?: Duration | undefined;
  /** What is not used ends so long after it was given; without, it stays. */
  readonly expiresAfter?: Duration | undefined;
  /** Nothing is given any more from then on, and what is left ends then. */
  readonly until?: Moment | undefined;
  /** `topup` adds to what is left, `reset` replaces it. Without: `reset` with `every`, `topup` otherwise. */
  readonly mode?: 'topup' | 'reset' | undefined;
  /** Of `reset`: how much of what is left stays, in unit-hours. Nothing without. */
  readonly carryOver?: Quantity | undefined;
}

/** The same as a group keeps it. Never changed: replaced. */
export interface DeclaredGrant {
  readonly name: string;
  /** Without `cash/`. */
  readonly key: Key;
  /** In base units times milliseconds, of all persons. */
  readonly amount: bigint;
  readonly carryOver: bigint;
  /** Null where the specification names none. */
  readonly from: number | null;
  /** 0 for once. */
  readonly everyMs: number;
  /** 0 without. */
  readonly expiresAfterMs: number;
  /** Infinity without. */
  readonly until: number;
  readonly mode: 'topup' | 'reset';
  /** What `everyMs` is counted from; null before it is known. */
  readonly anchor: number | null;
  /** The time that was given last; null before the first. */
  readonly begun: number | null;
  /** Why it was refused last, empty where it was not. */
  readonly refused: string;
}

export type ReadGrants = { readonly ok: true; readonly grants: readonly DeclaredGrant[] } | Refusal;

export const NO_GRANTS: readonly DeclaredGrant[] = [];

/** Shorter periods would be no budget any more. */
export const MIN_PERIOD_MS = 60_000;
const MAX_GRANTS = 64;
const MAX_PERSONS = 1_000_000;

/** Reads the grants of a specification whose budgets are `cash`. */
export function readGrants(grants: readonly GroupGrant[], cash: ReadonlyMap<Key, bigint>): ReadGrants {
  const refuse = (code: Refusal['code'], reason: string): Refusal => ({ ok: false, code, reason });
  if (!Array.isArray(grants)) return refuse('InvalidCommand', 'grants: expected a list');
  if (grants.length > MAX_GRANTS) return refuse('InvalidQuantity', `more than ${MAX_GRANTS} grants`);
  const read: DeclaredGrant[] = [];
  for (const grant of grants as readonly GroupGrant[]) {
    const { name, key, persons = 1 } = grant;
    if (typeof name !== 'string' || !/^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name))
      return refuse('InvalidName', `"${String(name).slice(0, 80)}" is no name of a grant`);
    const where = `grant ${name}`;
    if (read.some((other) => other.name === name)) return refuse('GrantExists', `${where} is declared twice`);
    const target = typeof key === 'string' ? cashTarget(key) : null;
    if (target === null || !cash.has(target))
      return refuse('UnknownKey', `${where}: the group has no budget ${String(key).slice(0, 80)} in hard`);
    const [amount, carryOver] = [readHours(target, grant.amount), readHours(target, grant.carryOver ?? 0)];
    if (amount === null) return refuse('InvalidQuantity', `${where}: amount: ${String(grant.amount).slice(0, 64)}`);
    if (carryOver === null)
      return refuse('InvalidQuantity', `${where}: carryOver: ${String(grant.carryOver).slice(0, 64)}`);
    if (!Number.isSafeInteger(persons) || persons < 1 || persons > MAX_PERSONS)
      return refuse('InvalidCount', `${where}: persons: expected a whole number from 1 to ${MAX_PERSONS}`);
    const everyMs = grant.every === undefined ? 0 : readDuration(grant.every);
    if (Number.isNaN(everyMs) || (grant.every !== undefined && everyMs < MIN_PERIOD_MS))
      return refuse('InvalidTime', `${where}: every: expected a duration of at least 1m, such as 7d or 168h`);
    const expiresAfterMs = grant.expiresAfter === undefined ? 0 : readDuration(grant.expiresAfter);
    if (Number.isNaN(expiresAfterMs) || (grant.expiresAfter !== undefined && expiresAfterMs === 0))
      return refuse('InvalidTime', `${where}: expiresAfter: expected a duration, such as 7d or 168h`);
    const from = grant.from === undefined ? null : readMoment(grant.from);
    if (Number.isNaN(from))
      return refuse('InvalidTime', `${where}: from: expected a time such as 2026-03-02T08:00:00Z`);
    const until = grant.until === undefined ? Infinity : readMoment(grant.until);
    if (Number.isNaN(until) || until <= (from ?? 0))
      return refuse('InvalidTime', `${where}: until: expected a time after from, such as 2026-12-31T00:00:00Z`);
    const mode = grant.mode ?? (everyMs > 0 ? 'reset' : 'topup');
    if (mode !== 'topup' && mode !== 'reset')
      return refuse('InvalidMode', `${where}: mode: "${String(mode).slice(0, 40)}" is none of topup, reset`);
    if (mode === 'topup' && carryOver > 0n)
      return refuse('InvalidQuantity', `${where}: carryOver: a topup leaves all that is left`);
    read.push({
      name,
      key: target,
      amount: amount * BigInt(persons),
      carryOver,
      from,
      everyMs,
      expiresAfterMs,
      until,
      mode,
      anchor: null,
      begun: null,
      refused: '',
    });
  }
  return { ok: true, grants: read };
}

/** Text that is the same for grants that were declared alike. */
export function declarationOf(grants: readonly DeclaredGrant[]): string {
  return grants
    .map(({ name, key, amount, carryOver, from, everyMs, expiresAfterMs, until, mode }) =>
      [name, key, amount, carryOver, from, everyMs, expiresAfterMs, until, mode].join(' '),
    )
    .join('\n');
}

/** The same as a specification says it. */
export function toGroupGrant(grant: DeclaredGrant): GroupGrant {
  const { name, key, amount, carryOver, from, everyMs, expiresAfterMs, until, mode } = grant;
  return {
    name,
    key: CASH + key,
    amount,
    mode,
    ...(carryOver === 0n ? {} : { carryOver }),
    ...(from === null ? {} : { from }),
    ...(everyMs === 0 ? {} : { every: everyMs }),
    ...(expiresAfterMs === 0 ? {} : { expiresAfter: expiresAfterMs }),
    ...(until === Infinity ? {} : { until }),
  };
}

/** Id of a declared grant among the grants of its budget. */
export function declaredId(name: string): string {
  return `spec/${name}`;
}

/** Cash of `key`: unit-hours, or as a bigint base units times milliseconds. Null of what is none. */
export function readHours(key: Key, quantity: Quantity): bigint | null {
  if (typeof quantity === 'bigint') return quantity >= 0n && quantity < 2n ** 86n ? quantity : null;
  const read = readQuantity(key, quantity, 'down');
  return read.ok && read.amount >= 0 ? BigInt(read.amount) * HOUR_MS : null;
}
