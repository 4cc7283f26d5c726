/**
 * Which pods and containers are over, and which run, whatever the kubelet remembers: its checkpoint names pods that are
 * over until it admits the next one, and names none after the file was lost.
 */
import type { Allocation } from '../../gpu/ledger/allocation.js';
import type { Holder } from '../../gpu/ledger/identify.js';
import type { PodEvidence, PodKnowledge, PodRemains } from './ports.js';

/**
 * UIDs of pods that are over although the kubelet's checkpoint names them: pod-resources does not list them, the API
 * server does not have them, and nothing of them runs. Without a word of the API server nothing at all may be left of
 * them, since a container that is about to start again does not run either.
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
 * Those of the allocations whose container runs, or a container that shares the allocation with it. Processes of a pod
 * that the API server does not have any more may be those of its sandbox: there the runtime has to name the container.
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

/** Whether this container runs, or any of the pod, as far as that can be told. */
function mayRun({ running, any }: PodRemains, container?: string): boolean {
  if (running === null) return any;
  return container === undefined ? running.size > 0 : running.has(container);
}
