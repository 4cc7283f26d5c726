import type { Gpu } from '../../gpu/gpu.js';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import type { LegacyHolding } from '../../gpu/ledger/legacy-holding.js';
import type { Priority } from '../../gpu/priority.js';

/** Pod and container of a slice; empty texts while the kubelet has not named them. */
export interface SliceOwner {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** The limit annotations of pods; answers from memory. */
export interface PodLimitAnnotations {
  /** Null for a pod that is not known (yet). */
  annotations(podUid: string): ReadonlyMap<string, string> | null;
  /**
   * When the containers of a pod are killed at last, in milliseconds since 1970; null while it is not being deleted.
   * Absent: unknown.
   */
  killedAtMs?(podUid: string): number | null;
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

/** The highest limits of one started container; its pod's annotations may lower them. */
export interface SliceLimits {
  readonly allocation: string;
  readonly owner: ContainerRef;
  readonly devices: readonly {
    readonly gpu: Gpu;
    /** Bytes; null if the container may use all memory of the GPU. */
    readonly memoryBytes: number | null;
    /** Cores of the GPU. */
    readonly share: number;
    /**
     * Cores of the GPU that it may use while other containers leave the GPU idle; null: no more than its share.
     */
    readonly softLimit: number | null;
    /** The highest that its pod may request; absent: every priority. */
    readonly priority?: Priority;
  }[];
  /** Whether its containers take turns with others on their GPU; absent: no. */
  readonly takesTurns?: boolean;
}

/** The directory of each allocation, which its container sees as /etc/vcuda. */
export interface SliceStore {
  directoryOf(allocationId: string): string;
  /** Files in the directory that the container may write; `prepare` creates them. */
  readonly writableFiles: readonly string[];
  /** The folder through which programs of an allocation on this GPU are clients of MPS; null: it is not used here. */
  mpsFolderOf?(allocationId: string, gpuUuid: string): string | null;
  /** Creates the directory; with `fresh`, an old one of the same name is removed first. */
  prepare(allocationId: string, fresh: boolean): Promise<void>;
  /** For a container that is about to start: when this resolves, its limits are on disk and its socket is open. */
  start(limits: SliceLimits): Promise<void>;
  /** For a container that runs already: existing files stay as they are, missing files are created. */
  restore(limits: SliceLimits): Promise<void>;
  /** Changes what the open slice of a running container was allocated; its GPUs stay. */
  correct(limits: SliceLimits): void;
  /**
   * Like `correct`, but changes nothing and returns the reason while the container uses more memory than that; null
   * when its limits have changed.
   */
  resize(limits: SliceLimits): string | null;
  remove(allocationId: string): Promise<void>;
  /** The ids of all allocations that have a directory. */
  list(): Promise<readonly string[]>;
}

/** The directories of pods that the original's plugin started; their containers see them as /etc/vcuda too. */
export interface LegacyStore {
  /** Serves these containers as the original's plugin did; does nothing for containers that are served already. */
  open(holdings: readonly LegacyHolding[]): Promise<void>;
  /** Stops serving every other pod, and removes the directories that the original's plugin made for other pods. */
  keepOnly(holdings: readonly LegacyHolding[]): Promise<void>;
}
