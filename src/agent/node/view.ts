import type { MigInstance } from '../../gpu/gpu.js';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import type { Priority } from '../../gpu/priority.js';
import type { Level } from '../../gpu/topology/level.js';
import type { DeniedApi } from '../../abi/usage-file.js';

/** Health of a GPU; `agent/gpus/health.ts` explains each status. */
export interface HealthSnapshot {
  readonly status: 'healthy' | 'probation' | 'reset' | 'failed' | 'lost';
  /** Null if healthy. */
  readonly reason: string | null;
  readonly sinceMs: number;
}

/** `reason`: why not the driver. */
export type MemoryEnforcerSnapshot =
  { readonly by: 'driver'; readonly backend: 'dmem' | 'misc' } | { readonly by: 'library'; readonly reason: string };

/** One GPU of the node. Null: the driver does not report the value. */
export interface GpuSnapshot {
  /** The driver's index. */
  readonly index: number;
  readonly uuid: string;
  readonly model: string;
  /** Only of an instance of MIG. */
  readonly instance?: MigInstance;
  readonly pciBusId: string;
  readonly numaNode: number | null;
  readonly memoryBytes: number;
  /** Whether new containers may use it. */
  readonly usable: boolean;
  /**
   * What enforces memory limits beside the control library, or why the driver does not. Absent: the library alone,
   * because this driver has no such limits.
   */
  readonly memoryEnforcer?: MemoryEnforcerSnapshot;
  /** Set where containers share its multiprocessors, by MPS; absent: its time, by the control library. */
  readonly compute?: 'sm';
  readonly health: HealthSnapshot;
  /** Cores, and bytes, that are allocated to containers. */
  readonly allocatedCores: number;
  readonly allocatedMemoryBytes: number;
  readonly usedPercent: number | null;
  readonly usedMemoryBytes: number | null;
  readonly temperatureCelsius: number | null;
  readonly powerWatts: number | null;
  /** Host pids of processes that belong to no container with an allocation on this GPU. */
  readonly foreignPids: readonly number[];
  /** Samples since the agent started, and failed ones. */
  readonly samples: number;
  readonly failedSamples: number;
}

/** Counters of one container on one GPU, since it started as far as the agent knows; they never fall. */
export interface SliceCounters {
  readonly launches: number;
  readonly waits: number;
  readonly throttledSeconds: number;
  readonly chargedSeconds: number;
  readonly deniedBytes: number;
  readonly denied: Readonly<Record<DeniedApi, number>>;
}

/** One container on one GPU: allocation, limits and use. */
export interface SliceSnapshot {
  readonly gpuUuid: string;
  readonly gpuIndex: number;
  readonly pciBusId: string;
  readonly gpuMemoryBytes: number;
  /** Its allocation: cores; bytes, null if it has all of the GPU. */
  readonly allocatedCores: number;
  readonly allocatedMemoryBytes: number | null;
  /** The present limits: as allocated, unless its pod or an operator lowered them. */
  readonly share: number;
  /** Cores that it may use while other containers leave the GPU idle; null: no more than its share. */
  readonly softLimit: number | null;
  /** Absent: normal. */
  readonly priority?: Priority;
  readonly memoryLimitBytes: number | null;
  /** The driver enforces the memory limit too. Absent: the control library alone. */
  readonly memoryByDriver?: true;
  /** Percent of the GPU. */
  readonly usedPercent: number;
  readonly usedMemoryBytes: number;
  /** The driver's own part of `usedMemoryBytes`. */
  readonly driverMemoryBytes: number;
  /** Limit and use of memory on the host, beyond the memory limit; not part of the figures above. */
  readonly hostBackedLimitBytes: number;
  readonly hostBackedBytes: number;
  readonly peakMemoryBytes: number | null;
  readonly pids: readonly number[];
  /** When it used the GPU last, milliseconds since 1970; null if it has not since an agent observes it. */
  readonly lastUsedMs: number | null;
  /** Null while the slice has not been started. */
  readonly counters: SliceCounters | null;
  /**
   * Wanted minus received GPU time in the last seconds, as a fraction of the GPU; null while it was throttled less than
   * 80 % of the time.
   */
  readonly controlError: number | null;
  /** Factor on the charges of its launches. */
  readonly correction: number;
  /**
   * The driver's figures minus the container's own account: GPU time in the last seconds, as a fraction of the GPU;
   * bytes now. Null if the driver does not report them.
   */
  readonly timeDrift: number | null;
  readonly memoryDriftBytes: number | null;
}

/** An audit finding about a container. */
export interface FindingSnapshot {
  readonly code: string;
  readonly message: string;
  readonly serious: boolean;
}

/** One request of a resource claim. */
export interface ClaimSnapshot {
  readonly namespace: string;
  readonly name: string;
  readonly request: string;
}

/** A container whose GPU memory is on the host, or on its way there or back. */
export interface SuspensionSnapshot {
  readonly step: 'suspending' | 'suspended' | 'resuming';
  readonly sinceMs: number;
  /**
   * Who wanted it: an operator of the node, the pod by its annotation, nobody, for it was idle, or another container,
   * whose turn it was.
   */
  readonly by: 'operator' | 'pod' | 'idle' | 'turn';
  /** Its calls wait until someone resumes it; otherwise a call does. */
  readonly held: boolean;
  /** When one of its calls asked for the GPU since; null: none did. */
  readonly wantsSinceMs: number | null;
  /** What its processes had on the GPU. */
  readonly hostBytes: number;
}

/** One allocation: the GPUs of one container, or of several that use them in turn. */
export interface AllocationSnapshot {
  readonly id: string;
  readonly phase: 'allocated' | 'started';
  /** Its limits are not enforced, only compared with its use. */
  readonly unenforced: boolean;
  /**
   * Containers that use it in turn; the last one runs. Empty until the container starts; with empty texts if the
   * kubelet has not named it.
   */
  readonly owners: readonly ContainerRef[];
  /** The claims that it was made for; absent for an allocation of the device plugin. */
  readonly claims?: readonly ClaimSnapshot[];
  /** Milliseconds since 1970. */
  readonly allocatedAtMs: number;
  /** Cores, in sum over all GPUs. */
  readonly cores: number;
  /** Null if no memory was requested: all memory of its GPUs. */
  readonly memoryBytes: number | null;
  /** Number of living processes that sent a greeting. */
  readonly processes: number;
  readonly findings: readonly FindingSnapshot[];
  /** Refusals of its socket: connections, and how often it was closed because of too many at once. */
  readonly refusedConnections: number;
  readonly socketFloods: number;
  /** Absent if its pod names none. */
  readonly quotaGroup?: string;
  /** Absent while it runs. */
  readonly suspension?: SuspensionSnapshot;
  readonly slices: readonly SliceSnapshot[];
}

/** A group of the PCIe tree, or a GPU (level X, one position). */
export interface TreeSnapshot {
  readonly level: Level;
  /** Positions in `gpus`. */
  readonly positions: readonly number[];
  readonly children: readonly TreeSnapshot[];
}

/** The state of the node at one moment, as plain values for JSON. */
export interface NodeSnapshot {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly node: string;
  readonly version: string;
  readonly driverVersion: string | null;
  /** Why the GPU driver does not answer; null if it does. */
  readonly driverOutage: string | null;
  readonly notReady: readonly string[];
  readonly gpus: readonly GpuSnapshot[];
  readonly tree: readonly TreeSnapshot[];
  /** Two positions in `gpus`, and the NVLinks between them. */
  readonly nvlinks: readonly (readonly [number, number, number])[];
  readonly allocations: readonly AllocationSnapshot[];
}

/** Facts from the pod of a container; empty without an API server. */
export interface PodFacts {
  /** Value of the environment variable SUBMITTER of the first container; empty if it is not set. */
  readonly user: string;
  /** Value of the annotation clusterName; empty without it. */
  readonly cluster: string;
  /** Its containers without a GPU. */
  readonly otherContainers: readonly string[];
  /** The quota group that its label names; null without the label. */
  readonly quotaGroup: string | null;
}

/** State of the agent as a plugin of the container runtime. */
export interface NriCounts {
  /** Whether the runtime asks the agent about containers. */
  readonly connected: boolean;
  /** Number of containers that were corrected at their creation. */
  readonly corrected: number;
}

/** State of the agent as a driver of Dynamic Resource Allocation. */
export interface DraCounts {
  /** Whether the kubelet has registered the driver. */
  readonly registered: boolean;
  /** Claims refused because others hold the amounts that the scheduler gave them. */
  readonly overlaps: number;
  /** Failed writes of the node's ResourceSlices. */
  readonly publishErrors: number;
  /** Features of devices, and whether the API server stores them. */
  readonly features: ReadonlyMap<string, boolean>;
}

/** Counts of events since the agent started, by kind. */
export interface NodeCounts {
  /** Refused requests of the kubelet, by code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Errors in the agent and around it, by cause. */
  readonly errors: ReadonlyMap<string, number>;
  /** Raised findings of the audit, by code. */
  readonly findings: ReadonlyMap<string, number>;
  /** Evictions that were requested for a finding. */
  readonly evictions: number;
  /** Counts of the Node Resource Interface; null if it is not used. */
  readonly nri: NriCounts | null;
  /** Null if the node gives no GPU through claims. */
  readonly dra: DraCounts | null;
}

/** The use at one moment, of started containers: what the history and the record of use keep. */
export interface UseMoment {
  readonly atMs: number;
  readonly gpus: readonly Pick<GpuSnapshot, 'uuid' | 'usedPercent' | 'usedMemoryBytes'>[];
  readonly allocations: readonly {
    readonly id: string;
    /** The container that was started last. */
    readonly owner: ContainerRef;
    readonly slices: readonly (Pick<SliceSnapshot, 'gpuUuid' | 'usedPercent' | 'usedMemoryBytes'> & {
      readonly counters: Pick<SliceCounters, 'throttledSeconds' | 'launches'> | null;
      readonly priority: Priority;
      /** Whether it may use more than its share. */
      readonly borrows: boolean;
    })[];
  }[];
}

/** The display's interface to the agent. All answers come from memory. */
export interface NodeView {
  readonly nodeName: string;
  readonly version: string;
  snapshot(): NodeSnapshot;
  /**
   * The part of the snapshot that the history needs, at low cost: the counters have their values of the last steering
   * tick.
   */
  use(): UseMoment;
  /** The topology as the original prints it; extended: with NVLinks, model and availability. */
  graph(options?: { readonly extended?: boolean }): string;
  pod(podUid: string): PodFacts | null;
  counts(): NodeCounts;
  /** Reasons why the agent cannot serve pods yet; empty when it can. */
  notReady(): readonly string[];
}
