import { amountOf, type Amount } from '../../../manifests/amount.js';

/** An exact integer in JSON: a number, or digits beyond 2^53; null for Infinity. */
export type Digits = number | string | null;

/** Parses an amount written by `digits`. */
export function amountOfDigits(written: Digits): Amount {
  if (written === null) return Infinity;
  return typeof written === 'number' ? written : amountOf(BigInt(written));
}

/** Writes an amount exactly. */
export function digits(amount: Amount): Digits {
  if (amount === Infinity) return null;
  return typeof amount === 'number' ? amount : `${amount}`;
}
