import type { Booking } from './cluster/bookings.js';
import type { Cluster } from './cluster/cluster.js';
import { needsGpu } from './cluster/demand.js';
import type { ClusterNode } from './cluster/node.js';
import type { Pace, Turns } from './cluster/pace.js';
import type { Victims } from './arguments.js';
import { EvictionSimulation, type Freed } from './eviction-simulation.js';
import type { PodView } from './pod-view.js';

/**
 * Chooses the pods to evict so that a pod gets its GPUs. The scheduler proposes victims by sums over the node; only the
 * extender knows whether they free the right GPUs. If they do not, pods of lower priority are added, the lowest first.
 * Then every unneeded victim is removed from the list, the most important first, as the scheduler itself does. A node
 * is left out if evicting all pods of lower priority would not suffice, or if there was no time for it.
 */
export function* preempt(
  cluster: Cluster,
  pods: ReadonlyMap<string, PodView>,
  pod: PodView,
  proposals: ReadonlyMap<string, Victims>,
  pace: Pace,
): Turns<Map<string, Victims>> {
  const kept = new Map<string, Victims>();
  for (const [name, proposal] of proposals) {
    const node = cluster.nodes.get(name);
    if (!needsGpu(pod.demand)) kept.set(name, proposal);
    else if (node !== undefined && pod.brokenRule === null) {
      const uids = yield* victimsOn(cluster, node, pods, pod, proposal.uids, pace);
      if (uids !== null) kept.set(name, { uids, pdbViolations: Math.min(proposal.pdbViolations, uids.length) });
    }
  }
  return kept;
}

interface Candidate extends Freed {
  readonly uid: string;
  readonly priority: number;
  readonly isProposed: boolean;
}

/** Victims on one node, proposed ones first; null if no set of victims suffices, or none was found in time. */
function* victimsOn(
  cluster: Cluster,
  node: ClusterNode,
  pods: ReadonlyMap<string, PodView>,
  pod: PodView,
  proposed: readonly string[],
  pace: Pace,
): Turns<readonly string[] | null> {
  if (pace.isTurnOver()) yield;
  if (pace.isSpent()) return null;
  const simulation = new EvictionSimulation(node, pod.demand);
  // The GPUs are free already: the scheduler proposed the victims for a reason that is unknown here.
  if (simulation.hasGpus()) return proposed;
  const candidateOf = (uid: string): Candidate => {
    const booking = cluster.bookings.get(uid);
    return {
      uid,
      priority: pods.get(uid)?.priority ?? 0,
      isProposed: proposed.includes(uid),
      charges: chargesOn(booking, node.name),
      cpuMilli: booking?.pod.demand.cpuMilli ?? 0,
      hostMemoryBytes: booking?.pod.demand.hostMemoryBytes ?? 0,
    };
  };
  const others = cluster
    .podsOn(node.name)
    .filter((uid) => !proposed.includes(uid) && uid !== pod.uid)
    .map(candidateOf)
    .filter(({ priority, charges }) => charges.length > 0 && priority < pod.priority)
    .sort((a, b) => a.priority - b.priority || (a.uid < b.uid ? -1 : 1));
  const given = proposed.map(candidateOf);
  for (const candidate of given) simulation.add(candidate);
  let enough = 0;
  while (!simulation.hasGpus()) {
    if (pace.isTurnOver()) yield;
    if (pace.isSpent()) return null;
    const next = others[enough++];
    if (next === undefined) return null;
    simulation.add(next);
  }
  // The eviction of any pod of the same priority may make the eviction of the others unnecessary.
  const last = others[enough - 1]?.priority ?? -Infinity;
  const all = [...given, ...others.filter(({ priority }, at) => at < enough || priority === last)];
  let best: readonly Candidate[] | null = null;
  for (const order of sparingOrders(all)) {
    const found = yield* spare(new EvictionSimulation(node, pod.demand, all), order, pace);
    if (found !== null && (best === null || compareVictims(found, best) < 0)) best = found;
  }
  if (best === null) return null;
  const kept = new Set(best);
  return all.filter((candidate) => kept.has(candidate)).map(({ uid }) => uid);
}

/**
 * Orders in which victims are spared: always the more important first. Of equally important ones, first those that
 * share a GPU with the most others, so that a GPU with few pods is emptied; or by ascending or descending name.
 */
function sparingOrders(all: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const neighbours = new Map(all.map((candidate) => [candidate, neighboursOf(candidate, all)]));
  const size = ({ charges }: Candidate): number => charges.reduce((sum, { cores }) => sum + cores, 0);
  const byName = (a: Candidate, b: Candidate): number => (a.uid < b.uid ? -1 : 1);
  const tieBreakers: ((a: Candidate, b: Candidate) => number)[] = [
    (a, b) => (neighbours.get(b) ?? 0) - (neighbours.get(a) ?? 0) || byName(a, b),
    (a, b) => size(a) - size(b) || byName(a, b),
    byName,
    (a, b) => byName(b, a),
  ];
  return tieBreakers.map((breakTie) => [...all].sort((a, b) => b.priority - a.priority || breakTie(a, b)));
}

/** The candidates of which one shares a GPU with this one, itself included. */
function neighboursOf(candidate: Candidate, all: readonly Candidate[]): number {
  return all.filter((other) =>
    other.charges.some(({ position }) => candidate.charges.some((own) => own.position === position)),
  ).length;
}

/**
 * The victims that remain when each that is not needed is spared in this order; all are evicted in the simulation. Null
 * if the time did not suffice.
 */
function* spare(
  simulation: EvictionSimulation,
  order: readonly Candidate[],
  pace: Pace,
): Turns<readonly Candidate[] | null> {
  // CPU and host memory that the proposal frees must also be free with fewer victims.
  const needsHost = simulation.hasHost();
  const needed: Candidate[] = [];
  for (const candidate of order) {
    if (pace.isTurnOver()) yield;
    if (pace.isSpent()) return null;
    simulation.remove(candidate);
    if (simulation.hasGpus() && (!needsHost || simulation.hasHost())) continue;
    simulation.add(candidate);
    needed.push(candidate);
  }
  return needed;
}

/**
 * The scheduler's own order: the least important highest victim, the smallest sum of priorities, the fewest victims.
 */
function compareVictims(a: readonly Candidate[], b: readonly Candidate[]): number {
  const highest = (victims: readonly Candidate[]) => Math.max(...victims.map(({ priority }) => priority));
  /** The scheduler adds an offset, so that one more victim always increases the sum. */
  const sum = (victims: readonly Candidate[]) => victims.reduce((total, { priority }) => total + priority + 2 ** 31, 0);
  const proposed = (victims: readonly Candidate[]) => victims.filter(({ isProposed }) => isProposed).length;
  return highest(a) - highest(b) || sum(a) - sum(b) || a.length - b.length || proposed(b) - proposed(a);
}

function chargesOn(booking: Booking | undefined, node: string): Booking['charges'] {
  return booking?.pod.nodeName === node ? booking.charges : [];
}
