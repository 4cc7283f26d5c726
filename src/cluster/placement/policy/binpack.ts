import { sumCores, sumMemory } from '../node.js';
import { inGpus, type Policy } from './policy.js';

/**
 * Fills one node after the other: prefers the node with the fewest free cores, then the least free memory. This is the
 * order of the original project's scheduler extender.
 */
export const binpack: Policy = {
  name: 'binpack',
  usesMix: false,
  inWords: ({ primary }) => `leaves ${inGpus(primary)} GPUs free on the node`,
  judge: () => ({ cost: (_node, after) => ({ primary: sumCores(after), tieBreak: sumMemory(after) }) }),
};
