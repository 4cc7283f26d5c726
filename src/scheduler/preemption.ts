import type { Booking } from './cluster/bookings.js';
import type { Cluster } from './cluster/cluster.js';
import { needsGpu } from './cluster/demand.js';
import type { ClusterNode } from './cluster/node.js';
import { tryPod } from './cluster/fit-simulation.js';
import type { Victims } from './arguments.js';
import type { PodView } from './pod-view.js';

/**
 * Which pods have to go so that a pod gets its GPUs. The scheduler proposes victims by sums over the node; whether
 * those free the right GPUs only the extender knows. A node keeps the proposal where it does; where it does not, pods
 * of lower priority are added, the lowest first, as few as will do; where not even all of them are enough, the node is
 * left out.
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
      const more = additional(cluster, node, pods, pod, proposal);
      if (more !== null) kept.set(name, { ...proposal, uids: [...proposal.uids, ...more] });
    }
  }
  return kept;
}

/** UIDs beside those proposed; null where nothing helps. */
function additional(
  cluster: Cluster,
  node: ClusterNode,
  pods: ReadonlyMap<string, PodView>,
  pod: PodView,
  proposal: Victims,
): string[] | null {
  const proposed = new Set(proposal.uids);
  const fits = (extra: readonly string[]): boolean => {
    const gone = [...proposed, ...extra].flatMap((uid) => chargesOn(cluster.bookings.get(uid), node.name));
    return tryPod(node, node.without(gone), pod.demand);
  };
  if (fits([])) return [];
  const candidates = cluster
    .podsOn(node.name)
    .filter(
      (uid) => !proposed.has(uid) && uid !== pod.uid && chargesOn(cluster.bookings.get(uid), node.name).length > 0,
    )
    .map((uid) => ({ uid, priority: pods.get(uid)?.priority ?? 0 }))
    .filter(({ priority }) => priority < pod.priority)
    .sort((a, b) => a.priority - b.priority || (a.uid < b.uid ? -1 : 1))
    .map(({ uid }) => uid);
  const needed = candidates.findIndex((_, at) => fits(candidates.slice(0, at + 1)));
  if (needed < 0) return null;
  // Those taken before the last one may turn out not to be needed; the most important are spared first.
  let extra = candidates.slice(0, needed + 1);
  for (const uid of [...extra].reverse()) {
    const without = extra.filter((other) => other !== uid);
    if (fits(without)) extra = without;
  }
  return extra;
}

function chargesOn(booking: Booking | undefined, node: string): Booking['charges'] {
  return booking?.pod.nodeName === node ? booking.charges : [];
}
