import { gpuCount, type Topology } from '../topology/topology.js';
import { lowest, type BitSet } from './bit-set.js';
import { pairScore, pcieScore } from './score.js';

/** A table has 2^n entries: 16 GPUs are the most it is made for. */
export const MAX_TABLE_GPUS = 16;

/**
 * Finer than a score: PCIe decides between sets of equal score, so one score point outweighs every PCIe sum
 * (120 pairs x 50 at most).
 */
const SCORE_UNIT = 8192;

/** How well every set of GPUs of one machine is connected; sets are bits over positions. Laid out once, 2^n entries. */
export class SetTable {
  /** How many GPUs the machine has. */
  readonly count: number;
  readonly #pairs: readonly (readonly number[])[];
  readonly #values: Float64Array;

  constructor(topology: Topology) {
    this.count = gpuCount(topology);
    if (this.count > MAX_TABLE_GPUS) throw new RangeError(`${this.count} GPUs, a table holds ${MAX_TABLE_GPUS}`);
    this.#pairs = pairValues(topology);
    this.#values = setValues(this.#pairs);
  }

  /** The sum of the scores of the set's pairs. */
  score(set: BitSet): number {
    return Math.floor((this.#values[set] as number) / SCORE_UNIT);
  }

  /** Score first, then PCIe: orders sets more finely than `score`. A whole number below 2^31. */
  value(set: BitSet): number {
    return this.#values[set] as number;
  }

  /** True when one GPU can take the other's place and no set is better or worse for it. */
  areTwins(a: number, b: number): boolean {
    const [rowOfA, rowOfB] = [this.#pairs[a] as readonly number[], this.#pairs[b] as readonly number[]];
    return rowOfA.every((value, other) => other === a || other === b || value === rowOfB[other]);
  }
}

function pairValues(topology: Topology): readonly (readonly number[])[] {
  const positions = Array.from({ length: gpuCount(topology) }, (_, position) => position);
  return positions.map((a) =>
    positions.map((b) => (a === b ? 0 : pairScore(topology, a, b) * SCORE_UNIT + pcieScore(topology, a, b))),
  );
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
