import type { GpuProcess, GpuSample } from '../../gpu/sample.js';

/** Pod and container of a slice; empty texts while the kubelet has not named them. */
export interface SliceOwner {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** The pod and container in which a process of the host runs. */
export interface ProcessPlace {
  readonly containerId: string;
  /** Null for a container that no kubelet started. */
  readonly podUid: string | null;
}

/**
 * Processes and containers according to control groups and the container runtime. Calls may be slow and may have no
 * answer.
 */
export interface ContainerKnowledge {
  /** The container of a process; null if it runs in none, has ended, or is unknown. */
  placeOf(pid: number): Promise<ProcessPlace | null>;
  /** Host pids of all processes of a container; empty if it does not run or is unknown. */
  pidsOf(containerId: string): Promise<readonly number[]>;
  /** The slice with which a container was created; null if unknown. Absent: always unknown. */
  sliceOf?(containerId: string): string | null;
  /** A container's name in its pod; null if unknown. */
  nameOf(containerId: string): Promise<string | null>;
}

/** The limit annotations of pods; answers from memory. */
export interface PodLimitAnnotations {
  /** Null for a pod that is not known (yet). */
  annotations(podUid: string): ReadonlyMap<string, string> | null;
  /** Calls `listener` for pods that appear, go or change their annotations; the returned function unsubscribes. */
  onAnnotations(listener: (podUid: string) => void): () => void;
}

/** The containers and claims that share slices; answers from memory. */
export interface SliceSharing {
  /** The containers that share a slice, as far as they are known; empty: its owner alone. */
  containersOf(slice: string): readonly SliceOwner[];
  /** Limit annotations of the claims that the slice was made for. */
  claimAnnotations(slice: string): readonly ReadonlyMap<string, string>[];
  /** Calls `listener` with a slice when one of these may have changed; the returned function unsubscribes. */
  onChange(listener: (slice: string) => void): () => void;
}

/** Slices of the device plugin: each belongs to one container. */
export const NO_SHARING: SliceSharing = {
  containersOf: () => [],
  claimAnnotations: () => [],
  onChange: () => () => undefined,
};

/** An event on the pod for the container's owner. */
export interface SliceNote {
  readonly type: 'Normal' | 'Warning';
  /** One word in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** Reports events to the owners of containers; must not block and must not throw. */
export interface SliceNotices {
  note(owner: SliceOwner, note: SliceNote): void;
}

/** Evicts pods; must not block and must not throw. */
export interface Evictor {
  evict(owner: SliceOwner, why: string): void;
}

/** The GPUs as their driver shows them. Calls may take long and may reject. */
export interface GpuSource {
  sample(uuid: string): Promise<GpuSample>;
  processes(uuid: string): Promise<readonly GpuProcess[]>;
}
