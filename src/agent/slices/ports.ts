import type { GpuProcess, GpuSample } from '../../gpu/sample.js';

/** Which container of which pod; empty texts where the kubelet has not said. */
export interface SliceOwner {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** Where a process of the host runs. */
export interface ProcessPlace {
  readonly containerId: string;
  /** Null for a container that no kubelet started. */
  readonly podUid: string | null;
}

/**
 * What control groups and the container runtime say of processes. Slow and sometimes ignorant; nothing urgent waits for
 * it.
 */
export interface ContainerKnowledge {
  /** The container that a process of the host runs in; null when it is in none, is gone, or cannot be told. */
  placeOf(pid: number): Promise<ProcessPlace | null>;
  /** Host pids of all processes of a container; none when it does not run or cannot be told. */
  pidsOf(containerId: string): Promise<readonly number[]>;
  /** The slice that a container of this id was made with; null when that cannot be told. Absent: it never can. */
  sliceOf?(containerId: string): string | null;
  /** What its pod calls a container; null when that cannot be told. */
  nameOf(containerId: string): Promise<string | null>;
}

/** What pods ask for while they run; answers from memory. */
export interface PodLimitAnnotations {
  /** Null for a pod that is not known (yet). */
  annotations(podUid: string): ReadonlyMap<string, string> | null;
  /** Tells of pods that appeared, or whose annotations changed; the answer ends that. */
  onAnnotations(listener: (podUid: string) => void): () => void;
}

/** An event on the pod for the container's owner. */
export interface SliceNote {
  readonly type: 'Normal' | 'Warning';
  /** One word in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** Tells the owners of containers; must not block and must not throw. */
export interface SliceNotices {
  note(owner: SliceOwner, note: SliceNote): void;
}

/** Has pods evicted; must not block and must not throw. */
export interface Evictor {
  evict(owner: SliceOwner, why: string): void;
}

/** The GPUs as their driver shows them. Calls may take long and may reject. */
export interface GpuSource {
  sample(uuid: string): Promise<GpuSample>;
  processes(uuid: string): Promise<readonly GpuProcess[]>;
}
