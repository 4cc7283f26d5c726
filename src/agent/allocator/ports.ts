import type { BindMount, ContainerEdits, DeviceNode, UnitEdits } from '../../gpu/container-edits.js';
import type { Gpu } from '../../gpu/gpu.js';
import type { Allocation, ContainerRef } from '../../gpu/ledger/allocation.js';
import type { Holder } from '../../gpu/ledger/identify.js';
import type { LegacyHolding } from '../../gpu/ledger/legacy-holding.js';
import type { PendingContainers } from '../../gpu/ledger/pending.js';
import type { Refusal } from '../../gpu/request.js';
import type { ResourceKind } from '../../gpu/resources.js';

/** What the agent knows about this node's pods; answers from memory. */
export interface PodKnowledge {
  /** Containers that wait for GPUs; null where nothing is known of pods. */
  pending(): PendingContainers;
  /**
   * Resolves when a container waits for exactly this much, or after half a second at most: the kubelet may ask for a
   * pod before this object has heard of it.
   */
  heardOf(kind: ResourceKind, size: number): Promise<void>;
  /** UIDs of pods that are over for good. */
  ended(): ReadonlySet<string>;
  /** Whether the API server has this pod on this node; null while that is not known. */
  exists(podUid: string): boolean | null;
}

/** The processes and containers of a pod that this machine still has. */
export interface PodRemains {
  /** Names of its containers that run; null where processes of it run, and it is not known in which container. */
  readonly running: ReadonlySet<string> | null;
  /** Whether anything is left: a process, or a container that has ended and that the runtime still knows. */
  readonly any: boolean;
}

/** What container runtime and control groups say of pods. */
export interface PodEvidence {
  /** Null when it cannot be told. Answers within seconds, also when the runtime hangs. */
  remainsOf(podUid: string): Promise<PodRemains | null>;
}

/** Which container holds which ids, according to the kubelet. */
export interface HolderKnowledge {
  /** Null when the kubelet names no container or does not answer. */
  holderOf(kind: ResourceKind, ids: readonly string[]): Promise<Holder | null>;
  /** Whatever the kubelet names now, complete or not. */
  known(): Promise<readonly Holder[]>;
  /** Null unless the kubelet answered in full: what is not named is then not held. */
  all(): Promise<readonly Holder[] | null>;
}

/** What the ledger has of one container, and what that container has to have for it. */
export interface GivenContainer {
  /** Names its directory. */
  readonly slice: string;
  readonly gpus: readonly Gpu[];
  readonly environment: ContainerEdits['environment'];
  readonly mounts: ContainerEdits['mounts'];
}

/** What one started container may use at most; its pod's annotations may ask for less. */
export interface SliceLimits {
  readonly allocation: string;
  readonly owner: ContainerRef;
  readonly devices: readonly {
    readonly gpu: Gpu;
    /** Bytes; null where the container may use all of the GPU. */
    readonly memoryBytes: number | null;
    /** Hundredths of the GPU. */
    readonly share: number;
    /** Hundredths that it may use while others leave the GPU idle; null: no more than its share. */
    readonly softLimit: number | null;
  }[];
}

/** The directory of each allocation, which its container sees as /etc/vcuda. */
export interface SliceStore {
  directoryOf(allocationId: string): string;
  /** Files below it that the container may write; they exist once the directory is made. */
  readonly writableFiles: readonly string[];
  /** Makes the directory; with `fresh`, an old one of the same name is removed first. */
  prepare(allocationId: string, fresh: boolean): Promise<void>;
  /** The container is about to start: its limits are on disk and its socket is open when this resolves. */
  start(limits: SliceLimits): Promise<void>;
  /** The container is already running: existing files stay as they are, missing files are created. */
  restore(limits: SliceLimits): Promise<void>;
  remove(allocationId: string): Promise<void>;
  /** Every allocation id that a directory exists for. */
  list(): Promise<readonly string[]>;
}

/** The directories of pods that the original's plugin started; their containers see them as /etc/vcuda too. */
export interface LegacyStore {
  /** Serves these containers, as the original's plugin did; does nothing for those that are served. */
  open(holdings: readonly LegacyHolding[]): Promise<void>;
  /** Ends the service for every other pod, and removes the directories that the original's plugin made for others. */
  keepOnly(holdings: readonly LegacyHolding[]): Promise<void>;
}

/** CDI specifications of claim units. */
export interface UnitSpecs {
  /** Writes the specification of a unit; answers the name of each of its devices. */
  writeUnit(unitId: string, edits: UnitEdits): Promise<readonly string[]>;
  remove(unitId: string): Promise<void>;
}

/** Where the checkpoint lies. */
export interface CheckpointStore {
  /** Null when there is none. */
  load(): Promise<string | null>;
  save(text: string): Promise<void>;
}

/** What a container needs of the node besides its slice directory. */
export interface NodeFiles {
  /** `/dev/nvidia<minor>` of one GPU. */
  gpuNode(gpu: Gpu): DeviceNode;
  /** `/dev/nvidiactl`, `/dev/nvidia-uvm`, ... */
  commonNodes(): readonly DeviceNode[];
  /**
   * The driver's libraries: with the control library before them for limited containers. None where nothing is
   * mirrored.
   */
  libraryMounts(limited: boolean): readonly BindMount[];
}

/** Receives what happened; must not block and must not throw. */
export interface Notices {
  refused(kind: ResourceKind, size: number, refusal: Refusal): void;
  started(allocation: Allocation, owner: ContainerRef, gpuIndexes: readonly number[]): void;
  freed(allocation: Allocation): void;
  gpuUnhealthy(owners: readonly ContainerRef[], gpuUuid: string, reason: string): void;
}
