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

/** The next larger number with as many bits: from `(1 << k) - 1` on, it goes through all sets of k positions. */
export function nextOfSize(bits: BitSet): BitSet {
  const low = bits & -bits;
  const carried = bits + low;
  return carried | (((bits ^ carried) >>> 2) / low);
}
