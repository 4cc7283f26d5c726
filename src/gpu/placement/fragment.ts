import { linksBetween } from '../topology/topology.js';
import { bitsOf, lowest } from './bit-set.js';
import { serves, type Choice } from './choice.js';
import type { Machine } from './machine.js';
import { originalFragment } from './original.js';
import { preferredSet } from './preference.js';

/**
 * Chooses one whole GPU. On a machine without NVLink: from the PCIe subtree with the fewest free GPUs, as the original
 * does. With NVLink: the GPU whose removal leaves the most valuable sets. Null if no free GPU has the memory.
 */
export function chooseFragment(machine: Machine, choice: Choice): number | null {
  const fit = choice.free.filter((position) => serves(choice, [position]) && isWanted(choice, position));
  if (fit.length === 0) return null;
  if (machine.hasNvlink && machine.exact !== null) {
    const singles = fit.map((position) => 1 << position);
    return lowest(preferredSet(machine.exact, bitsOf(choice.nodeFree), singles));
  }
  return originalFragment(machine.tree, { ...choice, free: leastLinked(machine, choice, fit) })?.[0] ?? null;
}

/**
 * The GPUs with the fewest NVLinks to free GPUs: on machines that are too large for tables, taking these breaks the
 * fewest links.
 */
function leastLinked({ topology, hasNvlink }: Machine, choice: Choice, fit: readonly number[]): readonly number[] {
  if (!hasNvlink) return fit;
  const links = fit.map((position) =>
    choice.nodeFree.reduce((sum, other) => sum + linksBetween(topology, position, other), 0),
  );
  const fewest = Math.min(...links);
  return fit.filter((_, at) => links[at] === fewest);
}

function isWanted(choice: Choice, position: number): boolean {
  return choice.must.every((wanted) => wanted === position);
}
