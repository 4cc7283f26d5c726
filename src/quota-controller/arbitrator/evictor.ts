import type { KubeApi } from '../../kube/client.js';
import type { KubeFailure } from '../../kube/failure.js';
import { evictPod } from '../../kube/pod-writes.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { ClusterPod } from './cluster-pod.js';
import type { PodMark } from './cluster-view.js';
import type { ServedPolicy } from './served-policy.js';

/**
 * `evicted`: the pod is leaving or gone. `refused`: a disruption budget does not allow the eviction now. `failed`: the
 * result is unknown.
 */
export type EvictionResult = 'evicted' | 'refused' | 'failed';

export interface EvictorOptions {
  readonly api: KubeApi;
  readonly version: ServedPolicy['eviction'];
  readonly log: StructuredLog;
  readonly now: () => number;
}

/** How long a refused pod is not tried again, so that other victims come first. */
const RETRY_MS = 15_000;
/** How long an evicted pod counts as leaving although the watch does not show it yet. */
const UNSEEN_MS = 60_000;
/** The same for an eviction whose answer was lost; after it the pod is not tried again for `FAILED_MS`. */
const UNKNOWN_MS = 10_000;
const FAILED_MS = 60_000;

/** Evicts pods through the eviction API, by uid, and keeps the results until the watch shows them. */
export class Evictor {
  readonly #options: EvictorOptions;
  readonly #marks = new Map<string, { readonly leavingUntil: number; readonly protectedUntil: number }>();

  constructor(options: EvictorOptions) {
    this.#options = options;
  }

  /** Whether a mark may still expire, so that the situation can change without an event. */
  get hasMarks(): boolean {
    return this.#marks.size > 0;
  }

  markOf(uid: string): PodMark {
    const mark = this.#marks.get(uid);
    const now = this.#options.now();
    return {
      isLeaving: mark !== undefined && now < mark.leavingUntil,
      isProtected: mark !== undefined && now < mark.protectedUntil,
    };
  }

  /** Forgets pods that no longer exist, and expired marks. */
  removeExpired(pods: ReadonlyMap<string, ClusterPod>): void {
    const now = this.#options.now();
    for (const [uid, { leavingUntil, protectedUntil }] of this.#marks) {
      if (!pods.has(uid) || Math.max(leavingUntil, protectedUntil) <= now) this.#marks.delete(uid);
    }
  }

  /**
   * Whether the API server would evict all of these pods now. Checked before the first eviction, so that no pod is
   * evicted if a budget refuses another one of them. A pod that would be refused is not tried again for a while. Never
   * rejects.
   */
  async mayEvict(pods: readonly ClusterPod[]): Promise<boolean> {
    const { api, version } = this.#options;
    for (const pod of pods) {
      const answer = await evictPod(api, pod, version, true);
      if (answer.ok || answer.code === 'not-found') continue;
      this.#markFailed(pod, answer, 0);
      return false;
    }
    return true;
  }

  /** Never rejects. */
  async evict(pod: ClusterPod): Promise<EvictionResult> {
    const { api, version, now } = this.#options;
    const answer = await evictPod(api, pod, version);
    if (!answer.ok && answer.code !== 'not-found') return this.#markFailed(pod, answer, UNKNOWN_MS);
    this.#marks.set(pod.uid, { leavingUntil: now() + UNSEEN_MS, protectedUntil: 0 });
    return 'evicted';
  }

  /** `leavingMs`: how long the pod counts as leaving when the result is unknown. */
  #markFailed({ uid, namespace, name }: ClusterPod, { code, message }: KubeFailure, leavingMs: number): EvictionResult {
    const { log, now } = this.#options;
    log.warn({ namespace, pod: name, podUid: uid, code, reason: message }, 'pod not evicted');
    const at = now();
    const isRefused = code === 'too-many-requests';
    this.#marks.set(
      uid,
      isRefused
        ? { leavingUntil: 0, protectedUntil: at + RETRY_MS }
        : { leavingUntil: at + leavingMs, protectedUntil: at + FAILED_MS },
    );
    return isRefused ? 'refused' : 'failed';
  }
}
