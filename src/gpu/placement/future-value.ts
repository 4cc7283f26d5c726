import { bitsOf, lowest, nextOfSize, size, type BitSet } from './bit-set.js';
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
  readonly #known = new Map<BitSet, readonly number[]>();
  /** GPUs that are interchangeable, as `prefixes[k]`: the k lowest of them. */
  readonly #twins: readonly { readonly all: BitSet; readonly prefixes: readonly BitSet[] }[];
  #matchings: Int32Array | null = null;

  constructor(table: SetTable) {
    this.#table = table;
    this.#twins = twinsOf(table);
  }

  /** One value per job size; compare two results with `compareFutureValue`. */
  of(set: BitSet): readonly number[] {
    const lowest = this.#withLowestTwins(set);
    const known = this.#known.get(lowest);
    if (known !== undefined) return known;
    const value = JOB_SIZES.map((jobSize) => {
      const jobs = Math.floor(size(lowest) / jobSize);
      if (jobs === 0) return 0;
      return jobSize === 2 ? this.#matching(lowest) : bestDisjoint(this.#ranking(jobSize), lowest, jobs);
    });
    this.#known.set(lowest, value);
    return value;
  }

  /** A set of the same value; sets that differ only in interchangeable GPUs give the same result. */
  #withLowestTwins(set: BitSet): BitSet {
    let lowest = 0;
    for (const { all, prefixes } of this.#twins) lowest |= prefixes[size(set & all)] as BitSet;
    return lowest;
  }

  #ranking(jobSize: number): Ranking {
    const known = this.#ranked.get(jobSize) ?? rank(this.#table, jobSize);
    this.#ranked.set(jobSize, known);
    return known;
  }

  /** Pairs are too many for the search of `bestDisjoint`, so a table holds the best matching of every set. */
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

function twinsOf(table: SetTable): { all: BitSet; prefixes: BitSet[] }[] {
  const groups: number[][] = [];
  for (let position = 0; position < table.count; position++) {
    const group = groups.find(([first]) => table.areTwins(first as number, position));
    if (group === undefined) groups.push([position]);
    else group.push(position);
  }
  return groups.map((group) => ({
    all: bitsOf(group),
    prefixes: [0, ...group.map((_, at) => bitsOf(group.slice(0, at + 1)))],
  }));
}

/** All sets of one size, the most valuable first. */
interface Ranking {
  readonly sets: Int32Array;
  readonly values: Int32Array;
}

/** Sets have at most 16 bits, values less than 37: both fit in the 53 bits of one number, which sorts fast. */
const SET_RANGE = 65_536;

function rank(table: SetTable, jobSize: number): Ranking {
  const all: BitSet[] = [];
  for (let set = (1 << jobSize) - 1; set < 1 << table.count; set = nextOfSize(set)) all.push(set);
  const keys = new Float64Array(all.length);
  all.forEach((set, at) => (keys[at] = table.of(set) * SET_RANGE + set));
  keys.sort();
  const [sets, values] = [new Int32Array(keys.length), new Int32Array(keys.length)];
  for (let at = 0; at < keys.length; at++) {
    const key = keys[keys.length - 1 - at] as number;
    sets[at] = key % SET_RANGE;
    values[at] = key / SET_RANGE;
  }
  return { sets, values };
}

/**
 * The largest sum of `jobs` disjoint sets within `among`. Tries sets in descending order of value, and stops when
 * `jobs` times the value of the present set could not exceed the best sum.
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

/** For every set, the value of its best pairs; each GPU is in one pair at most. */
function matchings(table: SetTable): Int32Array {
  const best = new Int32Array(1 << table.count);
  for (let set = 3; set < best.length; set++) {
    const first = set & -set;
    const rest = set ^ first;
    const pairs = table.pairsOf(lowest(first));
    let most = best[rest] as number;
    for (let others = rest; others !== 0; others &= others - 1) {
      const other = others & -others;
      const sum = (pairs[lowest(other)] as number) + (best[rest ^ other] as number);
      if (sum > most) most = sum;
    }
    best[set] = most;
  }
  return best;
}
