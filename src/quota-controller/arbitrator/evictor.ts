import type { KubeApi } from '../../kube/client.js';
import type { KubeFailure } from '../../kube/failure.js';
import { evictPod } from '../../kube/pod-writes.js';
import type { QuotaLog } from '../log.js';
import type { ClusterPod } from './cluster-pod.js';
import type { PodMark } from './cluster-view.js';
import type { ServedPolicy } from './served-policy.js';

/** `evicted`: it goes, or has gone. `refused`: a disruption budget keeps it for now. `failed`: nobody knows. */
export type EvictionResult = 'evicted' | 'refused' | 'failed';

export interface EvictorOptions {
  readonly api: KubeApi;
  readonly version: ServedPolicy['eviction'];
  readonly log: QuotaLog;
  readonly now: () => number;
}

/** After a refusal others are looked for first. */
const RETRY_MS = 15_000;
/** So long an evicted pod counts as leaving although nothing was seen of it: the watch may be late. */
const UNSEEN_MS = 60_000;
/** The same where the answer did not come. What was not evicted then is left alone for a while. */
const UNKNOWN_MS = 10_000;
const FAILED_MS = 60_000;

/** Has pods evicted through the eviction API, by uid, and knows what became of that until the watch tells. */
export class Evictor {
  readonly #options: EvictorOptions;
  readonly #marks = new Map<string, { readonly leavingUntil: number; readonly protectedUntil: number }>();

  constructor(options: EvictorOptions) {
    this.#options = options;
  }

  /** Whether time alone may change what is known. */
  get isWaiting(): boolean {
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

  /** Forgets pods that are gone, and marks that are over. */
  tidy(pods: ReadonlyMap<string, ClusterPod>): void {
    const now = this.#options.now();
    for (const [uid, { leavingUntil, protectedUntil }] of this.#marks) {
      if (!pods.has(uid) || Math.max(leavingUntil, protectedUntil) <= now) this.#marks.delete(uid);
    }
  }

  /**
   * Whether all of these would be let go now; asked before the first one goes, so that no pod goes in vain. One that
   * would be refused is left alone for a while. Never rejects.
   */
  async mayEvict(pods: readonly ClusterPod[]): Promise<boolean> {
    const { api, version } = this.#options;
    for (const pod of pods) {
      const answer = await evictPod(api, pod, version, true);
      if (answer.ok || answer.code === 'not-found') continue;
      this.#notEvicted(pod, answer, 0);
      return false;
    }
    return true;
  }

  /** Never rejects. */
  async evict(pod: ClusterPod): Promise<EvictionResult> {
    const { api, version, now } = this.#options;
    const answer = await evictPod(api, pod, version);
    if (!answer.ok && answer.code !== 'not-found') return this.#notEvicted(pod, answer, UNKNOWN_MS);
    this.#marks.set(pod.uid, { leavingUntil: now() + UNSEEN_MS, protectedUntil: 0 });
    return 'evicted';
  }

  /** `leavingMs`: how long it counts as leaving where nobody knows whether it goes. */
  #notEvicted({ uid, namespace, name }: ClusterPod, { code, message }: KubeFailure, leavingMs: number): EvictionResult {
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
