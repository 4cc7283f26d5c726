import { compareCosts, type Policy } from '../../src/cluster/placement/policy/policy.js';
import { policyOf } from '../../src/cluster/placement/policy/policies.js';
import { Cluster } from '../../src/cluster/placement/cluster.js';
import type { Demand } from '../../src/cluster/placement/demand.js';
import { sumCores, type ClusterNode, type NodeShape } from '../../src/cluster/placement/node.js';
import { CORES_PER_GPU } from '../../src/gpu/resources.js';
import { randomIndex, seededRandom, shuffled, type Random } from './random.js';
import { chooseByScheduler, type ScoringStrategy } from './scheduler-score.js';
import { coresOf } from './trace.js';

/** Loads at which the published figures are given, in percent of the cluster's GPUs requested. */
export const LOADS = [50, 80, 90, 95, 100, 105, 110, 120, 130] as const;

export type ReplayPolicy = 'fragmentation' | 'binpack' | 'spread' | 'topology' | 'best-fit' | 'random';

/**
 * Best fit as in the published comparison: half the free CPU of 128, half the free GPUs of 8 after placement, in whole
 * hundredths.
 */
const bestFit: Policy = {
  name: 'binpack',
  usesMix: false,
  inWords: ({ primary }) => `best fit ${-primary}`,
  judge: () => ({
    cost: (_node, after) => {
      const left = (0.5 * after.cpuMilli) / 128_000 + (0.5 * sumCores(after)) / (8 * CORES_PER_GPU);
      return { primary: -Math.floor(100 * (1 - left)), tieBreak: 0 };
    },
  }),
};

/**
 * One run of the trace's protocol: pods never end; the list in random order, then pods drawn from it at random until
 * the requested GPUs are `load` percent of the cluster's; each is placed or skipped. Returns the allocated GPUs in
 * percent of the cluster's as the load passes each of `LOADS`. The policy learns its mix while the pods arrive and
 * starts without one. With `scheduler` kube-scheduler alone places the pods without GPUs, as it does where the extender
 * gets only pods with GPUs.
 */
export function replay(
  nodes: readonly NodeShape[],
  demands: readonly Demand[],
  policy: ReplayPolicy,
  seed: number,
  load: number,
  scheduler: ScoringStrategy | null = null,
): number[] {
  const random = seededRandom(seed);
  const cluster = new Cluster(policy === 'best-fit' || policy === 'random' ? bestFit : policyOf(policy));
  for (const node of nodes) cluster.setNode(node);
  const names = nodes.map((node) => node.name);
  const capacity = nodes.reduce((sum, node) => sum + node.gpus.length, 0) * CORES_PER_GPU;
  const pods = podsOf(random, demands, (capacity * load) / 100);
  const choices = seededRandom(seed + 1_000_003);

  const allocation: number[] = [];
  let asked = 0;
  let allocated = 0;
  for (const [at, demand] of pods.entries()) {
    cluster.observe(demand);
    asked += coresOf(demand);
    const { fits } = cluster.evaluate(demand, names, { host: true });
    const allowed = demand.selector.terms === null ? fits : fits.filter((node) => allows(demand, node));
    const node =
      scheduler !== null && demand.containers.length === 0
        ? chooseByScheduler(demand, allowed, scheduler, choices)
        : policy === 'random'
          ? (allowed[randomIndex(choices, allowed.length)] ?? null)
          : chooseNode(cluster, demand, allowed, policy, choices);
    if (node !== null) {
      book(cluster, `pod-${at}`, demand, node, policy === 'random' ? choices : null);
      allocated += coresOf(demand);
    }
    while (allocation.length < LOADS.length && asked >= ((LOADS[allocation.length] as number) / 100) * capacity) {
      allocation.push((allocated / capacity) * 100);
    }
  }
  return allocation;
}

function podsOf(random: Random, demands: readonly Demand[], wanted: number): Demand[] {
  const pods: Demand[] = [];
  let asked = 0;
  const order = shuffled(random, demands);
  while (asked < wanted) {
    const demand = order[pods.length] ?? demands[randomIndex(random, demands.length)];
    if (demand === undefined) throw new Error('the list holds no pod');
    pods.push(demand);
    asked += coresOf(demand);
  }
  return pods;
}

function allows(demand: Demand, node: ClusterNode): boolean {
  return (
    demand.selector.terms?.some((term) =>
      term.labels.every(({ key, values }) => values.includes(node.shape.labels[key] ?? '')),
    ) ?? true
  );
}

/**
 * Best fit chooses among equal nodes at random: its scores are coarse, and the first node every time would be another
 * policy.
 */
function chooseNode(
  cluster: Cluster,
  demand: Demand,
  nodes: readonly ClusterNode[],
  policy: ReplayPolicy,
  random: Random,
): ClusterNode | null {
  const cheapest = cluster.cheapest(demand, nodes);
  if (cheapest === null || policy !== 'best-fit') return cheapest;
  const { primary, tieBreak } = cluster.costs(demand, nodes);
  const least = nodes.indexOf(cheapest);
  const equal = nodes.filter(
    (_, at) =>
      compareCosts(
        primary[at] as number,
        tieBreak[at] as number,
        primary[least] as number,
        tieBreak[least] as number,
      ) === 0,
  );
  return equal[randomIndex(random, equal.length)] ?? cheapest;
}

function book(cluster: Cluster, uid: string, demand: Demand, node: ClusterNode, random: Random | null): void {
  const part = demand.containers.find(({ cores }) => cores < CORES_PER_GPU);
  if (random === null || part === undefined) {
    const placed = cluster.decide(uid, node.name, demand);
    if (!placed.ok) throw new Error(`${node.name} was said to have room: ${placed.reason}`);
    return;
  }
  const fitting = [...node.shape.gpus.keys()].filter((at) => (node.free.cores[at] as number) >= part.cores);
  const index = fitting[randomIndex(random, fitting.length)] as number;
  cluster.setPod({ uid, nodeName: node.name, demand, gpus: [{ container: part.container, indexes: [index] }] });
}
