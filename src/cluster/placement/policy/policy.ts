import { CORES_PER_GPU } from '../../../gpu/resources.js';
import type { Demand } from '../demand.js';
import type { ClusterNode, FreeState } from '../node.js';
import type { TypicalMix } from '../typical-mix.js';

/** The cost of placing a pod on a node; lower is better. `tieBreak` decides between nodes of equal `primary`. */
export interface PlacementCost {
  readonly primary: number;
  readonly tieBreak: number;
}

/** Rates nodes that a pod fits on, for one mix of typical requests. */
export interface Judge {
  /**
   * `after` is the node's free state once the pod is placed; the node itself is in the state before. The cost depends
   * only on node, demand and mix, so callers may cache it while none of them changes.
   */
  cost(node: ClusterNode, after: FreeState, demand: Demand): PlacementCost;
}

/** A way to prefer nodes. */
export interface Policy {
  readonly name: PolicyName;
  /** True when costs depend on the mix: a new mix invalidates cached costs. */
  readonly usesMix: boolean;
  /** `nodes` are the cluster's nodes in their state when the mix is made. */
  judge(mix: TypicalMix, nodes: Iterable<ClusterNode>): Judge;
  /** The cost in words. */
  inWords(cost: PlacementCost): string;
}

export const POLICY_NAMES = ['fragmentation', 'binpack', 'spread', 'topology'] as const;

export type PolicyName = (typeof POLICY_NAMES)[number];

/** Cores as a number of GPUs, for messages. */
export function inGpus(cores: number): string {
  return String(Math.round(cores) / CORES_PER_GPU);
}

/** Costs that differ by less than this are equal: sums of weights have rounding errors. */
const EQUAL = 1e-6;

/** Negative when the first of two costs is lower. */
export function compareCosts(primary: number, tieBreak: number, otherPrimary: number, otherTieBreak: number): number {
  const difference = primary - otherPrimary;
  if (Math.abs(difference) > EQUAL) return difference;
  const rest = tieBreak - otherTieBreak;
  return Math.abs(rest) > EQUAL ? rest : 0;
}
