import type { NodePod } from './node-pod.js';
import type { KubeClient } from '../../kube/client.js';
import { annotatePod, deletePod, evictPod, type PodName } from '../../kube/pod-writes.js';
import type { WorkQueue, WorkResult } from '../../kube/work-queue.js';

/** One Pod object of the API server, and no later one with the same name. */
export type PodRef = Pick<NodePod, 'namespace' | 'name' | 'objectUid'>;

interface Wanted {
  readonly pod: PodRef;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Writes annotations and deletes pods in the background. */
export class PodWriter {
  readonly #client: KubeClient;
  readonly #queue: WorkQueue;
  /** Annotations that are not written yet, by UID. */
  readonly #wanted = new Map<string, Wanted>();

  constructor(client: KubeClient, queue: WorkQueue) {
    this.#client = client;
    this.#queue = queue;
  }

  /** Sets these annotations; several calls for one pod may become one write. */
  annotate(pod: PodRef, annotations: Readonly<Record<string, string>>): void {
    const waiting = this.#wanted.get(pod.objectUid);
    const wanted: Wanted = { pod, annotations: { ...waiting?.annotations, ...annotations } };
    this.#queue.put(`annotate ${pod.objectUid}`, {
      attempt: () => annotatePod(this.#client, nameOf(wanted.pod), wanted.annotations),
      ended: () => {
        if (this.#wanted.get(pod.objectUid) === wanted) this.#wanted.delete(pod.objectUid);
      },
    });
    this.#wanted.set(pod.objectUid, wanted);
  }

  /** Deletes this pod, and no other pod of its name. */
  delete(pod: PodRef): void {
    this.#queue.put(`delete ${pod.objectUid}`, { attempt: () => deletePod(this.#client, nameOf(pod)) });
  }

  /** Evicts this pod: unlike a deletion, a disruption budget may forbid it. Such a write is not retried. */
  evict(pod: PodRef): void {
    this.#queue.put(`evict ${pod.objectUid}`, {
      attempt: async (): Promise<WorkResult> => {
        // Servers before 1.22 have only the older version, and answer that they do not know the newer one.
        let answer = await evictPod(this.#client, nameOf(pod), 'policy/v1');
        if (!answer.ok && answer.code === 'invalid')
          answer = await evictPod(this.#client, nameOf(pod), 'policy/v1beta1');
        if (answer.ok) return 'done';
        return answer.code === 'not-found' || answer.code === 'conflict' || answer.code === 'too-many-requests'
          ? 'gone'
          : answer;
      },
    });
  }
}

function nameOf({ namespace, name, objectUid }: PodRef): PodName {
  return { namespace, name, uid: objectUid };
}
