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
  pods: Pick<PodKnowledge, 'exists'>,
  evidence: PodEvidence,
): Promise<ReadonlySet<string>> {
  const listed = new Set(holders.filter(({ isListed }) => isListed).map(({ container }) => container.podUid));
  const doubtful = new Set(
    holders.map(({ container }) => container.podUid).filter((podUid) => podUid !== '' && !listed.has(podUid)),
  );
  const gone = new Set<string>();
  for (const podUid of doubtful) {
    const exists = pods.exists(podUid);
    if (exists === true) continue;
    const remains = await evidence.remainsOf(podUid);
    const isOver = exists === false ? remains === null || !mayRun(remains) : remains?.any === false;
    if (isOver) gone.add(podUid);
  }
  return gone;
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
  const running: Allocation[] = [];
  for (const allocation of allocations) {
    for (const { podUid, container } of allocation.owners) {
      const remains = podUid === '' ? null : await evidence.remainsOf(podUid);
      if (remains === null || (remains.running === null && pods.exists(podUid) === false)) continue;
      if (mayRun(remains, container)) {
        running.push(allocation);
        break;
      }
    }
  }
  return running;
}

/** Whether this container runs, or any container of the pod, as far as that is known. */
function mayRun({ running, any }: PodRemains, container?: string): boolean {
  if (running === null) return any;
  return container === undefined ? running.size > 0 : running.has(container);
}
