import type { ContainerDemand } from '../gpu/pods/pod-demand.js';
import { CORES_PER_GPU } from '../gpu/resources.js';
import type { Cluster } from '../cluster/placement/cluster.js';
import type { Demand } from '../cluster/placement/demand.js';
import { tryPod } from '../cluster/placement/fit-simulation.js';
import type { ClusterNode } from '../cluster/placement/node.js';
import type { PodView } from '../cluster/pod-view.js';

/** A node that a member of a group may get if all pods of lower priority on it are evicted. */
export interface EvictionNode {
  readonly node: ClusterNode;
  /** Priorities of the pods that would be evicted, the highest first. */
  readonly priorities: readonly number[];
}

/** What the search for such nodes depends on. */
export interface GroupPreemptionState {
  readonly cluster: Pick<Cluster, 'nodes' | 'podsOn' | 'placedPods'>;
  /** Pods with GPUs, by UID. */
  readonly pods: ReadonlyMap<string, PodView>;
  /** By UID of a member of the group: the node that it was offered in this search. */
  readonly members: ReadonlyMap<string, string | null>;
}

/**
 * The nodes of `names` for a member of a group while kube-scheduler searches victims for the group (Kubernetes 1.36 and
 * later). It assumes that all pods of lower priority are gone, filters the members again without telling so, and spares
 * by sums over each node the victims that are not needed. The search is visible where a node is offered although the
 * pods on it and the member request more cores than it has.
 *
 * A node is left out where the scheduler could spare a pod whose GPUs are needed: it would evict others in vain.
 */
export function nodesOfVictims(
  state: GroupPreemptionState,
  pod: PodView,
  names: readonly string[],
): readonly EvictionNode[] {
  return names.flatMap((name) => {
    const node = state.cluster.nodes.get(name);
    const found = node === undefined ? null : evictionNode(state, pod, node);
    return found ?? [];
  });
}

function evictionNode(
  { cluster, pods, members }: GroupPreemptionState,
  pod: PodView,
  node: ClusterNode,
): EvictionNode | null {
  const placedPods = cluster.podsOn(node.name).flatMap((uid) => cluster.placedPods.get(uid) ?? []);
  const capacity = node.shape.gpus.length * CORES_PER_GPU * (node.shape.suspendFactor ?? 1);
  const requested = placedPods.reduce((sum, { pod: { demand } }) => sum + coresOf(demand), 0);
  if (requested + coresOf(pod.demand) <= capacity) return null;
  const victims = placedPods.filter(({ pod: { uid } }) => (pods.get(uid)?.priority ?? 0) < pod.priority);
  if (victims.length === 0) return null;
  const free = node.without(
    victims.flatMap(({ charges }) => charges),
    pod.demand,
  );
  const before = [...free.cores];
  const others = [...members].flatMap(([uid, name]) =>
    name === node.name && uid !== pod.uid ? (pods.get(uid)?.demand ?? []) : [],
  );
  const asked = [...others, pod.demand];
  if (!asked.every((demand) => tryPod(node, free, demand))) return null;
  const taken = victims.map(({ pod: { demand } }) => coresOf(demand));
  const kept = requested - sum(taken) + sum(asked.map(coresOf));
  const isNoneSpared = kept + Math.min(...taken) > capacity;
  const isWhole = (cores: number): boolean => cores % CORES_PER_GPU === 0;
  const areAllWhole = [...taken, ...asked.map(coresOf), ...before].every(isWhole);
  if (!isNoneSpared && !areAllWhole) return null;
  const priorities = victims.map(({ pod: { uid } }) => pods.get(uid)?.priority ?? 0);
  return { node, priorities: priorities.sort((a, b) => b - a) };
}

/** The nodes whose victims matter the least: the least important highest one, then the fewest. */
export function leastVictims(nodes: readonly EvictionNode[]): readonly ClusterNode[] {
  const compare = (a: EvictionNode, b: EvictionNode): number =>
    (a.priorities[0] ?? 0) - (b.priorities[0] ?? 0) || a.priorities.length - b.priorities.length;
  const [least] = nodes.toSorted(compare);
  return nodes.filter((each) => least !== undefined && compare(each, least) === 0).map(({ node }) => node);
}

function coresOf({ containers, init }: Demand): number {
  const all = ({ cores, gpus = 1 }: ContainerDemand): number => cores * gpus;
  return Math.max(0, ...init.map(all), sum(containers.map(all)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
