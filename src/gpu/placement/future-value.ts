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
  #matchings: Matchings | null = null;

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
      return jobSize === 2
        ? (this.#matchings ??= new Matchings(this.#table)).of(lowest)
        : bestDisjoint(this.#ranking(jobSize), lowest, jobs);
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

/** Few values differ, so the sets of each are collected, and only the values are sorted. */
function rank(table: SetTable, jobSize: number): Ranking {
  const byValue = new Map<number, BitSet[]>();
  let count = 0;
  for (let set = (1 << jobSize) - 1; set < 1 << table.count; set = nextOfSize(set)) {
    const value = table.of(set);
    const equal = byValue.get(value);
    if (equal === undefined) byValue.set(value, [set]);
    else equal.push(set);
    count += 1;
  }
  const [sets, values] = [new Int32Array(count), new Int32Array(count)];
  let at = 0;
  for (const value of [...byValue.keys()].sort((a, b) => b - a)) {
    const equal = byValue.get(value) as BitSet[];
    sets.set(equal, at);
    values.fill(value, at, at + equal.length);
    at += equal.length;
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

/**
 * The value of the best pairs of each set, in which each GPU is in one pair at most: pairs are too many for the search
 * of `bestDisjoint`. A set is computed when it is first asked for. The lowest GPU is always taken out first, so that
 * few other sets are needed, and mostly the same for similar sets.
 */
class Matchings {
  readonly #table: SetTable;
  /** The value plus one of each set; 0 while it is not known. */
  readonly #known: Int32Array;

  constructor(table: SetTable) {
    this.#table = table;
    this.#known = new Int32Array(1 << table.count);
  }

  of(set: BitSet): number {
    const known = this.#known[set] as number;
    if (known > 0) return known - 1;
    const most = set === 0 ? 0 : this.#best(set);
    this.#known[set] = most + 1;
    return most;
  }

  #best(set: BitSet): number {
    const rest = set & (set - 1);
    const pairs = this.#table.pairsOf(lowest(set));
    let most = this.of(rest);
    for (let others = rest; others !== 0; others &= others - 1) {
      const sum = (pairs[lowest(others)] as number) + this.of(rest & ~(others & -others));
      if (sum > most) most = sum;
    }
    return most;
  }
}
