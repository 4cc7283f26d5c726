import { eachSubset, size, type BitSet } from './bit-set.js';
import type { SetTable } from './set-table.js';

/** Set sizes that jobs request, largest first: the scarcest size is preserved first. */
export const JOB_SIZES = [8, 4, 2] as const;

/**
 * The future value of free GPUs: for each job size, the value of the best disjoint sets of that size among them.
 * Computed on first use and cached.
 */
export class FutureValue {
  readonly #table: SetTable;
  readonly #ranked = new Map<number, Ranking>();
  readonly #known = JOB_SIZES.map(() => new Map<BitSet, number>());
  #matchings: Float64Array | null = null;

  constructor(table: SetTable) {
    this.#table = table;
  }

  /** One value a job size; compare two with `compareWorth`. */
  of(set: BitSet): readonly number[] {
    return JOB_SIZES.map((jobSize, at) => {
      const jobs = Math.floor(size(set) / jobSize);
      if (jobs === 0) return 0;
      if (jobSize === 2) return this.#matching(set);
      const known = this.#known[at] as Map<BitSet, number>;
      const value = known.get(set) ?? bestDisjoint(this.#ranking(jobSize), set, jobs);
      known.set(set, value);
      return value;
    });
  }

  #ranking(jobSize: number): Ranking {
    const known = this.#ranked.get(jobSize) ?? rank(this.#table, jobSize);
    this.#ranked.set(jobSize, known);
    return known;
  }

  /** Pairs are too many to search: the best matching of every set from those of its parts. */
  #matching(set: BitSet): number {
    this.#matchings ??= matchings(this.#table);
    return this.#matchings[set] as number;
  }
}

/** Negative when `a` has less value than `b`. */
export function compareFutureValue(a: readonly number[], b: readonly number[]): number {
  for (const [at, value] of a.entries()) {
    const difference = value - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** All sets of one size, the most valuable first. */
interface Ranking {
  readonly sets: Int32Array;
  readonly values: Float64Array;
}

/** Sets have at most 16 bits, values 31: both fit in the 53 bits of one number, which sorts fast. */
const SET_RANGE = 65_536;

function rank(table: SetTable, jobSize: number): Ranking {
  const keys: number[] = [];
  eachSubset((1 << table.count) - 1, jobSize, (set) => keys.push(table.value(set) * SET_RANGE + set));
  const sorted = Float64Array.from(keys).sort().reverse();
  return {
    sets: Int32Array.from(sorted, (key) => key % SET_RANGE),
    values: sorted.map((key) => Math.floor(key / SET_RANGE)),
  };
}

/**
 * The largest sum of `jobs` disjoint sets within `among`: tries sets in descending order of value, and stops as soon as
 * even repeating the present set could not exceed the best known sum.
 */
function bestDisjoint(ranking: Ranking, among: BitSet, jobs: number): number {
  const { sets, values } = ranking;
  let best = 0;
  const search = (from: number, left: number, free: BitSet, sum: number): void => {
    for (let at = from; at < sets.length; at++) {
      const value = values[at] as number;
      if (sum + value * left <= best) return;
      const set = sets[at] as number;
      if ((set & ~free) !== 0) continue;
      if (left === 1) {
        best = sum + value;
        return;
      }
      search(at + 1, left - 1, free & ~set, sum + value);
    }
  };
  search(0, jobs, among, 0);
  return best;
}

/** For every set the value of its best pairs, each GPU in one pair at most. */
function matchings(table: SetTable): Float64Array {
  const best = new Float64Array(1 << table.count);
  for (let set = 3; set < best.length; set++) {
    const first = set & -set;
    const rest = set ^ first;
    let most = best[rest] as number;
    for (let others = rest; others !== 0; others &= others - 1) {
      const other = others & -others;
      const sum = table.value(first | other) + (best[rest ^ other] as number);
      if (sum > most) most = sum;
    }
    best[set] = most;
  }
  return best;
}
