/**
 * An exact integer: a number while it is a safe integer, otherwise a bigint. Numbers make the common case fast and
 * small. Relational operators (<, >=) compare both kinds exactly; `===` does so too, because every value has only one
 * form.
 */
export type Amount = number | bigint;

/** The largest accepted quantity: Kubernetes quantities have 64 bits. */
export const MAX_QUANTITY = 2n ** 63n - 1n;

export function amountOf(value: bigint): Amount {
  const near = Number(value);
  return Number.isSafeInteger(near) ? near : value;
}

/** a + b, exactly. */
export function plus(a: Amount, b: Amount): Amount {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return amountOf(BigInt(a) + BigInt(b));
}

/** a - b, exactly. */
export function minus(a: Amount, b: Amount): Amount {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b;
    if (Number.isSafeInteger(difference)) return difference;
  }
  return amountOf(BigInt(a) - BigInt(b));
}

/** a * b, exactly. */
export function times(a: Amount, b: Amount): Amount {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b;
    // A product outside the safe range cannot be rounded into it, so that this test is sufficient.
    if (Number.isSafeInteger(product)) return product === 0 ? 0 : product;
  }
  return amountOf(BigInt(a) * BigInt(b));
}

/** The quotient of two amounts >= 0, rounded down; `part` > 0. */
export function quotientOf(whole: Amount, part: Amount): number {
  if (typeof whole === 'number' && typeof part === 'number') {
    const ratio = Math.floor(whole / part);
    // The quotient may be rounded up to the next integer; the product shows this.
    return ratio * part > whole ? ratio - 1 : ratio;
  }
  return Number(BigInt(whole) / BigInt(part));
}

export function minOf(a: Amount, b: Amount): Amount {
  return a <= b ? a : b;
}

export function maxOf(a: Amount, b: Amount): Amount {
  return a >= b ? a : b;
}
