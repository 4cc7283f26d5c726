import type { Topology } from '../../../src/gpu/topology/topology.js';

/** Weights as data/allocators agree on them, written out again: the tests' own opinion of a pair. */
const PCIE: Readonly<Record<string, number>> = { X: 0, PIX: 50, PXB: 40, PHB: 30, NODE: 20, SYS: 10 };

export function pairOpinion(topology: Topology, a: number, b: number): number {
  const links = topology.nvlinks[a]?.[b] ?? 0;
  return links > 0 ? 100 * links : (PCIE[topology.levels[a]?.[b] ?? ''] ?? 0);
}

export function sumOfPairs(set: readonly number[], pair: (a: number, b: number) => number): number {
  let sum = 0;
  for (const a of set) for (const b of set) if (a < b) sum += pair(a, b);
  return sum;
}

export function scoreOpinion(topology: Topology, set: readonly number[]): number {
  return sumOfPairs(set, (a, b) => pairOpinion(topology, a, b));
}

/** Every subset of `from` with `count` members, lexicographic. */
export function subsets(from: readonly number[], count: number): number[][] {
  if (count === 0) return [[]];
  return from.flatMap((first, at) => subsets(from.slice(at + 1), count - 1).map((rest) => [first, ...rest]));
}

/** The highest score of `count` among `free`, by looking at all. */
export function highestScore(topology: Topology, free: readonly number[], count: number): number {
  return Math.max(...subsets(free, count).map((set) => scoreOpinion(topology, set)));
}

/** Value of a set as placement orders sets of equal score: score, then PCIe. */
export function fineOpinion(topology: Topology, set: readonly number[]): number {
  return sumOfPairs(set, (a, b) => pairOpinion(topology, a, b) * 8192 + (PCIE[topology.levels[a]?.[b] ?? ''] ?? 0));
}

/** The best that disjoint sets of `jobSize` can be worth among `free`, as many as fit, by trying all. */
export function packingOpinion(topology: Topology, free: readonly number[], jobSize: number): number {
  if (free.length < jobSize) return 0;
  return Math.max(
    ...subsets(free, jobSize).map((set) => {
      const rest = free.filter((position) => !set.includes(position));
      return fineOpinion(topology, set) + packingOpinion(topology, rest, jobSize);
    }),
  );
}
