import { sumCores, sumMemory } from '../node.js';
import { inGpus, type Policy } from './policy.js';

/**
 * Fills one node after the other: prefers the node with the fewest free cores, then the least free memory, both before
 * the pod is placed. This is the order of the original project's scheduler extender.
 */
export const binpack: Policy = {
  name: 'binpack',
  usesMix: false,
  inWords: ({ primary }) => `${inGpus(primary)} GPUs of the node are free`,
  judge: () => ({ cost: ({ free }) => ({ primary: sumCores(free), tieBreak: sumMemory(free) }) }),
};
