/**
 * An exact integer: a number while it is a safe integer, a bigint beyond. Numbers make the common case fast and small,
 * bigints keep the rare case exact. Relational operators (<, >=) compare the two kinds exactly; `===` is right too,
 * because a value has one form only.
 */
export type Amount = number | bigint;

/** The largest quantity that is accepted from outside: Kubernetes quantities are 64-bit. */
export const MAX_QUANTITY = 2n ** 63n - 1n;

/** The one form of an exact integer. */
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
    // A product beyond the safe range may have been rounded back into it only from outside: the test below is sound.
    if (Number.isSafeInteger(product)) return product === 0 ? 0 : product;
  }
  return amountOf(BigInt(a) * BigInt(b));
}

/** How often `part` fits into `whole`, both not negative, `part` > 0; rounded down to a count. */
export function timesIn(whole: Amount, part: Amount): number {
  if (typeof whole === 'number' && typeof part === 'number') {
    const ratio = Math.floor(whole / part);
    // The quotient of two integers may round up to the next integer: check it the other way round.
    return ratio * part > whole ? ratio - 1 : ratio;
  }
  return Number(BigInt(whole) / BigInt(part));
}

/** The lesser of two. */
export function least(a: Amount, b: Amount): Amount {
  return a <= b ? a : b;
}

/** The greater of two. */
export function most(a: Amount, b: Amount): Amount {
  return a >= b ? a : b;
}
