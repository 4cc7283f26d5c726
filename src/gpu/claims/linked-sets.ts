import type { BitSet } from '../placement/bit-set.js';
import { lowest, positionsOf, size } from '../placement/bit-set.js';
import { machineOf } from '../placement/machine.js';
import { JOB_SIZES } from '../placement/future-value.js';
import { takingOrderOf } from '../placement/preference.js';
import { fineScore } from '../placement/score.js';
import { MAX_TABLE_GPUS, SetTable } from '../placement/set-table.js';
import { nearer } from '../topology/level.js';
import { gpuCount, hasNvlink, levelBetween, linksBetween, type Topology } from '../topology/topology.js';

/** Sizes of linked sets that claims can request by an attribute, smallest first. */
export const LINK_GROUP_SIZES = [...JOB_SIZES].reverse();

/**
 * The best connected partition of a machine's GPUs into sets of `count`; remaining GPUs are in none. Exact, for
 * machines of up to 16 GPUs; empty for larger ones.
 */
export function bestPartition(topology: Topology, count: number): readonly (readonly number[])[] {
  const gpus = gpuCount(topology);
  if (gpus > MAX_TABLE_GPUS || gpus < count) return [];
  const table = new SetTable(gpus, (a, b) => fineScore(topology, a, b));
  const best = new Map<BitSet, { readonly value: number; readonly set: BitSet }>();
  // The lowest position is in a set, or it remains without one.
  const search = (free: BitSet): { readonly value: number; readonly set: BitSet } => {
    if (size(free) < count) return { value: 0, set: 0 };
    const known = best.get(free);
    if (known !== undefined) return known;
    const first = free & -free;
    let found = { value: -1, set: 0 };
    eachWith(table, free & ~first, count - 1, first, (set) => {
      const value = table.of(set) + search(free & ~set).value;
      if (value > found.value) found = { value, set };
    });
    if (size(free) % count !== 0) {
      const { value } = search(free & ~first);
      if (value > found.value) found = { value, set: 0 };
    }
    best.set(free, found);
    return found;
  };
  const sets: number[][] = [];
  for (let free = (1 << gpus) - 1; size(free) >= count;) {
    const { set } = search(free);
    if (set === 0) free &= free - 1;
    else {
      sets.push(positionsOf(set));
      free &= ~set;
    }
  }
  return sets;
}

/**
 * Calls `visit` with `chosen` and each subset of `left` positions of `among`; of interchangeable positions (twins) only
 * the lowest free one is taken next.
 */
function eachWith(table: SetTable, among: BitSet, left: number, chosen: BitSet, visit: (set: BitSet) => void): void {
  if (left === 0) {
    visit(chosen);
    return;
  }
  let passed: BitSet = 0;
  for (let rest = among; size(rest) >= left; rest &= rest - 1) {
    const position = lowest(rest);
    const twin = positionsOf(passed).some((other) => table.areTwins(other, position));
    passed |= 1 << position;
    if (!twin) eachWith(table, rest & (rest - 1), left - 1, chosen | (1 << position), visit);
  }
}

/** For each GPU the number of its set of `count` GPUs; null if it is in no linked set. */
export function linkGroups(topology: Topology, count: number): readonly (number | null)[] {
  const groups = new Array<number | null>(gpuCount(topology)).fill(null);
  for (const [at, set] of bestPartition(topology, count).entries())
    if (isLinked(topology, set)) for (const position of set) groups[position] = at;
  return groups;
}

/**
 * True if NVLink joins every pair, or, on a machine without NVLink, if every pair is at most a NUMA node's host bridge
 * apart.
 */
function isLinked(topology: Topology, set: readonly number[]): boolean {
  const nvlink = hasNvlink(topology);
  return set.every((a, at) =>
    set
      .slice(at + 1)
      .every((b) => (nvlink ? linksBetween(topology, a, b) > 0 : nearer(levelBetween(topology, a, b), 'NODE'))),
  );
}

/** For each GPU the number of its component of the NVLink graph; null for a GPU without links. */
export function linkDomains(topology: Topology): readonly (number | null)[] {
  const gpus = gpuCount(topology);
  const domains = new Array<number | null>(gpus).fill(null);
  let next = 0;
  for (let start = 0; start < gpus; start++) {
    if (domains[start] !== null) continue;
    const reached = [start];
    for (const a of reached)
      for (let b = 0; b < gpus; b++) if (!reached.includes(b) && linksBetween(topology, a, b) > 0) reached.push(b);
    if (reached.length === 1) continue;
    for (const position of reached) domains[position] = next;
    next += 1;
  }
  return domains;
}

/**
 * The order in which GPUs are best taken one by one: each step takes the GPU that leaves the most valuable sets for
 * jobs of 8, 4 and 2. The scheduler takes the first device that fits, so a driver influences placement by this order.
 */
export function takingOrder(topology: Topology): readonly number[] {
  const { exact } = machineOf(topology);
  const gpus = gpuCount(topology);
  if (exact === null) return Array.from({ length: gpus }, (_, position) => position);
  return takingOrderOf(exact, (1 << gpus) - 1);
}
