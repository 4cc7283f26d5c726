import type { Cluster } from '../cluster/placement/cluster.js';
import { needsGpu, type Demand } from '../cluster/placement/demand.js';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { KubeFailureCode } from '../kube/failure.js';
import type { Pod } from '../kube/pod.js';
import type { ClusterCache } from '../cluster/cluster-cache.js';
import type { PodName, PodWriter } from './pod-writer.js';
import { viewPod } from '../cluster/pod-view.js';
import { predictionAnnotations } from './prediction.js';
import type { BindingResult } from './results.js';

/** After this time a bound pod that the watch has not shown on its node is read from the API server. */
const CHECK_AFTER_MS = 60_000;
const CHECK_AGAIN_MS = 5_000;

/** Failures after which the pod is not bound, unless an earlier write of the binding is still carried out. */
const REFUSED: ReadonlySet<KubeFailureCode> = new Set<KubeFailureCode>(['forbidden', 'invalid']);

/** A decision that was sent to the API server. Until its result is known, the pod has no other decision. */
interface Sent {
  readonly pod: PodName;
  readonly node: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** `open`: it may be bound, or may still become bound. */
  state: 'writing' | 'open' | 'bound';
  /** Whether an earlier write of this decision may still be carried out. */
  wasOpen: boolean;
  checkAtMs: number;
  /** Resolves when the write has ended. */
  done: Promise<void>;
}

/**
 * The bindings that were sent to the API server and whose pods the watch has not shown on their nodes. An answer may be
 * lost, and the API server may carry out a binding later: therefore a decision that was sent is sent again unchanged,
 * with the same GPUs, and its GPUs stay charged until the API server says that the pod has no node or does not exist.
 */
export class SentBindings {
  readonly #cluster: Cluster;
  readonly #cache: ClusterCache;
  readonly #writer: PodWriter;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #notReady: () => string | null;
  readonly #sent = new Map<string, Sent>();

  constructor(parts: {
    readonly cluster: Cluster;
    readonly cache: ClusterCache;
    readonly writer: PodWriter;
    readonly clock: Clock;
    readonly log: Log;
    /** Why this replica may not send bindings now; null if it may. */
    readonly notReady: () => string | null;
  }) {
    this.#cluster = parts.cluster;
    this.#cache = parts.cache;
    this.#writer = parts.writer;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#notReady = parts.notReady;
  }

  /** The node that a binding of the pod was sent for; null without one. */
  nodeOf(uid: string): string | null {
    return this.#sent.get(uid)?.node ?? null;
  }

  /** Resolves when the running write of the pod has ended; null if none is running. */
  writing(uid: string): Promise<void> | null {
    const sent = this.#sent.get(uid);
    return sent?.state === 'writing' ? sent.done : null;
  }

  /** Whether a write is running. */
  get isWriting(): boolean {
    for (const { state } of this.#sent.values()) if (state === 'writing') return true;
    return false;
  }

  /**
   * Binds the pod to the node: with the decision that was sent before, or else with a new one. Call it when no write of
   * the pod is running. `refused` is called where the node has no room any more.
   */
  async bind(pod: PodName, node: string, demand: Demand, refused: () => void): Promise<BindingResult> {
    const before = this.#sent.get(pod.uid);
    if (before?.state === 'bound') return { Error: '' };
    const sent = before ?? this.#decide(pod, node, demand);
    if ('Error' in sent) {
      refused();
      return sent;
    }
    this.#sent.set(pod.uid, sent);
    sent.wasOpen = sent.state === 'open';
    sent.state = 'writing';
    const result = this.#write(sent);
    sent.done = result.then(() => undefined);
    return result;
  }

  /**
   * Reads pods from the API server that the watch has not shown on their nodes in time. Call it about once a second.
   */
  sweep(): void {
    const now = this.#clock.now();
    for (const [uid, sent] of this.#sent) {
      if (sent.state === 'writing') continue;
      if (this.#cache.isBound(uid) || !this.#cluster.placedPods.has(uid)) this.#sent.delete(uid);
      else if (sent.checkAtMs <= now) {
        sent.checkAtMs = now + CHECK_AGAIN_MS;
        void this.#check(sent);
      }
    }
  }

  /** Drops all decisions whose pods the watch has not shown on their nodes: another replica decides from now on. */
  forget(): void {
    for (const uid of this.#sent.keys()) if (!this.#cache.isBound(uid)) this.#cluster.removePod(uid);
    this.#sent.clear();
  }

  #decide(pod: PodName, node: string, demand: Demand): Sent | BindingResult {
    const placed = this.#cluster.decide(pod.uid, node, demand);
    this.#cache.changed();
    if (!placed.ok) return { Error: placed.reason };
    const annotations = needsGpu(demand) ? predictionAnnotations(node, placed.containers, this.#clock.now()) : {};
    const done = Promise.resolve();
    return { pod, node, annotations, state: 'bound', wasOpen: false, checkAtMs: Infinity, done };
  }

  async #write(sent: Sent): Promise<BindingResult> {
    const { pod, node, annotations } = sent;
    const answer = await this.#writer.bind(pod, node, annotations, () => this.#notReady() === null);
    if (answer.ok) return this.#isNow(sent, 'bound', '');
    const error = `${answer.code}: ${answer.message}`;
    if (answer.code === 'not-found' || (REFUSED.has(answer.code) && !sent.wasOpen)) return this.#undo(sent, error);
    // Any other answer, a conflict too, leaves open whether this write or an earlier one was carried out.
    const read = await this.#writer.read(pod);
    if (!read.ok) return this.#isNow(sent, 'open', error);
    if (read.pod === null) return this.#undo(sent, error);
    if (read.pod.node !== null) return this.#isNow(sent, 'bound', this.#learn(sent, read.pod));
    if (answer.code === 'conflict' && !sent.wasOpen) return this.#undo(sent, error);
    return this.#isNow(sent, 'open', error);
  }

  #isNow(sent: Sent, state: 'open' | 'bound', error: string): BindingResult {
    sent.state = state;
    sent.checkAtMs = this.#clock.now() + CHECK_AFTER_MS;
    return { Error: error };
  }

  /**
   * Charges the GPUs that a bound pod has according to the API server; a pod that has ended has none. Returns an error
   * if the pod is on another node.
   */
  #learn(sent: Sent, pod: Pod): string {
    const { uid, nodeName, ended, demand, initEnded, gpus } = viewPod(pod);
    if (ended) this.#undo(sent, '');
    else if (nodeName !== null && !this.#cache.isBound(uid))
      this.#cluster.setPod({ uid, nodeName, demand, initEnded, gpus });
    return nodeName === sent.node ? '' : `the pod is already on ${nodeName}`;
  }

  async #check(sent: Sent): Promise<void> {
    const { uid } = sent.pod;
    const read = await this.#writer.read(sent.pod);
    if (!read.ok || this.#sent.get(uid) !== sent || sent.state === 'writing' || this.#cache.isBound(uid)) return;
    if (read.pod !== null && read.pod.node !== null) {
      this.#learn(sent, read.pod);
      sent.state = 'bound';
      return;
    }
    this.#log.warn(
      { pod: uid, node: sent.node },
      'the API server has no node for a pod that was bound; its GPUs are released',
    );
    this.#undo(sent, '');
  }

  /**
   * Releases the room of a pod that was not bound, unless the pod has appeared on a node meanwhile, or the decision was
   * dropped and the room is that of a later one.
   */
  #undo(sent: Sent, error: string): BindingResult {
    const { uid } = sent.pod;
    if (this.#sent.get(uid) === sent && this.#sent.delete(uid) && !this.#cache.isBound(uid)) {
      this.#cluster.removePod(uid);
      this.#cache.changed();
    }
    return { Error: error };
  }
}
