import type { Demand } from '../../src/cluster/placement/demand.js';
import type { ClusterNode } from '../../src/cluster/placement/node.js';
import { randomIndex, type Random } from './random.js';

/** How kube-scheduler's plugin NodeResourcesFit scores nodes; CPU and memory of the host count alike. */
export const SCORING_STRATEGIES = ['least-allocated', 'most-allocated', 'mostly-full'] as const;

export type ScoringStrategy = (typeof SCORING_STRATEGIES)[number];

const FULL = 100;

/** Score of a resource by its utilisation in percent, as the plugin computes it: whole numbers. */
const SCORE: Readonly<Record<ScoringStrategy, (utilisation: number) => number>> = {
  'least-allocated': (utilisation) => FULL - utilisation,
  'most-allocated': (utilisation) => utilisation,
  // RequestedToCapacityRatio with the shape 0: 0, 50: 0, 100: 10.
  'mostly-full': (utilisation) => Math.max(0, 2 * (utilisation - FULL / 2)),
};

/**
 * Where kube-scheduler alone places a pod: the highest sum of NodeResourcesFit and NodeResourcesBalancedAllocation,
 * each with its default weight; a random one of equal nodes. GPUs do not count: the plugins leave out extended
 * resources that the pod does not request.
 */
export function chooseByScheduler(
  demand: Demand,
  nodes: readonly ClusterNode[],
  strategy: ScoringStrategy,
  random: Random,
): ClusterNode | null {
  let best = -1;
  let chosen: ClusterNode[] = [];
  for (const node of nodes) {
    const { shape, free } = node;
    const cpu = 1 - (free.cpuMilli - demand.cpuMilli) / shape.cpuMilli;
    const memory = 1 - (free.hostMemoryBytes - demand.hostMemoryBytes) / shape.hostMemoryBytes;
    const fit = Math.floor((SCORE[strategy](Math.floor(cpu * FULL)) + SCORE[strategy](Math.floor(memory * FULL))) / 2);
    const balanced = Math.floor((1 - Math.abs(cpu - memory) / 2) * FULL);
    const score = fit + balanced;
    if (score < best) continue;
    if (score > best) chosen = [];
    best = score;
    chosen.push(node);
  }
  return chosen[randomIndex(random, chosen.length)] ?? null;
}
