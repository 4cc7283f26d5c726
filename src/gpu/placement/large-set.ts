import { gpuCount, linksBetween, type Topology } from '../topology/topology.js';
import { serves, type Choice } from './choice.js';
import type { Machine } from './machine.js';
import { originalLink } from './original.js';
import { pcieScore } from './score.js';

/** One NVLink outweighs every PCIe sum of 256 GPUs (32,640 pairs x 50 at most). */
const LINK_WEIGHT = 2 ** 21;

/**
 * How many sets are improved, and in how many rounds at most: higher numbers found no better set on any tested machine.
 */
const IMPROVED_SETS = 8;
const MAX_SWAPS = 128;

interface Candidate {
  readonly set: readonly number[];
  /** Weight of the set: NVLinks first, then PCIe. */
  readonly weight: number;
  /** NVLinks between the set and the free GPUs that remain. */
  readonly broken: number;
}

/**
 * Chooses several whole GPUs among more free ones than tables hold: a good set, not always the best. Starts once from
 * every free GPU and adds the best connected ones; starts also from the set that the PCIe tree suggests and from the
 * GPUs with the most memory; then swaps single GPUs as long as the set improves. Prefers more NVLinks, then PCIe
 * nearness, then fewer NVLinks to the GPUs that remain. Null if no free set has the count and the memory.
 */
export function searchLargeSet(
  { topology, tree, hasNvlink }: Machine,
  choices: readonly Choice[],
): readonly number[] | null {
  const weights = weightsOf(topology);
  const found = choices.flatMap((choice) => {
    const starts = [
      originalLink(tree, choice),
      mostMemory(choice),
      ...choice.free.map((seed) => grow(weights, choice, seed, 1)),
      ...(hasNvlink ? choice.free.map((seed) => grow(weights, choice, seed, -1)) : []),
    ];
    const served = starts.filter((set): set is readonly number[] => set !== null && serves(choice, set));
    const best = served.map((set) => candidate(weights, choice, set)).sort(better);
    return best.slice(0, IMPROVED_SETS).map(({ set }) => improved(weights, choice, set));
  });
  return found.sort(better)[0]?.set ?? null;
}

/** The weight of each pair, row by row. */
interface Weights {
  readonly count: number;
  readonly pairs: Float64Array;
  readonly links: Float64Array;
}

const known = new WeakMap<Topology, Weights>();

function weightsOf(topology: Topology): Weights {
  const made = known.get(topology) ?? makeWeights(topology);
  known.set(topology, made);
  return made;
}

function makeWeights(topology: Topology): Weights {
  const count = gpuCount(topology);
  const weights = { count, pairs: new Float64Array(count * count), links: new Float64Array(count * count) };
  for (let a = 0; a < count; a++) {
    for (let b = 0; b < count; b++) {
      const links = linksBetween(topology, a, b);
      weights.links[a * count + b] = links;
      weights.pairs[a * count + b] = links * LINK_WEIGHT + pcieScore(topology, a, b);
    }
  }
  return weights;
}

/** Negative when `a` comes first. */
function better(a: Candidate, b: Candidate): number {
  return b.weight - a.weight || a.broken - b.broken || lexicographic(a.set, b.set);
}

function lexicographic(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((position, place) => position !== b[place]);
  return at < 0 ? 0 : (a[at] as number) - (b[at] as number);
}

function candidate({ count, pairs, links }: Weights, choice: Choice, set: readonly number[]): Candidate {
  const isChosen = new Uint8Array(count);
  for (const position of set) isChosen[position] = 1;
  const stays = choice.nodeFree.filter((position) => isChosen[position] === 0);
  let weight = 0;
  let broken = 0;
  for (const a of set) {
    for (const b of set) weight += (pairs[a * count + b] as number) / 2;
    for (const b of stays) broken += links[a * count + b] as number;
  }
  return { set, weight, broken };
}

/**
 * A set that contains the mandatory GPUs and `seed`; the best connected GPU is added each time. Of equally connected
 * ones: the GPU with the most NVLinks to other free GPUs, which may be added next (`others` 1), or with the fewest,
 * which breaks the fewest links (`others` -1).
 */
function grow(weights: Weights, choice: Choice, seed: number, others: 1 | -1): readonly number[] | null {
  const { count, pairs, links } = weights;
  if (choice.free.length < choice.count) return null;
  const set = choice.must.includes(seed) ? [...choice.must] : [...choice.must, seed];
  if (set.length > choice.count) return null;
  let open = choice.free.filter((position) => !set.includes(position));
  const gain = new Float64Array(count);
  const outside = new Float64Array(count);
  const add = (taken: number): void => {
    for (const position of open)
      gain[position] = (gain[position] as number) + (pairs[taken * count + position] as number);
  };
  set.forEach(add);
  for (const position of open)
    for (const other of choice.nodeFree)
      outside[position] = (outside[position] as number) + others * (links[position * count + other] as number);
  while (set.length < choice.count) {
    let next = open[0] as number;
    for (const position of open) {
      const difference = (gain[position] as number) - (gain[next] as number);
      if (difference > 0 || (difference === 0 && (outside[position] as number) > (outside[next] as number)))
        next = position;
    }
    const taken = next;
    open = open.filter((position) => position !== taken);
    set.push(taken);
    add(taken);
  }
  return set.sort((a, b) => a - b);
}

function mostMemory(choice: Choice): readonly number[] | null {
  if (choice.free.length < choice.count) return null;
  const memory = (position: number) => choice.memoryBytes[position] as number;
  const others = choice.free
    .filter((position) => !choice.must.includes(position))
    .sort((a, b) => memory(b) - memory(a) || a - b);
  return [...choice.must, ...others].slice(0, choice.count).sort((a, b) => a - b);
}

function improved(weights: Weights, choice: Choice, start: readonly number[]): Candidate {
  let set = start;
  for (let swaps = 0; swaps < MAX_SWAPS; swaps++) {
    const swapped = bestSwap(weights, choice, set);
    if (swapped === null) break;
    set = swapped;
  }
  return candidate(weights, choice, set);
}

/** The swap of one GPU that improves the set most; null if none does. */
function bestSwap({ count, pairs }: Weights, choice: Choice, set: readonly number[]): readonly number[] | null {
  const inside = new Set(set);
  /** The weight of each free GPU together with the whole set. */
  const joined = new Float64Array(count);
  for (const position of choice.free)
    for (const member of set)
      joined[position] = (joined[position] as number) + (pairs[position * count + member] as number);
  const others = choice.free.filter((position) => !inside.has(position));
  let best = 0;
  let found: readonly number[] | null = null;
  for (const out of set) {
    if (choice.must.includes(out)) continue;
    for (const taken of others) {
      const more = (joined[taken] as number) - (pairs[taken * count + out] as number) - (joined[out] as number);
      if (more <= best) continue;
      const swapped = set.map((position) => (position === out ? taken : position)).sort((a, b) => a - b);
      if (serves(choice, swapped)) [best, found] = [more, swapped];
    }
  }
  return found;
}
