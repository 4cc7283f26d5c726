import { CORES_PER_GPU } from '../../../gpu/resources.js';
import type { Demand } from '../demand.js';
import type { ClusterNode, FreeState } from '../node.js';
import type { TypicalMix } from '../typical-mix.js';

/** The cost of placing a pod on a node; less is better. `second` decides between nodes of equal `first`. */
export interface Cost {
  readonly first: number;
  readonly second: number;
}

/** Judges nodes that a pod fits on, for one mix of typical requests. */
export interface Judge {
  /**
   * `after` is the node's free state with the pod placed; the node itself is in the state before. Depends on nothing
   * else than node, demand and the mix, so that costs may be remembered as long as none of them changes.
   */
  cost(node: ClusterNode, after: FreeState, demand: Demand): Cost;
}

/** A way to prefer nodes. */
export interface Policy {
  readonly name: PolicyName;
  /** True when costs depend on the mix: a new mix makes remembered costs void. */
  readonly usesMix: boolean;
  /** `nodes` are those of the cluster, in the state in which they are when the mix is made. */
  judge(mix: TypicalMix, nodes: Iterable<ClusterNode>): Judge;
  /** The cost in words. */
  inWords(cost: Cost): string;
}

export const POLICY_NAMES = ['fragmentation', 'binpack', 'spread', 'topology'] as const;

export type PolicyName = (typeof POLICY_NAMES)[number];

/** Hundredths of a GPU as GPUs, for people. */
export function inGpus(cores: number): string {
  return String(Math.round(cores) / CORES_PER_GPU);
}

/** Costs that differ by less are equal: sums of weights carry rounding errors. */
const EQUAL = 1e-6;

/** Negative when the cost (first, second) is less than the other. */
export function compareCosts(first: number, second: number, otherFirst: number, otherSecond: number): number {
  const difference = first - otherFirst;
  if (Math.abs(difference) > EQUAL) return difference;
  const rest = second - otherSecond;
  return Math.abs(rest) > EQUAL ? rest : 0;
}
