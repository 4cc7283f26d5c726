import { CORES_PER_GPU } from '../../../gpu/resources.js';
import { sumCores } from '../node.js';
import type { Policy } from './policy.js';

/** Loads nodes evenly: prefers the node that keeps the largest fraction free, then the one with the most free cores. */
export const spread: Policy = {
  name: 'spread',
  usesMix: false,
  inWords: ({ primary }) => `the node would be ${Math.round(primary * 100)} % in use`,
  judge: () => ({
    cost: (node, after) => {
      const free = sumCores(after);
      const capacity = node.shape.gpus.length * CORES_PER_GPU;
      return { primary: capacity === 0 ? 1 : 1 - free / capacity, tieBreak: -free };
    },
  }),
};
