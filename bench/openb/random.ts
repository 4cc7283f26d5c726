/**
 * Numbers from 0 up to 1, the same for the same seed: Marsaglia's xorshift over 32 bits, its seed spread by a
 * multiplication.
 */
export type Random = () => number;

export function seededRandom(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e37_79b1) >>> 0 || 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  // Neighbouring seeds start with similar numbers.
  for (let at = 0; at < 16; at++) next();
  return next;
}

/** A number of 0 .. `below` - 1. */
export function randomIndex(random: Random, below: number): number {
  return Math.floor(random() * below);
}

/** The same elements in a random order (Fisher and Yates). */
export function shuffled<T>(random: Random, elements: readonly T[]): T[] {
  const result = [...elements];
  for (let last = result.length - 1; last > 0; last--) {
    const other = randomIndex(random, last + 1);
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}
