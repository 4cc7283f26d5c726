import type { PlacedPod } from './placement/placed-pods.js';
import type { Cluster } from './placement/cluster.js';
import { needsGpu } from './placement/demand.js';
import type { ClusterNode } from './placement/node.js';
import type { Pace, Turns } from './placement/pace.js';
import { EvictionCount, type EvictionLimit, type EvictionLimits } from './eviction-limits.js';
import { EvictionSimulation, type Freed } from './placement/eviction-simulation.js';
import type { PodView } from './pod-view.js';

/** Pods that must be evicted so that the pod fits on a node. */
export interface Victims {
  readonly uids: readonly string[];
  readonly pdbViolations: number;
}

/** The input of a decision about preemption. */
export interface PreemptionState {
  readonly cluster: Cluster;
  /** Pods with GPUs, by UID. */
  readonly pods: ReadonlyMap<string, PodView>;
  readonly limits: EvictionLimits;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * Chooses the pods to evict so that a pod gets its GPUs. The scheduler proposes victims by sums over the node; only the
 * extender knows whether they free the right GPUs. If they do not, pods of lower priority are added: first those whose
 * eviction violates no disruption budget and leaves no pod group below its minimum, of these the lowest first. Then
 * every unneeded victim is removed from the list: first those beyond such a limit, then the most important first, as
 * the scheduler itself does. Pods that are about to end count as victims that cost nothing. A node is left out if
 * evicting all pods of lower priority would not suffice, or if there was no time for it.
 */
export function* preempt(
  state: PreemptionState,
  pod: PodView,
  proposals: ReadonlyMap<string, Victims>,
  pace: Pace,
): Turns<Map<string, Victims>> {
  const kept = new Map<string, Victims>();
  for (const [name, proposal] of proposals) {
    const node = state.cluster.nodes.get(name);
    if (!needsGpu(pod.demand)) kept.set(name, proposal);
    else if (node !== undefined && pod.brokenRule === null) {
      const victims = yield* victimsOn(state, node, pod, proposal, pace);
      if (victims !== null) kept.set(name, victims);
    }
  }
  return kept;
}

interface Candidate extends Freed {
  readonly uid: string;
  readonly priority: number;
  readonly isProposed: boolean;
  /** Whether it ends soon without an eviction. */
  readonly isEnding: boolean;
  readonly limits: readonly EvictionLimit[];
}

/**
 * A pod that is being deleted is waited for if its grace period ends within this time. If it ended longer ago, its
 * node does not remove the pod, and the time of its end is unknown.
 */
const ENDS_WITHIN_MS = 60_000;

/** Victims on one node, proposed ones first; null if no set of victims suffices, or none was found in time. */
function* victimsOn(
  { cluster, pods, limits, nowMs }: PreemptionState,
  node: ClusterNode,
  pod: PodView,
  proposal: Victims,
  pace: Pace,
): Turns<Victims | null> {
  if (pace.isTurnOver()) yield;
  if (pace.isSpent()) return null;
  const simulation = new EvictionSimulation(node, pod.demand);
  // The GPUs are free already: the scheduler proposed the victims for a reason that is unknown here.
  if (simulation.hasGpus()) return proposal;
  const proposed = new Set(proposal.uids);
  const candidateOf = (uid: string): Candidate => {
    const placedPod = cluster.placedPods.get(uid);
    const view = pods.get(uid);
    return {
      uid,
      priority: view?.priority ?? 0,
      isProposed: proposed.has(uid),
      isEnding: (view?.leaving ?? false) && Math.abs((view?.endsBy ?? nowMs) - nowMs) <= ENDS_WITHIN_MS,
      limits: view === undefined ? [] : limits.of(view),
      charges: chargesOn(placedPod, node.name),
      cpuMilli: placedPod?.pod.demand.cpuMilli ?? 0,
      hostMemoryBytes: placedPod?.pod.demand.hostMemoryBytes ?? 0,
    };
  };
  const others = cluster
    .podsOn(node.name)
    .filter((uid) => !proposed.has(uid) && uid !== pod.uid)
    .map(candidateOf)
    .filter(({ charges }) => charges.length > 0);
  const given = [...proposal.uids.map(candidateOf), ...others.filter(({ isEnding }) => isEnding)];
  for (const candidate of given) simulation.add(candidate);
  const { within, beyond } = byLimits(
    given,
    others.filter(({ isEnding, priority }) => !isEnding && priority < pod.priority),
  );
  const further = [...within, ...beyond];
  let enough = 0;
  while (!simulation.hasGpus()) {
    if (pace.isTurnOver()) yield;
    if (pace.isSpent()) return null;
    const next = further[enough++];
    if (next === undefined) return null;
    simulation.add(next);
  }
  const all = [...given, ...alternatives(given, within, beyond, enough)];
  let best: readonly Candidate[] | null = null;
  for (const order of sparingOrders(all)) {
    const found = yield* spare(new EvictionSimulation(node, pod.demand, all), order, pace);
    if (found !== null && (best === null || compareVictims(found, best) < 0)) best = found;
  }
  if (best === null) return null;
  const kept = new Set(best);
  const victims = all.filter((candidate) => kept.has(candidate));
  return { uids: victims.map(({ uid }) => uid), pdbViolations: violationsOf(victims, proposal, given, pods, limits) };
}

/** Candidates beside the given ones, each by priority: those within all limits, and those that would exceed one. */
function byLimits(
  given: readonly Candidate[],
  others: readonly Candidate[],
): { readonly within: readonly Candidate[]; readonly beyond: readonly Candidate[] } {
  const count = countOf(given);
  const within: Candidate[] = [];
  const beyond: Candidate[] = [];
  for (const candidate of [...others].sort((a, b) => a.priority - b.priority || (a.uid < b.uid ? -1 : 1))) {
    count.add(candidate.limits);
    if (count.exceeds(candidate.limits)) {
      count.remove(candidate.limits);
      beyond.push(candidate);
    } else within.push(candidate);
  }
  return { within, beyond };
}

/**
 * The candidates that are simulated beside the given ones, where the first `enough` of them suffice: those, and all of
 * the same priority as the last one, since the eviction of one may make the eviction of others unnecessary. If the
 * victims exceed a limit, all candidates, so that others can replace them.
 */
function alternatives(
  given: readonly Candidate[],
  within: readonly Candidate[],
  beyond: readonly Candidate[],
  enough: number,
): readonly Candidate[] {
  const further = [...within, ...beyond];
  const last = further[enough - 1]?.priority ?? -Infinity;
  const count = countOf([...given, ...further.slice(0, enough)]);
  return count.violations() > 0 ? further : within.filter(({ priority }, at) => at < enough || priority === last);
}

/**
 * What the scheduler compares nodes by: evictions beyond a budget or below the minimum of a group. Of proposed pods
 * that are not known here, as many violate a budget as the scheduler counted more than is known.
 */
function violationsOf(
  victims: readonly Candidate[],
  { uids, pdbViolations }: Victims,
  given: readonly Candidate[],
  pods: ReadonlyMap<string, PodView>,
  { knowsBudgets }: EvictionLimits,
): number {
  const own = countOf(victims);
  if (!knowsBudgets) return Math.min(pdbViolations, victims.length) + own.violations('group');
  const ofKnown = countOf(given.filter(({ isProposed }) => isProposed)).violations('budget');
  const unknown = uids.filter((uid) => !pods.has(uid) && victims.some((victim) => victim.uid === uid)).length;
  return own.violations() + Math.min(unknown, Math.max(0, pdbViolations - ofKnown));
}

/**
 * Orders in which victims are spared: always the more important first, and pods that end anyway last. Of equally
 * important ones, first those that share a GPU with the most others, so that a GPU with few pods is emptied; or by
 * ascending or descending name. If a limit is exceeded, also GPU by GPU, first those
 * whose pods exceed limits the most.
 */
function sparingOrders(all: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const count = countOf(all);
  const isLimited = count.violations() > 0;
  const neighbours = new Map(all.map((candidate) => [candidate, neighboursOf(candidate, all)]));
  const beyond = new Map([...neighbours].map(([candidate, those]) => [candidate, countOf(those).violations()]));
  const size = ({ charges }: Candidate): number => charges.reduce((sum, { cores }) => sum + cores, 0);
  const shared = (candidate: Candidate): number => neighbours.get(candidate)?.length ?? 0;
  /** How many pods of the GPU are selected by an exceeded limit. */
  const crowd = (candidate: Candidate): number =>
    neighbours.get(candidate)?.filter(({ limits }) => count.exceeds(limits)).length ?? 0;
  /** How far the pods of the GPU alone exceed limits. */
  const limited = (candidate: Candidate): number => beyond.get(candidate) ?? 0;
  const byName: Comparison = (a, b) => (a.uid < b.uid ? -1 : 1);
  const byPriority: Comparison = (a, b) => b.priority - a.priority;
  const orders: Comparison[] = [
    (a, b) => byPriority(a, b) || shared(b) - shared(a) || byName(a, b),
    (a, b) => byPriority(a, b) || size(a) - size(b) || byName(a, b),
    (a, b) => byPriority(a, b) || byName(a, b),
    (a, b) => byPriority(a, b) || byName(b, a),
  ];
  if (isLimited)
    orders.push(
      (a, b) => limited(b) - limited(a) || shared(b) - shared(a) || byPriority(a, b) || byName(a, b),
      (a, b) => crowd(b) - crowd(a) || limited(b) - limited(a) || byPriority(a, b) || byName(a, b),
    );
  return orders.map((order) => [...all].sort((a, b) => Number(a.isEnding) - Number(b.isEnding) || order(a, b)));
}

type Comparison = (a: Candidate, b: Candidate) => number;

/** The candidates that share a GPU with this one, itself included. */
function neighboursOf(candidate: Candidate, all: readonly Candidate[]): readonly Candidate[] {
  return all.filter((other) =>
    other.charges.some(({ position }) => candidate.charges.some((own) => own.position === position)),
  );
}

/**
 * The victims that remain when each that is not needed is spared; all are evicted in the simulation. Those beyond a
 * limit are spared first, as long as it is exceeded; the others in the order. Null if the time did not suffice.
 */
function* spare(
  simulation: EvictionSimulation,
  order: readonly Candidate[],
  pace: Pace,
): Turns<readonly Candidate[] | null> {
  // CPU and host memory that the proposal frees must also be free with fewer victims.
  const needsHost = simulation.hasHost();
  const count = countOf(order);
  const decided = new Set<Candidate>();
  const needed: Candidate[] = [];
  for (const isTurnOfLimited of [true, false])
    for (const candidate of order) {
      if (decided.has(candidate) || (isTurnOfLimited && !count.exceeds(candidate.limits))) continue;
      if (pace.isTurnOver()) yield;
      if (pace.isSpent()) return null;
      decided.add(candidate);
      simulation.remove(candidate);
      if (simulation.hasGpus() && (!needsHost || simulation.hasHost())) {
        count.remove(candidate.limits);
        continue;
      }
      simulation.add(candidate);
      needed.push(candidate);
    }
  return needed;
}

/**
 * The scheduler's own order: the fewest violations, the least important highest victim, the smallest sum of priorities,
 * the fewest victims. Pods that end anyway cost nothing.
 */
function compareVictims(a: readonly Candidate[], b: readonly Candidate[]): number {
  const running = (victims: readonly Candidate[]) => victims.filter(({ isEnding }) => !isEnding);
  const [first, second] = [running(a), running(b)];
  const highest = (victims: readonly Candidate[]) =>
    victims.reduce((most, { priority }) => Math.max(most, priority), -(2 ** 31));
  /** The scheduler adds an offset, so that one more victim always increases the sum. */
  const sum = (victims: readonly Candidate[]) => victims.reduce((total, { priority }) => total + priority + 2 ** 31, 0);
  const proposed = (victims: readonly Candidate[]) => victims.filter(({ isProposed }) => isProposed).length;
  return (
    countOf(a).violations() - countOf(b).violations() ||
    highest(first) - highest(second) ||
    sum(first) - sum(second) ||
    first.length - second.length ||
    a.length - b.length ||
    proposed(b) - proposed(a)
  );
}

function countOf(victims: readonly Candidate[]): EvictionCount {
  return new EvictionCount(victims.map(({ limits }) => limits));
}

function chargesOn(placedPod: PlacedPod | undefined, node: string): PlacedPod['charges'] {
  return placedPod?.pod.nodeName === node ? placedPod.charges : [];
}
