import type { Topology } from '../topology/topology.js';
import { serves, type Choice } from './choice.js';
import type { Machine } from './machine.js';
import { originalLink } from './original.js';
import { setScore } from './score.js';

/**
 * Several whole GPUs of a machine that is too large for exact search: starts from what the PCIe tree suggests (from the
 * GPUs with the most memory, where that suggestion has too little) and swaps one GPU for another as long as the score
 * rises. Null where no free set has the count and the memory.
 */
export function searchLargeSet({ topology, tree }: Machine, choice: Choice): readonly number[] | null {
  const start = [originalLink(tree, choice), mostMemory(choice)].find((set) => set !== null && serves(choice, set));
  if (start === undefined || start === null) return null;
  let set = start;
  for (;;) {
    const better = bestSwap(topology, choice, set);
    if (better === null) return set;
    set = better;
  }
}

function mostMemory(choice: Choice): readonly number[] | null {
  if (choice.free.length < choice.count) return null;
  const memory = (position: number) => choice.memoryBytes[position] as number;
  const others = choice.free
    .filter((position) => !choice.must.includes(position))
    .sort((a, b) => memory(b) - memory(a) || a - b);
  return [...choice.must, ...others].slice(0, choice.count).sort((a, b) => a - b);
}

function bestSwap(topology: Topology, choice: Choice, set: readonly number[]): readonly number[] | null {
  let best = setScore(topology, set);
  let found: readonly number[] | null = null;
  for (const out of set.filter((position) => !choice.must.includes(position))) {
    for (const taken of choice.free.filter((position) => !set.includes(position))) {
      const swapped = set.map((position) => (position === out ? taken : position)).sort((a, b) => a - b);
      const score = setScore(topology, swapped);
      if (score > best && serves(choice, swapped)) [best, found] = [score, swapped];
    }
  }
  return found;
}
