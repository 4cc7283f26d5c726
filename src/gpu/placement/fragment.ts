import { bitsOf, lowest } from './bit-set.js';
import { serves, type Choice } from './choice.js';
import { leavesMost } from './link.js';
import type { Machine } from './machine.js';
import { originalFragment } from './original.js';

/**
 * Chooses one whole GPU. Where only PCIe differs: as the original does, from the subtree with the fewest free GPUs.
 * Where NVLink joins GPUs: the one that leaves the best sets for later. Null where no free GPU has the memory.
 */
export function chooseFragment(machine: Machine, choice: Choice): number | null {
  const fit = choice.free.filter((position) => serves(choice, [position]) && isWanted(choice, position));
  const first = fit[0];
  if (first === undefined) return null;
  if (machine.hasNvlink && machine.exact !== null) {
    const singles = fit.map((position) => 1 << position);
    return lowest(leavesMost(machine.exact, bitsOf(choice.nodeFree), 1 << first, singles));
  }
  return originalFragment(machine.tree, { ...choice, free: fit })?.[0] ?? null;
}

function isWanted(choice: Choice, position: number): boolean {
  return choice.must.every((wanted) => wanted === position);
}
