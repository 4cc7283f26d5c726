import type { NodePod } from './node-pod.js';
import { podPath } from '../../kube/api-path.js';
import { MERGE_PATCH, type KubeAnswer, type KubeClient } from '../../kube/client.js';
import type { WriteQueue, WriteResult } from '../../kube/write-queue.js';

/** One object called Pod at the API server; not a later one of the same name. */
export type PodRef = Pick<NodePod, 'namespace' | 'name' | 'objectUid'>;

interface Wanted {
  readonly pod: PodRef;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Writes annotations and deletes pods, in its own time; the caller goes on at once. */
export class PodWriter {
  readonly #client: KubeClient;
  readonly #queue: WriteQueue;
  /** What has not been written yet, by UID. */
  readonly #wanted = new Map<string, Wanted>();

  constructor(client: KubeClient, queue: WriteQueue) {
    this.#client = client;
    this.#queue = queue;
  }

  /** Sets these annotations; several calls for one pod become one write. */
  annotate(pod: PodRef, annotations: Readonly<Record<string, string>>): void {
    const waiting = this.#wanted.get(pod.objectUid);
    const wanted: Wanted = { pod, annotations: { ...waiting?.annotations, ...annotations } };
    this.#queue.put(`annotate ${pod.objectUid}`, {
      attempt: () => this.#patch(wanted),
      ended: () => {
        if (this.#wanted.get(pod.objectUid) === wanted) this.#wanted.delete(pod.objectUid);
      },
    });
    this.#wanted.set(pod.objectUid, wanted);
  }

  /** Deletes this pod and no other of its name. */
  delete(pod: PodRef): void {
    this.#queue.put(`delete ${pod.objectUid}`, {
      attempt: async (): Promise<WriteResult> => {
        const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: pod.objectUid } };
        const answer = await this.#client.request({ method: 'DELETE', path: podPath(pod.namespace, pod.name), body });
        if (answer.ok) return 'done';
        return answer.code === 'not-found' || answer.code === 'conflict' ? 'gone' : answer;
      },
    });
  }

  /** Has this pod evicted: unlike a deletion, a disruption budget may forbid it. Then it is not asked for again. */
  evict(pod: PodRef): void {
    this.#queue.put(`evict ${pod.objectUid}`, {
      attempt: async (): Promise<WriteResult> => {
        let answer = await this.#evict(pod, 'policy/v1');
        if (!answer.ok && answer.code === 'invalid') answer = await this.#evict(pod, 'policy/v1beta1');
        if (answer.ok) return 'done';
        return answer.code === 'not-found' || answer.code === 'conflict' || answer.code === 'too-many-requests'
          ? 'gone'
          : answer;
      },
    });
  }

  /** Servers before 1.22 know only the older version, and say that they do not know the other. */
  #evict({ namespace, name, objectUid }: PodRef, apiVersion: 'policy/v1' | 'policy/v1beta1'): Promise<KubeAnswer> {
    const body = {
      apiVersion,
      kind: 'Eviction',
      metadata: { name, namespace },
      deleteOptions: { preconditions: { uid: objectUid } },
    };
    return this.#client.request({ method: 'POST', path: `${podPath(namespace, name)}/eviction`, body });
  }

  async #patch({ pod, annotations }: Wanted): Promise<WriteResult> {
    // The uid is a precondition: a pod that took this one's name must not get its GPUs written on it.
    const body = { metadata: { uid: pod.objectUid, annotations } };
    const path = podPath(pod.namespace, pod.name);
    const answer = await this.#client.request({ method: 'PATCH', path, body, contentType: MERGE_PATCH });
    if (answer.ok) return 'done';
    if (answer.code === 'not-found') return 'gone';
    if (answer.code !== 'conflict' && answer.code !== 'invalid') return answer;
    // Servers tell another uid apart from other refusals in different ways: look.
    const current = await this.#client.request({ method: 'GET', path });
    if (!current.ok) return current.code === 'not-found' ? 'gone' : current;
    const { metadata } = (current.body ?? {}) as { readonly metadata?: { readonly uid?: unknown } };
    return metadata?.uid === pod.objectUid ? answer : 'gone';
  }
}
