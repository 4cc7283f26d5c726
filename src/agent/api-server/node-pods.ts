import type { ClaimUser } from '../../gpu/claims/claim-units.js';
import {
  EQUAL_GPUS_KEY,
  PREDICATE_NODE_KEY,
  PREDICATE_TIME_KEY,
  predicateGpuIndexKey,
  readEqualGpus,
} from '../../gpu/annotations.js';
import type { PendingContainer, PendingContainers } from '../../gpu/ledger/pending.js';
import { isOver, usesGpu, type NodePod, type PodContainer } from './node-pod.js';
import type { ResourceKind } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { ALL_PODS } from '../../kube/api-path.js';
import type { KubeClient } from '../../kube/client.js';
import { WatchInformer, type ObjectChange, type InformerTiming } from '../../kube/informer.js';
import { readNodePod } from './pod-reader.js';

export interface NodePodsOptions {
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Partial<InformerTiming>;
  readonly random?: () => number;
}

/** Without a connection for this long, what waits on this node is no longer known. */
const STALE_MS = 60_000;

/** The kubelet hears of a pod at most so much earlier than this object, while the API server answers. */
const LAG_MS = 500;

/** Pods that are gone are remembered for this long, and not more of them than this. */
const MEMORY_MS = 3_600_000;
const MEMORY_LIMIT = 4_096;

/**
 * A pod that vanished while a container of it ran - deleted by force, or missing in a list - counts as over after this
 * long. Its processes may live on for their grace period, and a list may be wrong and be put right.
 */
const VANISHED_MS = 60_000;

interface Gone {
  readonly pod: NodePod;
  readonly at: number;
  /** When it counts as over. */
  readonly overAt: number;
}

/** The pods of this node as the API server shows them. Answers from memory, never waits. */
export class NodePods {
  readonly #watch: WatchInformer<NodePod>;
  readonly #clock: Clock;
  readonly #byUid = new Map<string, NodePod>();
  readonly #byName = new Map<string, NodePod>();
  /** Deleted after having been seen, oldest first. */
  readonly #gone = new Map<string, Gone>();
  /** Containers that have begun to start, whatever the API server still says, by pod. */
  readonly #started = new Map<string, Set<string>>();
  #pending: readonly PendingContainer[] | null = null;

  constructor(options: NodePodsOptions) {
    const { nodeName } = options;
    if (nodeName === '') throw new Error('the name of this node is empty');
    this.#clock = options.clock;
    this.#watch = new WatchInformer<NodePod>({
      ...options,
      path: ALL_PODS,
      fieldSelector: `spec.nodeName=${nodeName}`,
      // A proxy that drops the selector must not make another node's pods ours.
      keep: (object) => {
        const pod = readNodePod(object);
        return pod?.node === nodeName ? pod : null;
      },
    });
    this.#watch.onChange((change) => this.#learn(change));
  }

  start(): void {
    this.#watch.start();
  }

  stop(): Promise<void> {
    return this.#watch.stop();
  }

  /** Told after every change that this object itself answers by already. */
  onChange(listener: (change: ObjectChange<NodePod>) => void): () => void {
    return this.#watch.onChange(listener);
  }

  get synced(): boolean {
    return this.#watch.synced;
  }

  /** For how long there has been no connection, in milliseconds. */
  get silentMs(): number {
    return this.#watch.silentMs;
  }

  get counts(): WatchInformer<NodePod>['counts'] {
    return this.#watch.counts;
  }

  all(): NodePod[] {
    return [...this.#byUid.values()];
  }

  get(podUid: string): NodePod | null {
    return this.#byUid.get(podUid) ?? null;
  }

  /** Whether the API server has this pod on this node; null unless a connection to it stands. */
  exists(podUid: string): boolean | null {
    if (!this.#watch.synced || this.#watch.silentMs > 0) return null;
    return this.#byUid.has(podUid);
  }

  uidOf(namespace: string, pod: string): string | null {
    return this.#byName.get(nameKey(namespace, pod))?.uid ?? null;
  }

  /** Also of pods that were deleted lately. */
  nameOf(podUid: string): { readonly namespace: string; readonly pod: string } | null {
    const pod = this.#byUid.get(podUid) ?? this.#gone.get(podUid)?.pod;
    return pod === undefined ? null : { namespace: pod.namespace, pod: pod.name };
  }

  /**
   * Containers that wait for their GPUs or, where these were allocated, for their first start, in the order in which
   * the kubelet probably asks for them: by the scheduler extender's time stamp, else by creation; in a pod, init
   * containers first. Null while nothing reliable is known. The annotation gpu-assigned counts for nothing here: pod
   * templates carry it along, and it says nothing of a pod's other containers.
   */
  pending(): PendingContainers {
    if (!this.#watch.synced || this.#watch.silentMs > STALE_MS) return null;
    this.#pending ??= [...this.#byUid.values()]
      .filter(mayStart)
      .sort(byTurn)
      .flatMap((pod) => waitingContainers(pod, this.#started.get(pod.uid)));
    return this.#pending;
  }

  /** See `PodKnowledge`. Does not wait where nothing can be heard now. */
  async heardOf(kind: ResourceKind, size: number): Promise<void> {
    const isHeard = (): boolean =>
      this.pending()?.some(({ cores, memoryBlocks }) => (kind === 'core' ? cores : memoryBlocks) === size) ?? true;
    if (isHeard() || this.#watch.silentMs > 0) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        cancel();
        leave();
        resolve();
      };
      const cancel = this.#clock.after(LAG_MS, done);
      const leave = this.#watch.onChange(() => {
        if (isHeard()) done();
      });
    });
  }

  /**
   * UIDs of pods that are over for good: succeeded, failed, or deleted after having been seen, and no container of
   * theirs runs. What they held is given to others on this word, so it is given late rather than wrongly.
   */
  ended(): ReadonlySet<string> {
    this.#forget();
    const now = this.#clock.now();
    const gone = [...this.#gone.values()].filter(({ overAt }) => overAt <= now).map(({ pod }) => pod.uid);
    const over = [...this.#byUid.values()].filter(isOver).map((pod) => pod.uid);
    return new Set([...gone, ...over]);
  }

  /** Tells of pods that appeared, or whose annotations changed; the answer ends that. */
  onAnnotations(listener: (podUid: string) => void): () => void {
    return this.onChange(({ before, after }) => {
      if (after !== null && !sameEntries(before?.annotations, after.annotations)) listener(after.uid);
    });
  }

  /** Which of its containers use which resource claims; null for a pod that is not known. */
  claimUsers(podUid: string): readonly ClaimUser[] | null {
    return this.#byUid.get(podUid)?.claimUsers ?? null;
  }

  /** Those of tencent.com; null for a pod that is not known. */
  annotations(podUid: string): ReadonlyMap<string, string> | null {
    return this.#byUid.get(podUid)?.annotations ?? null;
  }

  /** A container begins to start: it waits no longer. */
  noteStarted(podUid: string, container: string): void {
    const started = this.#started.get(podUid) ?? new Set<string>();
    started.add(container);
    this.#started.set(podUid, started);
    const [oldest] = this.#started.keys();
    if (this.#started.size > MEMORY_LIMIT && oldest !== undefined) this.#started.delete(oldest);
    this.#pending = null;
  }

  #learn({ before, after }: ObjectChange<NodePod>): void {
    this.#pending = null;
    if (before !== null && after === null) this.#remove(before);
    if (after === null) return;
    // The API server may create a static pod's entry again under another UID; for the kubelet it is the same pod.
    this.#gone.delete(after.uid);
    this.#byUid.set(after.uid, after);
    const named = this.#byName.get(nameKey(after.namespace, after.name));
    if (named === undefined || named.uid === after.uid || named.createdAt <= after.createdAt)
      this.#byName.set(nameKey(after.namespace, after.name), after);
  }

  #remove(pod: NodePod): void {
    const current = this.#byUid.get(pod.uid);
    if (current !== undefined && current.objectUid !== pod.objectUid) return;
    const now = this.#clock.now();
    const overAt = now + (this.#mayRun(pod) ? VANISHED_MS : 0);
    this.#byUid.delete(pod.uid);
    const key = nameKey(pod.namespace, pod.name);
    if (this.#byName.get(key)?.objectUid === pod.objectUid) this.#byName.delete(key);
    // Deleting the entry of a static pod ends nothing: the kubelet writes it again.
    if (!pod.mirror) this.#gone.set(pod.uid, { pod, at: now, overAt });
    this.#forget();
  }

  /** As far as is known here: the kubelet may have started a container that the API server does not know to run. */
  #mayRun(pod: NodePod): boolean {
    const started = this.#started.get(pod.uid);
    if (isOver(pod)) return false;
    return [...pod.initContainers, ...pod.containers].some(
      (container) => container.running || (!container.terminated && started?.has(container.name) === true),
    );
  }

  #forget(): void {
    const limit = this.#clock.now() - MEMORY_MS;
    for (const [uid, gone] of this.#gone) {
      if (gone.at > limit && this.#gone.size <= MEMORY_LIMIT) break;
      this.#gone.delete(uid);
      this.#started.delete(uid);
    }
  }
}

function nameKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

/** A pod that is to go before the kubelet took it on never starts. */
function mayStart(pod: NodePod): boolean {
  return pod.phase === 'Pending' && (pod.deletedAt === null || pod.admittedAt !== null);
}

function byTurn(a: NodePod, b: NodePod): number {
  const [first, second] = [turnOf(a), turnOf(b)];
  if (first !== second) return first < second ? -1 : 1;
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.uid < b.uid ? -1 : 1;
}

/** Nanoseconds since 1970. */
function turnOf(pod: NodePod): bigint {
  const decided = pod.annotations.get(PREDICATE_TIME_KEY) ?? '';
  return /^\d{1,20}$/.test(decided) ? BigInt(decided) : BigInt(pod.createdAt) * 1_000_000n;
}

function waitingContainers(pod: NodePod, started: ReadonlySet<string> = new Set()): PendingContainer[] {
  const waits = (container: PodContainer): boolean =>
    usesGpu(container) && !container.running && !started.has(container.name);
  const equalGpus = readEqualGpus(pod.annotations.get(EQUAL_GPUS_KEY)) === 'required';
  const entry = ({ name, cores, memoryBlocks, compat32 }: PodContainer, hint: readonly number[]): PendingContainer => ({
    podUid: pod.uid,
    container: name,
    cores,
    memoryBlocks,
    hint,
    ...(equalGpus ? { equalGpus } : {}),
    ...(compat32 ? { compat32 } : {}),
  });
  // A prediction made for another node says nothing about the GPUs of this one.
  const ours = (pod.annotations.get(PREDICATE_NODE_KEY) ?? pod.node) === pod.node;
  const hintOf = (index: number): number[] => (ours ? indexes(pod.annotations.get(predicateGpuIndexKey(index))) : []);
  // The containers take over the GPUs of init containers: these are predicted by theirs.
  const hints = [...new Set(pod.containers.flatMap((_, index) => hintOf(index)))];
  return [
    ...pod.initContainers.filter(waits).map((container) => entry(container, hints)),
    ...pod.containers.flatMap((container, index) => (waits(container) ? [entry(container, hintOf(index))] : [])),
  ];
}

/** "0,2" as numbers; nothing when it is anything else. */
function indexes(text = ''): number[] {
  return /^\d{1,3}(,\d{1,3})*$/.test(text) ? text.split(',').map(Number) : [];
}

function sameEntries(a: ReadonlyMap<string, string> | undefined, b: ReadonlyMap<string, string>): boolean {
  return a?.size === b.size && [...b].every(([key, value]) => a.get(key) === value);
}
