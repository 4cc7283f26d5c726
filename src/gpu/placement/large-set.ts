import { gpuCount, linksBetween, type Topology } from '../topology/topology.js';
import { serves, type Choice } from './choice.js';
import type { Machine } from './machine.js';
import { originalLink } from './original.js';
import { pcieScore } from './score.js';

/** One NVLink outweighs every PCIe sum of 256 GPUs (32,640 pairs x 50 at most). */
const LINK_WEIGHT = 2 ** 21;

/** Sets that are improved further, and how often at most: more find nothing better on any machine that was tried. */
const IMPROVED_SETS = 8;
const MOST_SWAPS = 128;

interface Candidate {
  readonly set: readonly number[];
  /** NVLinks, then PCIe, of the set. */
  readonly weight: number;
  /** NVLinks between the set and the free GPUs that stay. */
  readonly broken: number;
}

/**
 * Several whole GPUs among more free ones than tables hold: good, not always the best. Starts from every free GPU and
 * adds the best connected one, starts also from what the PCIe tree suggests (and from the GPUs with the most memory),
 * and swaps one GPU for another as long as the set becomes better. More NVLinks first, then nearer by PCIe, then fewer
 * NVLinks to the GPUs that stay. Null where no free set has the count and the memory.
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

/** What each pair counts, row by row. */
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
 * A set that begins with the GPUs that have to be part and `seed`: each time the best connected GPU is added, of equal
 * ones the one with the most NVLinks to other free GPUs, which may follow (`others` 1), or with the fewest, which break
 * nothing up (`others` -1).
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
  for (let swaps = 0; swaps < MOST_SWAPS; swaps++) {
    const swapped = bestSwap(weights, choice, set);
    if (swapped === null) break;
    set = swapped;
  }
  return candidate(weights, choice, set);
}

/** The swap of one GPU that makes the set better the most; null where none does. */
function bestSwap({ count, pairs }: Weights, choice: Choice, set: readonly number[]): readonly number[] | null {
  const inside = new Set(set);
  /** What each free GPU counts together with the whole set. */
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
