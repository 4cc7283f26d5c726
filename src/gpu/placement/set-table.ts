import { lowest, type BitSet } from './bit-set.js';

/** A table has 2^n entries: 16 GPUs are the most it is made for. */
export const MAX_TABLE_GPUS = 16;

/** What every set of GPUs of one machine is worth: the sum over its pairs. Sets are bits over positions. */
export class SetTable {
  /** How many GPUs the machine has. */
  readonly count: number;
  readonly #pairs: readonly (readonly number[])[];
  readonly #values: Float64Array;

  /** `weigh` says what a pair is worth: a whole number, the same in both orders. */
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

  /** True when one GPU can take the other's place and no set is worth more or less for it. */
  areTwins(a: number, b: number): boolean {
    const [rowOfA, rowOfB] = [this.#pairs[a] as readonly number[], this.#pairs[b] as readonly number[]];
    return rowOfA.every((value, other) => other === a || other === b || value === rowOfB[other]);
  }
}

/**
 * A set is its parts: without its first GPU, plus without its second, less what both count, plus the pair of the two.
 */
function setValues(pairs: readonly (readonly number[])[]): Float64Array {
  const values = new Float64Array(1 << pairs.length);
  for (let set = 1; set < values.length; set++) {
    const first = set & -set;
    const rest = set ^ first;
    if (rest === 0) continue;
    const second = rest & -rest;
    const pair = (pairs[lowest(first)] as readonly number[])[lowest(second)] as number;
    values[set] =
      (values[rest] as number) + (values[set ^ second] as number) - (values[rest ^ second] as number) + pair;
  }
  return values;
}
