import type { BitSet } from './bit-set.js';

/** A table has 2^n entries, so it is limited to 16 GPUs. */
export const MAX_TABLE_GPUS = 16;

/** The value of every set of GPUs of one machine: the sum over its pairs. Sets are bits over positions. */
export class SetTable {
  /** How many GPUs the machine has. */
  readonly count: number;
  readonly #pairs: readonly (readonly number[])[];
  readonly #values: Int32Array;

  /** `weigh` returns the value of a pair: a whole number, the same in both orders. */
  constructor(count: number, weigh: (a: number, b: number) => number) {
    if (count > MAX_TABLE_GPUS) throw new RangeError(`${count} GPUs, a table holds ${MAX_TABLE_GPUS}`);
    this.count = count;
    const positions = Array.from({ length: count }, (_, position) => position);
    this.#pairs = positions.map((a) => positions.map((b) => (a === b ? 0 : weigh(a, b))));
    this.#values = setValues(this.#pairs);
  }

  /** The sum over the set's pairs. */
  of(set: BitSet): number {
    return this.#values[set] as number;
  }

  /** The values of the pairs of one GPU, by the position of the other; 0 for the GPU itself. */
  pairsOf(position: number): readonly number[] {
    return this.#pairs[position] as readonly number[];
  }

  /** True when the two GPUs are interchangeable: swapping them changes the value of no set. */
  areTwins(a: number, b: number): boolean {
    const [rowOfA, rowOfB] = [this.#pairs[a] as readonly number[], this.#pairs[b] as readonly number[]];
    return rowOfA.every((value, other) => other === a || other === b || value === rowOfB[other]);
  }
}

/**
 * Adds one GPU after another: a set with it has the value of the same set without it, plus its pairs with that set,
 * whose sums are made in the same way.
 */
function setValues(pairs: readonly (readonly number[])[]): Int32Array {
  const values = new Int32Array(1 << pairs.length);
  const added = new Int32Array(values.length >> 1);
  for (const [gpu, row] of pairs.entries()) {
    const sets = 1 << gpu;
    for (let other = 0; other < gpu; other++) {
      const pair = row[other] as number;
      const without = 1 << other;
      for (let set = 0; set < without; set++) added[without + set] = (added[set] as number) + pair;
    }
    for (let set = 0; set < sets; set++) values[sets + set] = (values[set] as number) + (added[set] as number);
  }
  return values;
}
