import type { ClaimRef, ResourceClaim } from '../../gpu/claims/resource-claim.js';
import type { Clock } from '../../host/clock.js';
import { Listeners } from '../../host/listeners.js';
import type { Log } from '../../host/log.js';
import { resourceClaimsPath } from '../../kube/api-path.js';
import type { KubeClient } from '../../kube/client.js';
import { WatchInformer, type InformerTiming } from '../../kube/informer.js';
import { readResourceClaim } from '../../kube/claim-object.js';

export interface ClaimAnnotationsOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Partial<InformerTiming>;
}

interface Followed {
  readonly isOfPod: boolean;
  readonly annotations: ReadonlyMap<string, string>;
}

interface Watch {
  readonly informer: WatchInformer<Followed>;
  known: Followed | null;
}

const NONE: ReadonlyMap<string, string> = new Map();

/**
 * The annotations of claims that are prepared on this node. Only claims that exist independently of a pod are watched,
 * each by its name: a node uses few of them, and a claim from a template follows the annotations of its pod.
 */
export class ClaimAnnotations {
  readonly #options: ClaimAnnotationsOptions;
  readonly #watches = new Map<string, Watch>();
  /** Claims of pods, by UID. */
  readonly #ofPods = new Set<string>();
  readonly #listeners = new Listeners<string>();
  readonly #stopping = new Set<Promise<void>>();

  constructor(options: ClaimAnnotationsOptions) {
    this.#options = options;
  }

  /** Annotations with a key of tencent.com; empty for a claim that is not known (yet). */
  of(claimUid: string): ReadonlyMap<string, string> {
    return this.#watches.get(claimUid)?.known?.annotations ?? NONE;
  }

  /** Calls `listener` with the UID of a claim whose annotations changed. */
  onChange(listener: (claimUid: string) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Records a claim that the agent has just read: a claim of a pod needs no watch. */
  learn({ uid, isOfPod }: Pick<ResourceClaim, 'uid' | 'isOfPod'>): void {
    if (isOfPod) this.#ofPods.add(uid);
  }

  /** Follows exactly these claims from now on. */
  follow(claims: readonly ClaimRef[]): void {
    const wanted = new Map(claims.map((claim) => [claim.uid, claim]));
    for (const uid of this.#ofPods) if (!wanted.has(uid)) this.#ofPods.delete(uid);
    for (const uid of this.#watches.keys()) if (!wanted.has(uid)) this.#end(uid);
    for (const claim of wanted.values())
      if (!this.#watches.has(claim.uid) && !this.#ofPods.has(claim.uid)) this.#begin(claim);
  }

  async stop(): Promise<void> {
    for (const uid of [...this.#watches.keys()]) this.#end(uid);
    await Promise.all(this.#stopping);
  }

  #begin({ uid, namespace, name }: ClaimRef): void {
    const informer = new WatchInformer<Followed>({
      ...this.#options,
      path: resourceClaimsPath(namespace),
      fieldSelector: `metadata.name=${name}`,
      keep: (object) => {
        const claim = readResourceClaim(object);
        return claim?.uid === uid ? claim : null;
      },
    });
    const watch: Watch = { informer, known: null };
    this.#watches.set(uid, watch);
    informer.onChange(({ after }) => {
      if (after?.isOfPod === true) {
        this.#ofPods.add(uid);
        this.#end(uid);
        return;
      }
      watch.known = after;
      this.#listeners.emit(uid);
    });
    informer.start();
  }

  #end(uid: string): void {
    const watch = this.#watches.get(uid);
    if (watch === undefined) return;
    this.#watches.delete(uid);
    const stopped = watch.informer.stop().finally(() => this.#stopping.delete(stopped));
    this.#stopping.add(stopped);
  }
}
