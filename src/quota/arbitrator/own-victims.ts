import { of } from '../../manifests/quantities.js';
import type { NodeRoom } from './node-room.js';
import { byEvictionOrder, type RunningPod } from './running-pod.js';
import { shortOn, withoutUnneeded } from './victim-set.js';
import type { WaitingPod } from './waiting-pod.js';

/**
 * Finds pods of the waiting pod's own consumer on a node that make room for it: only those of lower priority than
 * `takesBelow`, the least important and youngest first, and no more than needed. Null if they do not suffice. Pods that
 * have not started are no victims: their priority is not known yet.
 */
export function ownVictims(
  room: NodeRoom,
  pod: WaitingPod,
  allowed: ReadonlyMap<string, number>,
): readonly RunningPod[] | null {
  const { takesBelow = -Infinity } = pod;
  const short = shortOn(room, pod);
  const candidates = [...room.staying]
    .filter(
      ({ consumer, priority, startedAt, uses, isProtected, isDeferred }) =>
        consumer === pod.consumer &&
        priority < takesBelow &&
        startedAt !== null &&
        isProtected !== true &&
        isDeferred !== true &&
        short.some((resource) => of(uses, resource) > 0),
    )
    .sort(byEvictionOrder);
  const chosen = new Set<RunningPod>();
  const left = new Map(allowed);
  for (const candidate of candidates) {
    if (room.fits(pod, chosen)) break;
    const { budgets = [] } = candidate;
    if (budgets.some((budget) => (left.get(budget) ?? 0) < 1)) continue;
    for (const budget of budgets) left.set(budget, (left.get(budget) ?? 0) - 1);
    chosen.add(candidate);
  }
  return chosen.size > 0 && room.fits(pod, chosen) ? withoutUnneeded(room, pod, chosen) : null;
}
