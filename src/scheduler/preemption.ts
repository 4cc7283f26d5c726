import type { Booking } from './cluster/bookings.js';
import type { Cluster } from './cluster/cluster.js';
import { needsGpu } from './cluster/demand.js';
import type { ClusterNode } from './cluster/node.js';
import { tryPod } from './cluster/fit-simulation.js';
import type { Victims } from './arguments.js';
import type { PodView } from './pod-view.js';

/**
 * Chooses the pods to evict so that a pod gets its GPUs. The scheduler proposes victims by sums over the node; only the
 * extender knows whether they free the right GPUs. If they do not, pods of lower priority are added, the lowest first.
 * Then every unneeded victim is removed from the list, the most important first, as the scheduler itself does. A node
 * is left out if evicting all pods of lower priority would not suffice.
 */
export function preempt(
  cluster: Cluster,
  pods: ReadonlyMap<string, PodView>,
  pod: PodView,
  proposals: ReadonlyMap<string, Victims>,
): Map<string, Victims> {
  const kept = new Map<string, Victims>();
  for (const [name, proposal] of proposals) {
    const node = cluster.nodes.get(name);
    if (!needsGpu(pod.demand)) kept.set(name, proposal);
    else if (node !== undefined && pod.brokenRule === null) {
      const uids = victimsOn(cluster, node, pods, pod, proposal.uids);
      if (uids !== null) kept.set(name, { uids, pdbViolations: Math.min(proposal.pdbViolations, uids.length) });
    }
  }
  return kept;
}

interface Candidate {
  readonly uid: string;
  readonly priority: number;
  readonly isProposed: boolean;
  readonly charges: Booking['charges'];
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
}

/** Victims on one node, proposed ones first; null if no set of victims suffices. */
function victimsOn(
  cluster: Cluster,
  node: ClusterNode,
  pods: ReadonlyMap<string, PodView>,
  pod: PodView,
  proposed: readonly string[],
): readonly string[] | null {
  const { demand } = pod;
  const hasGpus = (gone: readonly Candidate[]): boolean =>
    tryPod(node, node.without(gone.flatMap(({ charges }) => charges)), demand);
  // The GPUs are free already: the scheduler proposed the victims for a reason that is unknown here.
  if (hasGpus([])) return proposed;
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
  const enough = [...others.keys(), others.length].find((count) => hasGpus([...given, ...others.slice(0, count)]));
  if (enough === undefined) return null;
  // The eviction of any pod of the same priority may make the eviction of the others unnecessary.
  const last = others[enough - 1]?.priority ?? -Infinity;
  const all = [...given, ...others.filter(({ priority }, at) => at < enough || priority === last)];
  /** CPU and host memory that the proposal frees must also be free with fewer victims. */
  const hasHost = (gone: readonly Candidate[]): boolean => {
    const sum = (of: (candidate: Candidate) => number) => gone.reduce((total, candidate) => total + of(candidate), 0);
    return (
      node.free.cpuMilli + sum(({ cpuMilli }) => cpuMilli) >= demand.cpuMilli &&
      node.free.hostMemoryBytes + sum(({ hostMemoryBytes }) => hostMemoryBytes) >= demand.hostMemoryBytes
    );
  };
  const needsHost = hasHost(all);
  const suffices = (gone: readonly Candidate[]): boolean => hasGpus(gone) && (!needsHost || hasHost(gone));
  const found = sparingOrders(all).map((order) => spare(all, order, suffices));
  const best = found.reduce((least, other) => (compareVictims(other, least) < 0 ? other : least));
  return best.map(({ uid }) => uid);
}

/**
 * Orders in which victims are spared: always the more important first. Of equally important ones, first those that
 * share a GPU with the most others, so that a GPU with few pods is emptied; or by ascending or descending name.
 */
function sparingOrders(all: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const neighbours = (candidate: Candidate): number =>
    all.filter((other) =>
      other.charges.some(({ position }) => candidate.charges.some((own) => own.position === position)),
    ).length;
  const size = ({ charges }: Candidate): number => charges.reduce((sum, { cores }) => sum + cores, 0);
  const byName = (a: Candidate, b: Candidate): number => (a.uid < b.uid ? -1 : 1);
  const tieBreakers: ((a: Candidate, b: Candidate) => number)[] = [
    (a, b) => neighbours(b) - neighbours(a) || byName(a, b),
    (a, b) => size(a) - size(b) || byName(a, b),
    byName,
    (a, b) => byName(b, a),
  ];
  return tieBreakers.map((breakTie) => [...all].sort((a, b) => b.priority - a.priority || breakTie(a, b)));
}

function spare(
  all: readonly Candidate[],
  order: readonly Candidate[],
  suffices: (gone: readonly Candidate[]) => boolean,
): readonly Candidate[] {
  let victims = all;
  for (const candidate of order) {
    const without = victims.filter((other) => other !== candidate);
    if (suffices(without)) victims = without;
  }
  return victims;
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
