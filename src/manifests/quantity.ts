import { MAX_QUANTITY, amountOf, type Amount } from './amount.js';
import { cashTarget, unitOfKey, type Key } from './key.js';

/**
 * A quantity in the API of the library: text or number in Kubernetes' units, or a bigint in base units (`unitOfKey`).
 */
export type Quantity = string | number | bigint;

export type Parsed =
  | { readonly ok: true; readonly amount: Amount }
  | { readonly ok: false; readonly code: 'InvalidQuantity' | 'QuantityTooLarge'; readonly reason: string };

const SHAPE = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d{1,4})|([KMGTPE]i|[numkMGTPE]))?$/;

const BINARY: Readonly<Record<string, bigint>> = {
  Ki: 2n ** 10n,
  Mi: 2n ** 20n,
  Gi: 2n ** 30n,
  Ti: 2n ** 40n,
  Pi: 2n ** 50n,
  Ei: 2n ** 60n,
};
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };

/** Longer texts are rejected without parsing: 64-bit quantities do not need them, and their arithmetic is slow. */
const MAX_LENGTH = 64;

/**
 * Parses a Kubernetes quantity (`500m`, `8Gi`, `1e3`, `1.5`) as an integer with `decimals` decimal places: 3 for
 * thousandths. Fractions are rounded `up` for requests and `down` for limits. The grammar is the same as for
 * resource.Quantity in the Kubernetes API. Values beyond 64 bits give QuantityTooLarge.
 */
export function parseQuantity(quantity: string | number, decimals: number, round: 'up' | 'down'): Parsed {
  if (typeof quantity === 'number') return parseNumber(quantity, decimals, round);
  const text = quantity;
  const plain = plainQuantity(text, decimals);
  if (plain !== null) return { ok: true, amount: plain };
  const match = text.length <= MAX_LENGTH ? SHAPE.exec(text) : null;
  const [, sign = '', whole = '', fraction = '', exponent, suffix = ''] = match ?? [];
  if (match === null || whole + fraction === '') return invalid(text);
  let numerator = BigInt(whole + fraction) * (BINARY[suffix] ?? 1n);
  let power =
    decimals - fraction.length + (exponent === undefined ? (DECIMAL[suffix] ?? 0) : Number(exponent.slice(1)));
  if (numerator === 0n) return { ok: true, amount: 0 };
  if (power > 40) return tooLarge(text);
  // Below this power the longest text is a fraction of one unit, so that the exact power does not matter.
  power = Math.max(power, -2 * MAX_LENGTH);
  if (power >= 0) numerator *= 10n ** BigInt(power);
  else numerator = divide(numerator, 10n ** BigInt(-power), (round === 'up') !== (sign === '-'));
  if (numerator > MAX_QUANTITY) return tooLarge(text);
  return { ok: true, amount: amountOf(sign === '-' ? -numerator : numerator) };
}

/** A number in JSON or YAML without quotes. */
function parseNumber(quantity: number, decimals: number, round: 'up' | 'down'): Parsed {
  if (decimals === 0 && Number.isSafeInteger(quantity)) return { ok: true, amount: quantity === 0 ? 0 : quantity };
  return Number.isFinite(quantity) ? parseQuantity(decimalText(quantity), decimals, round) : invalid(`${quantity}`);
}

const BYTES: Readonly<Record<string, number>> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };

/** Fast path for common forms such as `500m`, `16` and `8Gi`, without bigints. Null for all others. */
function plainQuantity(text: string, decimals: number): number | null {
  let [value, at] = [0, 0];
  for (; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) break;
    value = value * 10 + digit;
  }
  if (at === 0 || at > 15) return null;
  if (at === text.length) value *= 10 ** decimals;
  else if (at === text.length - 1 && decimals === 3 && text.endsWith('m')) return value;
  else value *= (BYTES[text.slice(at)] ?? NaN) * 10 ** decimals;
  return Number.isSafeInteger(value) ? value : null;
}

/** Parses a quantity of `key`: see Quantity. */
export function readQuantity(key: string, quantity: Quantity, round: 'up' | 'down'): Parsed {
  if (typeof quantity === 'bigint') {
    if (quantity > MAX_QUANTITY || quantity < -MAX_QUANTITY) return tooLarge(`${quantity}`);
    return { ok: true, amount: amountOf(quantity) };
  }
  const { decimals } = unitOfKey(key);
  if (typeof quantity !== 'string' && typeof quantity !== 'number') return invalid(typeof quantity);
  return parseQuantity(quantity, decimals, round);
}

/**
 * A quantity as the engine reports amounts of `key`: `amount('limits.cpu', '4')` is 4000n, `amount('limits.memory',
 * '8Gi')` is 8589934592n, and a budget counts hours. A fraction of a unit is rounded up. Throws a RangeError if the
 * quantity is invalid. `formatAmount` is the inverse.
 */
export function amount(key: Key, quantity: Quantity): bigint {
  const read = readQuantity(key, quantity, 'up');
  if (!read.ok) throw new RangeError(`${key}: ${read.reason}`);
  return BigInt(read.amount) * (cashTarget(key) === null ? 1n : HOUR_MS);
}

/** Parses a whole number, as extended resources need: `1k` is 1000. Null for a fraction or an invalid quantity. */
export function wholeQuantity(quantity: string | number): number | null {
  const [down, up] = [parseQuantity(quantity, 0, 'down'), parseQuantity(quantity, 0, 'up')];
  const isWhole = down.ok && up.ok && down.amount === up.amount && typeof down.amount === 'number';
  return isWhole ? down.amount : null;
}

/** Formats an amount of `key` as Kubernetes does: `500m`, `8Gi`, `4`; a part of a GPU as `0.3`. */
export function formatQuantity(key: string, amount: Amount): string {
  const { decimals, binary, pointed = false } = unitOfKey(key);
  const value = BigInt(amount);
  if (binary) return binaryText(value);
  if (decimals === 0) return value.toString();
  if (pointed) return formatCash(key, value * HOUR_MS);
  return value % 1000n === 0n ? (value / 1000n).toString() : `${value}m`;
}

/** Milliseconds per hour: budgets are in base units times milliseconds and shown in unit-hours. */
export const HOUR_MS = 3_600_000n;

/** Formats an amount of the budget `key` in unit-hours, rounded to at most four decimals: `601.98`. */
export function formatCash(key: string, cash: bigint): string {
  const { decimals, binary } = unitOfKey(key);
  if (binary && cash % HOUR_MS === 0n) return binaryText(cash / HOUR_MS);
  const base = HOUR_MS * 10n ** BigInt(decimals);
  const sign = cash < 0n ? '-' : '';
  const scaled = (((cash < 0n ? -cash : cash) * 20_000n) / base + 1n) / 2n;
  const fraction = (scaled % 10_000n).toString().padStart(4, '0').replace(/0+$/, '');
  return `${sign}${scaled / 10_000n}${fraction === '' ? '' : `.${fraction}`}`;
}

/** An amount of a key in readable units: `500m`, `8Gi`, and for cash hours: `601.98`. */
export function formatAmount(key: Key, amount: bigint): string {
  const target = cashTarget(key);
  return target === null ? formatQuantity(key, amount) : formatCash(target, amount);
}

function binaryText(value: bigint): string {
  if (value === 0n) return '0';
  let text = value.toString();
  for (const [suffix, factor] of Object.entries(BINARY)) {
    if (value % factor !== 0n) break;
    text = `${value / factor}${suffix}`;
  }
  return text;
}

function divide(value: bigint, by: bigint, away: boolean): bigint {
  const quotient = value / by;
  return away && quotient * by !== value ? quotient + 1n : quotient;
}

/** JavaScript writes small numbers as 1e-7, which the grammar allows, but large ones as 1e+21, which it does not. */
function decimalText(value: number): string {
  return value.toString().replace('e+', 'e');
}

function invalid(text: string): Parsed {
  return { ok: false, code: 'InvalidQuantity', reason: `"${text.slice(0, MAX_LENGTH)}" is not a quantity` };
}

function tooLarge(text: string): Parsed {
  return { ok: false, code: 'QuantityTooLarge', reason: `${text.slice(0, MAX_LENGTH)} exceeds 2^63-1` };
}
