import type { Topology } from '../../../src/gpu/topology/topology.js';

/** The weights of data/allocators, written a second time: the tests compute the score of a pair on their own. */
const PCIE: Readonly<Record<string, number>> = { X: 0, PIX: 50, PXB: 40, PHB: 30, NODE: 20, SYS: 10 };

function pairOpinion(topology: Topology, a: number, b: number): number {
  const links = topology.nvlinks[a]?.[b] ?? 0;
  return links > 0 ? 100 * links : (PCIE[topology.levels[a]?.[b] ?? ''] ?? 0);
}

function sumOfPairs(set: readonly number[], pair: (a: number, b: number) => number): number {
  let sum = 0;
  for (const a of set) for (const b of set) if (a < b) sum += pair(a, b);
  return sum;
}

export function scoreOpinion(topology: Topology, set: readonly number[]): number {
  return sumOfPairs(set, (a, b) => pairOpinion(topology, a, b));
}

/** Every subset of `from` with `count` members, in lexicographic order. */
export function subsets(from: readonly number[], count: number): number[][] {
  if (count === 0) return [[]];
  return from.flatMap((first, at) => subsets(from.slice(at + 1), count - 1).map((rest) => [first, ...rest]));
}

/** The highest score of `count` among `free`; compares all sets. */
export function highestScore(topology: Topology, free: readonly number[], count: number): number {
  return Math.max(...subsets(free, count).map((set) => scoreOpinion(topology, set)));
}

/** NVLinks within a set. */
export function linksOpinion(topology: Topology, set: readonly number[]): number {
  return sumOfPairs(set, (a, b) => topology.nvlinks[a]?.[b] ?? 0);
}

/** The PCIe distance score of a set. */
export function nearnessOpinion(topology: Topology, set: readonly number[]): number {
  return sumOfPairs(set, (a, b) => PCIE[topology.levels[a]?.[b] ?? ''] ?? 0);
}

/** The highest value of disjoint sets of `jobSize` among `free`, as many as fit; tries all of them. */
export function packingOpinion(
  free: readonly number[],
  jobSize: number,
  opinion: (set: readonly number[]) => number,
): number {
  if (free.length < jobSize) return 0;
  return Math.max(
    ...subsets(free, jobSize).map((set) => {
      const rest = free.filter((position) => !set.includes(position));
      return opinion(set) + packingOpinion(rest, jobSize, opinion);
    }),
  );
}

/**
 * The first set of `count` among `free`: NVLink of the set; best disjoint NVLink sets that remain; PCIe and NUMA
 * distance of the set; PCIe value of the rest; lowest positions. Compares every set.
 */
export function firstInOrder(
  topology: Topology,
  free: readonly number[],
  count: number,
  isAllowed: (set: readonly number[]) => boolean = () => true,
): readonly number[] | undefined {
  const links = (set: readonly number[]) => linksOpinion(topology, set);
  const nearness = (set: readonly number[]) => nearnessOpinion(topology, set);
  const judged = subsets(free, count)
    .filter(isAllowed)
    .map((set) => {
      const rest = free.filter((position) => !set.includes(position));
      const remains = (opinion: (set: readonly number[]) => number) =>
        [8, 4, 2].map((jobSize) => packingOpinion(rest, jobSize, opinion));
      return { set, order: [links(set), ...remains(links), nearness(set), ...remains(nearness)] };
    });
  const before = (a: readonly number[], b: readonly number[]): boolean => {
    const at = a.findIndex((value, place) => value !== b[place]);
    return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
  };
  const [first, ...others] = judged;
  if (first === undefined) return undefined;
  return others.reduce((best, other) => (before(other.order, best.order) ? other : best), first).set;
}
