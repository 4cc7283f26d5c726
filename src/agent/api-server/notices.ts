import { GPU_ASSIGNED_KEY, PREDICATE_TIME_KEY, initGpuIndexKey, predicateGpuIndexKey } from '../../gpu/annotations.js';
import { coreIdsOf, memoryIdsOf, type Allocation, type ContainerRef } from '../../gpu/ledger/allocation.js';
import type { NodePod } from './node-pod.js';
import type { RequestRefusal } from '../../gpu/request.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, type ResourceKind } from '../../gpu/resources.js';
import { encodeResizeStatus, RESIZE_STATUS_KEY, resizeInWords, type ResizeStatus } from '../../manifests/gpu-resize.js';
import type { Gpu } from '../../gpu/gpu.js';
import type { Clock } from '../../host/clock.js';
import { namingAnnotations } from '../../kube/pod-gpus.js';
import { podSubject, type EventRecorder } from '../../kube/events.js';
import type { NodePods } from './node-pods.js';
import type { PodRef } from './pod-writer.js';

export interface NoticesOptions {
  readonly pods: Pick<NodePods, 'get' | 'onChange' | 'noteStarted'>;
  readonly annotate: (pod: PodRef, annotations: Readonly<Record<string, string>>) => void;
  readonly record: EventRecorder['record'];
  readonly nodeName: string;
  readonly clock: Clock;
}

/** A GPU as the driver numbers it now. */
export type NumberedGpu = Pick<Gpu, 'index' | 'uuid'>;

/** The GPUs of one started container. */
interface Assignment {
  readonly allocationId: string;
  readonly gpus: readonly NumberedGpu[];
  readonly cores: number;
  readonly memoryBlocks: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** After this many corrections the agent gives up: another writer keeps changing the values. */
const MAX_CORRECTIONS = 5;

/** Limit of pods with a known assignment; more than a node can have. */
const PODS_LIMIT = 2_048;

/**
 * Publishes the allocator's decisions: the GPUs of each container as annotations of its pod, and an event. They are
 * maintained until the allocation is freed: a pod that is not in the cache yet gets its annotations when it appears,
 * and overwritten annotations are written again.
 */
export class Notices {
  readonly #options: NoticesOptions;
  /** By pod UID, then container. */
  readonly #assigned = new Map<string, Map<string, Assignment>>();
  /** What resized containers have, by pod UID, then container. */
  readonly #resized = new Map<string, Map<string, ResizeStatus>>();
  readonly #corrections = new Map<string, number>();
  readonly #refusals = new Map<RequestRefusal['code'], number>();
  #unsubscribe: () => void = () => undefined;

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  start(): void {
    this.#unsubscribe = this.#options.pods.onChange(({ before, after }) => {
      if (after !== null) this.#compare(before, after);
      else if (before !== null && !before.mirror) this.#forget(before.uid);
    });
  }

  stop(): void {
    this.#unsubscribe();
  }

  /** How often each refusal code occurred since the start. */
  get refusals(): ReadonlyMap<RequestRefusal['code'], number> {
    return this.#refusals;
  }

  /** The kubelet did not name the pod; FailedPods finds it by the text in the pod's status. */
  refused(_kind: ResourceKind, _size: number, refusal: RequestRefusal): void {
    this.#refusals.set(refusal.code, (this.#refusals.get(refusal.code) ?? 0) + 1);
  }

  /**
   * Also called for every started allocation when the agent starts, in case its last run ended before everything was
   * written.
   */
  started(allocation: Allocation, owner: ContainerRef, gpus: readonly NumberedGpu[]): void {
    if (owner.podUid === '') return;
    const { pods, clock } = this.#options;
    pods.noteStarted(owner.podUid, owner.container);
    const containers = this.#assigned.get(owner.podUid) ?? new Map<string, Assignment>();
    containers.set(owner.container, {
      allocationId: allocation.id,
      gpus,
      cores: coreIdsOf(allocation).length,
      memoryBlocks: memoryIdsOf(allocation).length,
      at: clock.now(),
    });
    this.#assigned.set(owner.podUid, containers);
    const [oldest] = this.#assigned.keys();
    if (this.#assigned.size > PODS_LIMIT && oldest !== undefined) this.#forget(oldest);
    const pod = pods.get(owner.podUid);
    if (pod !== null) this.#write(pod);
  }

  /** The driver numbers the GPUs of the node anew: annotations follow, without an event. */
  renumbered(gpus: readonly NumberedGpu[]): void {
    const present = new Map(gpus.map((gpu) => [gpu.uuid, gpu]));
    for (const [podUid, containers] of this.#assigned) {
      for (const [container, assignment] of containers)
        containers.set(container, { ...assignment, gpus: assignment.gpus.map((gpu) => present.get(gpu.uuid) ?? gpu) });
      const pod = this.#options.pods.get(podUid);
      const missing = pod === null ? new Map<string, string>() : this.#missing(pod);
      if (pod !== null && missing.size > 0) this.#options.annotate(pod, Object.fromEntries(missing));
    }
  }

  freed(allocation: Allocation): void {
    for (const { podUid } of allocation.owners) {
      const containers = this.#assigned.get(podUid);
      if (containers === undefined) continue;
      for (const [container, assignment] of containers)
        if (assignment.allocationId === allocation.id) containers.delete(container);
      if (containers.size === 0) this.#forget(podUid);
    }
  }

  /** The pod's event and its annotation with the state of the resize; no event where the annotation says so already. */
  resized({ podUid, container }: ContainerRef, status: ResizeStatus): void {
    const containers = this.#resized.get(podUid) ?? new Map<string, ResizeStatus>();
    this.#resized.set(podUid, containers.set(container, status));
    const pod = this.#options.pods.get(podUid);
    if (pod === null) return;
    const isNews = this.#missing(pod).has(RESIZE_STATUS_KEY);
    this.#write(pod);
    if (!isNews) return;
    this.#options.record(podSubject({ ...pod, uid: pod.objectUid }, container), {
      type: status.pending === undefined || status.pending.reason === 'InProgress' ? 'Normal' : 'Warning',
      reason: status.pending === undefined ? 'GPUResized' : `GPUResize${status.pending.reason}`,
      message: resizeInWords(status),
    });
  }

  /** A GPU failed under these containers. */
  gpuUnhealthy(owners: readonly ContainerRef[], gpuUuid: string, reason: string): void {
    for (const { podUid, namespace, pod, container } of owners) {
      if (podUid === '' || pod === '') continue;
      const uid = this.#options.pods.get(podUid)?.objectUid ?? podUid;
      this.#options.record(podSubject({ namespace, name: pod, uid }, container), {
        type: 'Warning',
        reason: 'GPUUnhealthy',
        message: `${gpuUuid} of node ${this.#options.nodeName}: ${reason}`,
      });
    }
  }

  /**
   * Writes a pod that appears. Corrects a changed pod only if it was right before: otherwise the agent's own write may
   * not have been observed yet.
   */
  #compare(before: NodePod | null, after: NodePod): void {
    if (!this.#assigned.has(after.uid) && !this.#resized.has(after.uid)) return;
    const overwritten =
      before !== null &&
      before.objectUid === after.objectUid &&
      this.#missing(before).size === 0 &&
      this.#missing(after).size > 0;
    if (before !== null && before.objectUid === after.objectUid && !overwritten) return;
    if (overwritten) {
      const corrections = (this.#corrections.get(after.uid) ?? 0) + 1;
      this.#corrections.set(after.uid, corrections);
      if (corrections > MAX_CORRECTIONS) return;
    }
    this.#write(after);
  }

  #write(pod: NodePod): void {
    const missing = this.#missing(pod);
    if (missing.size === 0) return;
    this.#options.annotate(pod, Object.fromEntries(missing));
    const containers = this.#assigned.get(pod.uid) ?? new Map<string, Assignment>();
    for (const [index, { name }] of pod.containers.entries()) {
      const assignment = containers.get(name);
      if (assignment !== undefined && missing.has(predicateGpuIndexKey(index))) this.#tell(pod, name, assignment);
    }
  }

  /** Annotations that the pod lacks. As the original's, `gpu-assigned` and the time are about `spec.containers`. */
  #missing(pod: NodePod): Map<string, string> {
    const containers = this.#assigned.get(pod.uid) ?? new Map<string, Assignment>();
    const wanted = new Map<string, string>();
    let at = Infinity;
    for (const [index, { name }] of pod.containers.entries()) {
      const assignment = containers.get(name);
      if (assignment === undefined) continue;
      for (const [key, value] of Object.entries(namingAnnotations({ container: index, ...numbersOf(assignment) })))
        wanted.set(key, value);
      at = Math.min(at, assignment.at);
    }
    if (wanted.size > 0) {
      wanted.set(GPU_ASSIGNED_KEY, 'true');
      // If the pod has no annotation with the time of the scheduler extender's decision, the agent's time is used.
      if (!pod.annotations.has(PREDICATE_TIME_KEY))
        wanted.set(PREDICATE_TIME_KEY, String(BigInt(Math.trunc(at)) * 1_000_000n));
    }
    for (const [index, { name }] of pod.initContainers.entries()) {
      const assignment = containers.get(name);
      if (assignment !== undefined) wanted.set(initGpuIndexKey(index), numbersOf(assignment).indexes.join(','));
    }
    const resized = this.#resized.get(pod.uid);
    if (resized !== undefined) wanted.set(RESIZE_STATUS_KEY, encodeResizeStatus(resized));
    for (const [key, value] of wanted) if (pod.annotations.get(key) === value) wanted.delete(key);
    return wanted;
  }

  #tell(pod: NodePod, container: string, assignment: Assignment): void {
    const { cores, memoryBlocks } = assignment;
    const { indexes } = numbersOf(assignment);
    const gpus = `GPU ${indexes.join(', ')} of node ${this.#options.nodeName}`;
    const coresEach = cores / Math.max(1, indexes.length);
    const each = indexes.length > 1 ? ' of each' : '';
    const share =
      coresEach < CORES_PER_GPU ? `${coresEach} of ${CORES_PER_GPU} cores${each}` : `${indexes.length} whole`;
    const memory = memoryBlocks > 0 ? `, ${(memoryBlocks * MEMORY_BLOCK_BYTES) / 2 ** 20} MiB` : '';
    this.#options.record(podSubject({ ...pod, uid: pod.objectUid }, container), {
      type: 'Normal',
      reason: 'GPUAssigned',
      message: `${gpus}: ${share}${memory}`,
    });
  }

  #forget(podUid: string): void {
    this.#assigned.delete(podUid);
    this.#resized.delete(podUid);
    this.#corrections.delete(podUid);
  }
}

/** In ascending order of the indexes. */
function numbersOf({ gpus }: Assignment): { readonly indexes: number[]; readonly uuids: string[] } {
  const ordered = [...gpus].sort((a, b) => a.index - b.index);
  return { indexes: ordered.map(({ index }) => index), uuids: ordered.map(({ uuid }) => uuid) };
}
