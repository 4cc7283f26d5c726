/**
 * Decides which pods have ended and which run. The kubelet alone cannot tell: its checkpoint names ended pods until it
 * admits the next one, and names no pod after the file was lost.
 */
import type { Allocation } from '../../gpu/ledger/allocation.js';
import type { Holder } from '../../gpu/ledger/identify.js';
import type { PodEvidence, PodKnowledge, PodRemains } from './ports.js';

/**
 * UIDs of pods that have ended although the kubelet's checkpoint names them: pod-resources does not list them, the API
 * server does not have them, and no process of them runs. If the API server gives no answer, no container of the pod
 * may be left either, since a container between two runs has no process.
 */
export async function podsGone(
  holders: readonly Holder[],
  pods: Pick<PodKnowledge, 'exists' | 'ask'>,
  evidence: PodEvidence,
): Promise<ReadonlySet<string>> {
  const listed = new Set(holders.filter(({ isListed }) => isListed).map(({ container }) => container.podUid));
  const doubtful = new Set(
    holders.map(({ container }) => container.podUid).filter((podUid) => podUid !== '' && !listed.has(podUid)),
  );
  await pods.ask(doubtful);
  const unconfirmed = new Set([...doubtful].filter((podUid) => pods.exists(podUid) !== true));
  const remaining = await evidence.remainsOf(unconfirmed);
  const isOver = (podUid: string): boolean => {
    const remains = remaining.get(podUid) ?? null;
    return pods.exists(podUid) === false ? remains === null || !mayRun(remains) : remains?.any === false;
  };
  return new Set([...unconfirmed].filter(isOver));
}

/**
 * The allocations with at least one running container. If the API server no longer has the pod, its processes may
 * belong to the pod's sandbox, so the runtime has to name the running container.
 */
export async function runningOf(
  allocations: readonly Allocation[],
  pods: Pick<PodKnowledge, 'exists'>,
  evidence: PodEvidence,
): Promise<Allocation[]> {
  const podUids = allocations.flatMap(({ owners }) => owners.map(({ podUid }) => podUid)).filter((uid) => uid !== '');
  const remaining = await evidence.remainsOf(new Set(podUids));
  const runs = ({ podUid, container }: Allocation['owners'][number]): boolean => {
    const remains = remaining.get(podUid) ?? null;
    if (remains === null || (remains.running === null && pods.exists(podUid) === false)) return false;
    return mayRun(remains, container);
  };
  return allocations.filter(({ owners }) => owners.some(runs));
}

/** The holder with what its pod says about suspension. */
export function withPodsWord(holder: Holder, pods: Pick<PodKnowledge, 'isSuspendable'>): Holder {
  const isSuspendable = pods.isSuspendable(holder.container.podUid);
  return isSuspendable === null ? holder : { ...holder, isSuspendable };
}

/** Whether this container runs, or any container of the pod, as far as that is known. */
function mayRun({ running, any }: PodRemains, container?: string): boolean {
  if (running === null) return any;
  return container === undefined ? running.size > 0 : running.has(container);
}
