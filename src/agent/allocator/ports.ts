import type { BindMount, ContainerEdits, DeviceNode, UnitEdits } from '../../gpu/container-edits.js';
import type { Gpu } from '../../gpu/gpu.js';
import type { Allocation, ContainerRef } from '../../gpu/ledger/allocation.js';
import type { ClaimUnit } from '../../gpu/ledger/claim-unit.js';
import type { Holder } from '../../gpu/ledger/identify.js';
import type { PendingContainers } from '../../gpu/ledger/pending.js';
import type { RequestRefusal } from '../../gpu/request.js';
import type { ResourceKind } from '../../gpu/resources.js';
import type { ResizeStatus } from '../../manifests/gpu-resize.js';

/** The pods of this node as the agent knows them; every answer except `untilPending` comes from memory at once. */
export interface PodKnowledge {
  /** Containers that wait for GPUs; null if the agent does not know the node's pods. */
  pending(): PendingContainers;
  /**
   * Resolves when a container waits for exactly this amount, or after half a second at most: the kubelet may send a
   * request before the pod watch shows the pod.
   */
  untilPending(kind: ResourceKind, size: number): Promise<void>;
  /** Whether the pod says that its containers may be suspended; null for an unknown pod. Answers from memory. */
  isSuspendable(podUid: string): boolean | null;
  /** UIDs of pods that succeeded, failed or were deleted. */
  ended(): ReadonlySet<string>;
  /** Whether the API server has this pod on this node; null while that is unknown. Answers from memory. */
  exists(podUid: string): boolean | null;
  /** Asks the API server for pods of which it is not known whether they exist; resolves after some seconds at most. */
  ask(podUids: ReadonlySet<string>): Promise<void>;
}

/** The processes and containers of a pod that this machine still has. */
export interface PodRemains {
  /** Names of the running containers; null if processes of the pod run and their containers are unknown. */
  readonly running: ReadonlySet<string> | null;
  /** Whether the machine still has a process of the pod, or a container of it, running or ended. */
  readonly any: boolean;
}

/** The container runtime's and the control groups' view of pods. */
export interface PodEvidence {
  /**
   * By pod UID; null for a pod of which it is unknown. Many pods cost hardly more than one. Answers within seconds,
   * even if the runtime hangs.
   */
  remainsOf(podUids: ReadonlySet<string>): Promise<ReadonlyMap<string, PodRemains | null>>;
}

/** The kubelet's answers about containers and the ids that they hold. */
export interface HolderKnowledge {
  /** Null if the kubelet names no container or does not answer. */
  holderOf(kind: ResourceKind, ids: readonly string[]): Promise<Holder | null>;
  /** The holders that the kubelet names now; the list may be incomplete. */
  known(): Promise<readonly Holder[]>;
  /** All holders; null unless the kubelet answered in full. A device that is not in the list is not held. */
  all(): Promise<readonly Holder[] | null>;
}

/** The allocation of one container, and the variables and mounts that it needs. */
export interface GivenContainer {
  /** Name of the slice's directory. */
  readonly slice: string;
  readonly gpus: readonly Gpu[];
  readonly environment: ContainerEdits['environment'];
  readonly mounts: ContainerEdits['mounts'];
}

/** CDI specifications of claim units. */
export interface UnitSpecs {
  /** Writes the specification of a unit; returns the name of each of its devices. */
  writeUnit(unitId: string, edits: UnitEdits): Promise<readonly string[]>;
  remove(unitId: string): Promise<void>;
}

/** Records of prepared claim units, which outlive the checkpoint. */
export interface UnitRecords {
  write(unit: ClaimUnit): Promise<void>;
  /** Writes what containers can read about a unit's devices; returns the path of the file. */
  writeMetadata(unitId: string, text: string): Promise<string>;
  remove(unitId: string): Promise<void>;
}

/** Storage of the checkpoint. */
export interface CheckpointStore {
  /** Null if there is no checkpoint. */
  load(): Promise<string | null>;
  save(text: string): Promise<void>;
  /** Keeps the checkpoint of the original, for the way back to it. */
  keepOriginal(text: string): Promise<void>;
}

/** The device nodes and libraries that a container needs besides its slice directory. */
export interface NodeFiles {
  /** `/dev/nvidia<minor>` of one GPU first; of a MIG instance also the nodes that give access to it. */
  gpuNodes(gpu: Gpu): readonly DeviceNode[];
  /** `/dev/nvidiactl`, `/dev/nvidia-uvm`, ... */
  commonNodes(): readonly DeviceNode[];
  /** The driver's libraries; for a limited container the control library comes first. Empty if nothing is mirrored. */
  libraryMounts(limited: boolean): readonly BindMount[];
}

/** Receives events of claims; must not block and must not throw. */
export interface ClaimNotices {
  prepared(unit: ClaimUnit, gpuIndexes: readonly number[]): void;
  released(unit: ClaimUnit): void;
}

/** Receives events of the allocator; must not block and must not throw. */
export interface Notices {
  refused(kind: ResourceKind, size: number, refusal: RequestRefusal): void;
  started(allocation: Allocation, owner: ContainerRef, gpus: readonly Gpu[]): void;
  /** The node's GPUs changed, and with them perhaps their indexes. */
  renumbered(gpus: readonly Gpu[]): void;
  freed(allocation: Allocation): void;
  /** What a container has that its pod asked to resize. */
  resized(owner: ContainerRef, status: ResizeStatus): void;
  gpuUnhealthy(owners: readonly ContainerRef[], gpuUuid: string, reason: string): void;
}
