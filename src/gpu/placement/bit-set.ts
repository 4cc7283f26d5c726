/** Sets of positions as bits of a number: bit p is position p. Up to 31 positions. */
export type BitSet = number;

/** The set of some positions. */
export function bitsOf(positions: readonly number[]): BitSet {
  return positions.reduce((bits, position) => bits | (1 << position), 0);
}

/** The positions of a set, ascending. */
export function positionsOf(bits: BitSet): number[] {
  const positions: number[] = [];
  for (let rest = bits; rest !== 0; rest &= rest - 1) positions.push(lowest(rest));
  return positions;
}

/** The lowest position of a set that is not empty. */
export function lowest(bits: BitSet): number {
  return 31 - Math.clz32(bits & -bits);
}

/** How many positions the set holds. */
export function size(bits: BitSet): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/**
 * Calls `visit` with every subset of `among` that has `count` positions, in lexicographic order of their positions: the
 * set with the lowest positions comes first.
 */
export function eachSubset(among: BitSet, count: number, visit: (subset: BitSet) => void): void {
  const positions = positionsOf(among);
  const choose = (from: number, left: number, chosen: BitSet): void => {
    if (left === 0) {
      visit(chosen);
      return;
    }
    for (let at = from; at <= positions.length - left; at++)
      choose(at + 1, left - 1, chosen | (1 << (positions[at] as number)));
  };
  if (count <= positions.length) choose(0, count, 0);
}
