import type { ClusterNode, FreeState } from '../node.js';
import { sumCores } from '../node.js';
import { FragmentationScore } from '../fragmentation-score.js';
import { inGpus, type Policy } from './policy.js';

/** CPUs of a large node. Weighs CPU against GPU cores when the policy chooses the fuller of two nodes. */
const LARGE_NODE_CPU_MILLI = 128_000;
const LARGE_NODE_CORES = 800;

/**
 * Prefers the node where pods of the usual kinds lose the least capacity: where the waste for the cluster's typical mix
 * grows least. Of equal nodes, it prefers the fuller one, so that empty nodes stay empty.
 */
export const fragmentation: Policy = {
  name: 'fragmentation',
  usesMix: true,
  inWords: ({ primary, tieBreak }) =>
    `pods of the usual kinds could use ${inGpus(primary)} GPUs less; emptiness of the node ${tieBreak.toFixed(2)}`,
  judge: (mix, nodes) => {
    const meter = new FragmentationScore(mix, nodes);
    /** By node slot: the capacity usable now. Every kind of pod needs it again. */
    const known = new Map<number, { readonly node: ClusterNode; readonly version: number; readonly usable: number }>();
    const before = (node: ClusterNode): number => {
      const last = known.get(node.slot);
      if (last?.node === node && last.version === node.version) return last.usable;
      const usable = meter.usable(node.shape, node.free);
      known.set(node.slot, { node, version: node.version, usable });
      return usable;
    };
    return {
      cost: (node, after) => ({
        primary: before(node) - meter.usable(node.shape, after),
        tieBreak: emptiness(after),
      }),
    };
  },
};

function emptiness(state: FreeState): number {
  return state.cpuMilli / LARGE_NODE_CPU_MILLI + sumCores(state) / LARGE_NODE_CORES;
}
