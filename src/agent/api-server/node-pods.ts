import type { ClaimUser } from '../../gpu/claims/claim-units.js';
import { PREDICATE_NODE_KEY, PREDICATE_TIME_KEY } from '../../gpu/annotations.js';
import { ANY_GPUS, readSelection, selectionFor } from '../../gpu/gpu-selection.js';
import type { PendingContainer, PendingContainers } from '../../gpu/ledger/pending.js';
import { isOver, usesGpu, type NodePod, type PodContainer } from './node-pod.js';
import type { ResourceKind } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { ALL_PODS } from '../../kube/api-path.js';
import type { KubeClient } from '../../kube/client.js';
import { misspeltKey } from '../../kube/misspelt-key.js';
import { gpusNamedFor } from '../../kube/pod-gpus.js';
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

/** After this long without a connection, the pending containers are unknown. */
const STALE_MS = 60_000;

/** While the API server answers, the kubelet learns of a pod at most this much earlier than the agent. */
const POD_WATCH_LAG_MS = 500;

/** Deleted pods are remembered for this long, up to the number below. */
const MEMORY_MS = 3_600_000;
const MEMORY_LIMIT = 4_096;

/**
 * A pod that disappeared while one of its containers ran (deleted by force, or missing in a list) counts as ended after
 * this long. Its processes may live on during their grace period, and a list may be wrong and be corrected.
 */
const VANISHED_MS = 60_000;

/** How long `ask` waits for the API server. */
const ASK_MS = 5_000;

interface Gone {
  readonly pod: NodePod;
  readonly at: number;
  /** When the pod counts as ended. */
  readonly overAt: number;
}

/** The pods of this node as the API server shows them. Answers from memory, never waits. */
export class NodePods {
  readonly #watch: WatchInformer<NodePod>;
  readonly #clock: Clock;
  readonly #byUid = new Map<string, NodePod>();
  readonly #byName = new Map<string, NodePod>();
  /** Pods that were seen and then deleted, oldest first. */
  readonly #gone = new Map<string, Gone>();
  /** Pods that a list, made for them, does not have. */
  #absent: ReadonlySet<string> = new Set();
  /** Containers that have begun to start, by pod; the API server may still show them as waiting. */
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
      // If a proxy drops the selector, pods of other nodes arrive and must be ignored.
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

  /** Called after every change; this object's answers already include the change. */
  onChange(listener: (change: ObjectChange<NodePod>) => void): () => void {
    return this.#watch.onChange(listener);
  }

  get synced(): boolean {
    return this.#watch.synced;
  }

  /** Time without a connection, in milliseconds. */
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

  /** The deletion time that the API server sets is the end of the grace period. */
  killedAtMs(podUid: string): number | null {
    return this.#byUid.get(podUid)?.deletedAt ?? null;
  }

  /**
   * See `PodKnowledge`. A pod that the watch has never shown may exist: a watch can be open and silent. So only a pod
   * that was seen and deleted, or that a list made for it lacks, is known not to exist.
   */
  exists(podUid: string): boolean | null {
    if (!this.#watch.synced || this.#watch.silentMs > 0) return null;
    if (this.#byUid.has(podUid)) return true;
    return this.#gone.has(podUid) || this.#absent.has(podUid) ? false : null;
  }

  /** See `PodKnowledge`. Costs one list, and only for pods that the watch has never shown and no list was made for. */
  async ask(podUids: ReadonlySet<string>): Promise<void> {
    const isUnseen = (uid: string): boolean => !this.#byUid.has(uid) && !this.#gone.has(uid);
    const unseen = [...podUids].filter(isUnseen);
    const asked = new Set(unseen.filter((uid) => this.#absent.has(uid)));
    this.#absent = asked;
    if (asked.size === unseen.length || !this.#watch.synced || this.#watch.silentMs > 0) return;
    const listed = await new Promise<boolean>((resolve) => {
      const cancel = this.#clock.after(ASK_MS, () => resolve(false));
      void this.#watch.refresh().then(() => {
        cancel();
        resolve(true);
      });
    });
    if (listed) this.#absent = new Set(unseen.filter(isUnseen));
  }

  uidOf(namespace: string, pod: string): string | null {
    return this.#byName.get(nameKey(namespace, pod))?.uid ?? null;
  }

  /** Also finds pods that were deleted lately. */
  nameOf(podUid: string): { readonly namespace: string; readonly pod: string } | null {
    const pod = this.#byUid.get(podUid) ?? this.#gone.get(podUid)?.pod;
    return pod === undefined ? null : { namespace: pod.namespace, pod: pod.name };
  }

  /**
   * Containers that wait for their GPUs, or for their first start after the allocation, in the probable order of the
   * kubelet's requests: by the scheduler extender's time stamp, else by creation; within a pod, init containers first.
   * Null if the pods are unknown. The annotation gpu-assigned is ignored: pod templates copy it, and it tells nothing
   * about a pod's other containers.
   */
  pending(): PendingContainers {
    if (!this.#watch.synced || this.#watch.silentMs > STALE_MS) return null;
    this.#pending ??= [...this.#byUid.values()]
      .filter(mayStart)
      .sort(byTurn)
      .flatMap((pod) => waitingContainers(pod, this.#started.get(pod.uid)));
    return this.#pending;
  }

  /** See `PodKnowledge`. Returns at once if no event can arrive now. */
  async untilPending(kind: ResourceKind, size: number): Promise<void> {
    const isHeard = (): boolean =>
      this.pending()?.some(({ cores, memoryBlocks }) => (kind === 'core' ? cores : memoryBlocks) === size) ?? true;
    if (isHeard() || this.#watch.silentMs > 0) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        cancel();
        leave();
        resolve();
      };
      const cancel = this.#clock.after(POD_WATCH_LAG_MS, done);
      const leave = this.#watch.onChange(() => {
        if (isHeard()) done();
      });
    });
  }

  /**
   * UIDs of pods that succeeded, failed or were deleted, and that have no running container. Their devices are given to
   * other pods, so a late answer is better than a wrong one.
   */
  ended(): ReadonlySet<string> {
    this.#forget();
    const now = this.#clock.now();
    const gone = [...this.#gone.values()].filter(({ overAt }) => overAt <= now).map(({ pod }) => pod.uid);
    const over = [...this.#byUid.values()].filter(isOver).map((pod) => pod.uid);
    return new Set([...gone, ...over]);
  }

  /**
   * Calls `listener` for pods that appear, disappear or change their annotations; the returned function unsubscribes.
   */
  onAnnotations(listener: (podUid: string) => void): () => void {
    return this.onChange(({ before, after }) => {
      if (after === null) {
        if (before !== null) listener(before.uid);
      } else if (!sameEntries(before?.annotations, after.annotations)) listener(after.uid);
    });
  }

  podsWithClaims(): readonly string[] {
    return [...this.#byUid].flatMap(([uid, { claimUsers }]) => (claimUsers.length > 0 ? uid : []));
  }

  /**
   * Calls `listener` for pods that appear, go or change the claims that they use; the returned function unsubscribes.
   */
  onClaimUsers(listener: (podUid: string) => void): () => void {
    const textOf = (pod: NodePod | null): string => JSON.stringify(pod?.claimUsers ?? []);
    return this.onChange(({ before, after }) => {
      const pod = after ?? before;
      if (pod !== null && textOf(before) !== textOf(after)) listener(pod.uid);
    });
  }

  /** The containers of a pod that use resource claims; null for an unknown pod. */
  claimUsers(podUid: string): readonly ClaimUser[] | null {
    return this.#byUid.get(podUid)?.claimUsers ?? null;
  }

  /** Annotations with a key of tencent.com; null for an unknown pod. */
  annotations(podUid: string): ReadonlyMap<string, string> | null {
    return this.#byUid.get(podUid)?.annotations ?? null;
  }

  /** See `PodKnowledge`. */
  isSuspendable(podUid: string): boolean | null {
    const annotations = this.annotations(podUid);
    if (annotations === null) return null;
    const read = readSelection((key) => annotations.get(key));
    return read.ok && read.selection.suspendable === true;
  }

  /** Marks a container as starting, so that it is no longer pending. */
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
    // The API server may create the mirror of a static pod again with another UID; for the kubelet it is the same pod.
    this.#gone.delete(after.uid);
    if (this.#absent.has(after.uid)) this.#absent = new Set([...this.#absent].filter((uid) => uid !== after.uid));
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
    // Deleting the mirror of a static pod ends nothing: the kubelet creates it again.
    if (!pod.mirror) this.#gone.set(pod.uid, { pod, at: now, overAt });
    this.#forget();
  }

  /** Whether it may run: the kubelet may have started a container that the API server does not show as running yet. */
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

/** A pod that was deleted before the kubelet admitted it never starts. */
function mayStart(pod: NodePod): boolean {
  return pod.phase === 'Pending' && (pod.deletedAt === null || pod.admittedAt !== null);
}

function byTurn(a: NodePod, b: NodePod): number {
  const [first, second] = [orderOf(a), orderOf(b)];
  if (first !== second) return first < second ? -1 : 1;
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.uid < b.uid ? -1 : 1;
}

/** Nanoseconds since 1970. */
function orderOf(pod: NodePod): bigint {
  const decided = pod.annotations.get(PREDICATE_TIME_KEY) ?? '';
  return /^\d{1,20}$/.test(decided) ? BigInt(decided) : BigInt(pod.createdAt) * 1_000_000n;
}

function waitingContainers(pod: NodePod, started: ReadonlySet<string> = new Set()): PendingContainer[] {
  const waits = (container: PodContainer): boolean =>
    usesGpu(container) && !container.running && !started.has(container.name);
  if (![...pod.initContainers, ...pod.containers].some(waits)) return [];
  const read = readSelection((key) => pod.annotations.get(key));
  const brokenRule = read.ok ? misspeltKey(Object.fromEntries(pod.annotations)) : read.reason;
  const entry = (
    { name, cores, memoryBlocks, compat32 }: PodContainer,
    predicted: ReturnType<typeof gpusNamedFor>,
  ): PendingContainer => ({
    podUid: pod.uid,
    container: name,
    cores,
    memoryBlocks,
    hint: predicted?.indexes ?? [],
    ...(predicted?.uuids === undefined ? {} : { hintUuids: predicted.uuids }),
    ...(read.ok && read.selection !== ANY_GPUS ? { selection: selectionFor(read.selection, name) } : {}),
    ...(brokenRule === null ? {} : { brokenRule }),
    ...(compat32 ? { compat32 } : {}),
  });
  // A prediction for another node does not apply to the GPUs of this one.
  const ours = (pod.annotations.get(PREDICATE_NODE_KEY) ?? pod.node) === pod.node;
  const predictedFor = (index: number): ReturnType<typeof gpusNamedFor> =>
    ours ? gpusNamedFor((key) => pod.annotations.get(key), index) : null;
  return [
    ...pod.initContainers.filter(waits).map((container) => ({ ...entry(container, null), isInit: true })),
    ...pod.containers.flatMap((container, index) => (waits(container) ? [entry(container, predictedFor(index))] : [])),
  ];
}

function sameEntries(a: ReadonlyMap<string, string> | undefined, b: ReadonlyMap<string, string>): boolean {
  return a?.size === b.size && [...b].every(([key, value]) => a.get(key) === value);
}
