import { CASH, cashTarget, type Key } from '../../../manifests/key.js';
import { HOUR_MS, readQuantity, type Quantity } from '../../../manifests/quantity.js';
import type { Refusal } from '../amounts/refusal.js';
import { LAST_MONTHLY_DAY, isMonthlyDay, type Period } from '../amounts/period.js';
import { readDuration, readMoment, type Duration, type Moment } from '../amounts/time.js';

/**
 * A repeated grant in the specification of a group, such as a thousand card-hours every week. The engine grants it at
 * its time, once per period, independent of the group's object.
 */
export interface GroupGrant {
  /** Unique within the group. A grant is never given twice under the same name. */
  readonly name: string;
  /** A cash key of the group: `cash/requests.nvidia.com/gpu`. */
  readonly key: Key;
  /** In unit-hours. */
  readonly amount: Quantity;
  /** Multiplies the amount by this number of persons; default 1. */
  readonly persons?: number | undefined;
  /** Time of the first grant; by default the time of the declaration. */
  readonly from?: Moment | undefined;
  /** Period of repetition: a duration, or `month` for calendar months in UTC; by default the grant is given once. */
  readonly every?: Duration | undefined;
  /** The unused part expires this long after the grant; by default it stays. */
  readonly expiresAfter?: Duration | undefined;
  /** No grant after this time, at which the unused part expires. */
  readonly until?: Moment | undefined;
  /** `topup` adds to the unused amount, `reset` replaces it. Default: `reset` with `every`, otherwise `topup`. */
  readonly mode?: 'topup' | 'reset' | undefined;
  /** For `reset`: the maximum unused amount that stays, in unit-hours; default none. */
  readonly carryOver?: Quantity | undefined;
}

/** A declared grant as the state keeps it; immutable. */
export interface DeclaredGrant {
  readonly name: string;
  /** Without the prefix `cash/`. */
  readonly key: Key;
  /** For all persons, in base units times milliseconds. */
  readonly amount: bigint;
  readonly carryOver: bigint;
  /** Null if the specification has none. */
  readonly from: number | null;
  readonly every: Period;
  /** 0 for none. */
  readonly expiresAfterMs: number;
  /** Infinity for none. */
  readonly until: number;
  readonly mode: 'topup' | 'reset';
  /** Start of the period count; null before it is known. */
  readonly anchor: number | null;
  /** Scheduled time of the last grant; null before the first. */
  readonly begun: number | null;
  /** Reason of the last refusal; empty for none. */
  readonly refused: string;
}

export type ReadGrants = { readonly ok: true; readonly grants: readonly DeclaredGrant[] } | Refusal;

export const NO_GRANTS: readonly DeclaredGrant[] = [];

/** A shorter period would make the budget meaningless. */
export const MIN_PERIOD_MS = 60_000;
const MAX_GRANTS = 64;
const MAX_PERSONS = 1_000_000;

/** Reads the grants of a specification with the budgets `cash`. */
export function readGrants(grants: readonly GroupGrant[], cash: ReadonlyMap<Key, bigint>): ReadGrants {
  const refuse = (code: Refusal['code'], reason: string): Refusal => ({ ok: false, code, reason });
  if (!Array.isArray(grants)) return refuse('InvalidCommand', 'grants: expected a list');
  if (grants.length > MAX_GRANTS) return refuse('InvalidQuantity', `more than ${MAX_GRANTS} grants`);
  const read: DeclaredGrant[] = [];
  for (const grant of grants as readonly GroupGrant[]) {
    const { name, key, persons = 1 } = grant;
    if (typeof name !== 'string' || !/^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name))
      return refuse('InvalidName', `"${String(name).slice(0, 80)}" is not a valid name of a grant`);
    const where = `grant ${name}`;
    if (read.some((other) => other.name === name)) return refuse('GrantExists', `${where} is declared twice`);
    const target = typeof key === 'string' ? cashTarget(key) : null;
    if (target === null || !cash.has(target))
      return refuse('UnknownKey', `${where}: the group has no budget ${String(key).slice(0, 80)} in hard`);
    const [amount, carryOver] = [readHours(target, grant.amount), readHours(target, grant.carryOver ?? 0)];
    if (amount === null)
      return refuse(
        'InvalidQuantity',
        `${where}: amount: expected unit-hours, found ${String(grant.amount).slice(0, 64)}`,
      );
    if (carryOver === null)
      return refuse(
        'InvalidQuantity',
        `${where}: carryOver: expected unit-hours, found ${String(grant.carryOver).slice(0, 64)}`,
      );
    if (!Number.isSafeInteger(persons) || persons < 1 || persons > MAX_PERSONS)
      return refuse('InvalidCount', `${where}: persons: expected a whole number from 1 to ${MAX_PERSONS}`);
    const every = grant.every === undefined ? 0 : grant.every === 'month' ? 'month' : readDuration(grant.every);
    if (grant.every !== undefined && every !== 'month' && !(every >= MIN_PERIOD_MS))
      return refuse('InvalidTime', `${where}: every: expected a duration of at least 1m, such as 7d or 168h, or month`);
    const expiresAfterMs = grant.expiresAfter === undefined ? 0 : readDuration(grant.expiresAfter);
    if (Number.isNaN(expiresAfterMs) || (grant.expiresAfter !== undefined && expiresAfterMs === 0))
      return refuse('InvalidTime', `${where}: expiresAfter: expected a duration, such as 7d or 168h`);
    const from = grant.from === undefined ? null : readMoment(grant.from);
    if (Number.isNaN(from))
      return refuse('InvalidTime', `${where}: from: expected a time such as 2026-03-02T08:00:00Z`);
    if (every === 'month' && from !== null && !isMonthlyDay(from))
      return refuse(
        'InvalidTime',
        `${where}: from: with every: month, expected a day from 1 to ${LAST_MONTHLY_DAY}, which every month has`,
      );
    const until = grant.until === undefined ? Infinity : readMoment(grant.until);
    if (Number.isNaN(until) || until <= (from ?? 0))
      return refuse('InvalidTime', `${where}: until: expected a time after from, such as 2026-12-31T00:00:00Z`);
    const mode = grant.mode ?? (every === 0 ? 'topup' : 'reset');
    if (mode !== 'topup' && mode !== 'reset')
      return refuse(
        'InvalidMode',
        `${where}: mode: "${String(mode).slice(0, 40)}" is unknown; expected topup or reset`,
      );
    if (mode === 'topup' && carryOver > 0n)
      return refuse('InvalidQuantity', `${where}: carryOver: expected only with mode reset`);
    read.push({
      name,
      key: target,
      amount: amount * BigInt(persons),
      carryOver,
      from,
      every,
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

/** A text that is equal for equal declarations. */
export function declarationOf(grants: readonly DeclaredGrant[]): string {
  return grants
    .map(({ name, key, amount, carryOver, from, every, expiresAfterMs, until, mode }) =>
      [name, key, amount, carryOver, from, every, expiresAfterMs, until, mode].join(' '),
    )
    .join('\n');
}

/** The grant in the form of a specification. */
export function toGroupGrant(grant: DeclaredGrant): GroupGrant {
  const { name, key, amount, carryOver, from, every, expiresAfterMs, until, mode } = grant;
  return {
    name,
    key: CASH + key,
    amount,
    mode,
    ...(carryOver === 0n ? {} : { carryOver }),
    ...(from === null ? {} : { from }),
    ...(every === 0 ? {} : { every }),
    ...(expiresAfterMs === 0 ? {} : { expiresAfter: expiresAfterMs }),
    ...(until === Infinity ? {} : { until }),
  };
}

/** Id of a declared grant within its budget. */
export function declaredId(name: string): string {
  return `spec/${name}`;
}

/** Reads an amount of `key`: unit-hours, or a bigint in base units times milliseconds. Null if it is invalid. */
export function readHours(key: Key, quantity: Quantity): bigint | null {
  if (typeof quantity === 'bigint') return quantity >= 0n && quantity < 2n ** 86n ? quantity : null;
  const read = readQuantity(key, quantity, 'down');
  return read.ok && read.amount >= 0 ? BigInt(read.amount) * HOUR_MS : null;
}
