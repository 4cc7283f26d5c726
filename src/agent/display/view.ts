import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import type { Level } from '../../gpu/topology/level.js';
import type { DeniedApi } from '../../abi/usage-file.js';

/** How a GPU is; `core/health.ts` says what each status means. */
export interface HealthSnapshot {
  readonly status: 'healthy' | 'probation' | 'reset' | 'failed' | 'lost';
  /** Null when healthy. */
  readonly reason: string | null;
  readonly sinceMs: number;
}

/** One GPU of the node. Null: the driver does not say. */
export interface GpuSnapshot {
  /** As the driver counts. */
  readonly index: number;
  readonly uuid: string;
  readonly model: string;
  readonly pciBusId: string;
  readonly numaNode: number | null;
  readonly memoryBytes: number;
  /** New containers may be placed on it. */
  readonly usable: boolean;
  readonly health: HealthSnapshot;
  /** Hundredths of the GPU, and bytes, that are given to containers. */
  readonly givenCores: number;
  readonly givenMemoryBytes: number;
  readonly usedPercent: number | null;
  readonly usedMemoryBytes: number | null;
  readonly temperatureCelsius: number | null;
  readonly powerWatts: number | null;
  /** Host pids of processes that belong to no container which was given this GPU. */
  readonly strangerPids: readonly number[];
  /** Samples since the agent started, and failed ones. */
  readonly looks: number;
  readonly failedLooks: number;
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

/** What one container has and does on one GPU. */
export interface SliceSnapshot {
  readonly gpuUuid: string;
  readonly gpuIndex: number;
  readonly pciBusId: string;
  readonly gpuMemoryBytes: number;
  /** What it was given: hundredths of the GPU; bytes, null where it has all of the GPU. */
  readonly givenCores: number;
  readonly givenMemoryBytes: number | null;
  /** The limits in force: the same, unless its pod or an operator lowered them. */
  readonly share: number;
  /** Hundredths it may use while others leave the GPU idle; null: no more than its share. */
  readonly softLimit: number | null;
  readonly memoryLimitBytes: number | null;
  /** Percent of the GPU. */
  readonly usedPercent: number;
  readonly usedMemoryBytes: number;
  /** Of that, what the driver keeps for itself. */
  readonly driverMemoryBytes: number;
  /** What it may hold beyond its memory limit, on the host, and what it does; no part of the above. */
  readonly hostBackedLimitBytes: number;
  readonly hostBackedBytes: number;
  readonly peakMemoryBytes: number | null;
  readonly pids: readonly number[];
  /** Null while the slice has not been started. */
  readonly counters: SliceCounters | null;
  /** Asked minus given in the last seconds, as a fraction of the GPU; null while it did not want its share. */
  readonly controlError: number | null;
  /** Factor on what its launches are charged. */
  readonly correction: number;
  /**
   * The driver's view less the container's own account: GPU time in the last seconds, as a fraction of the GPU; bytes
   * now. Null where the driver does not say.
   */
  readonly timeDrift: number | null;
  readonly memoryDriftBytes: number | null;
}

/** What the audit has against a container. */
export interface FindingSnapshot {
  readonly code: string;
  readonly message: string;
  readonly serious: boolean;
}

/** One allocation: the GPUs of one container, or of several that use them in turn. */
export interface AllocationSnapshot {
  readonly id: string;
  readonly phase: 'allocated' | 'started';
  /** Its limits are not enforced, only compared with its use. */
  readonly unenforced: boolean;
  /**
   * In turn; the last one runs. Empty until the container starts, and with empty texts where the kubelet has not said.
   */
  readonly owners: readonly ContainerRef[];
  /** Milliseconds since 1970. */
  readonly allocatedAtMs: number;
  /** Hundredths of a GPU over all GPUs. */
  readonly cores: number;
  /** Null where no memory was asked for: all of its GPUs. */
  readonly memoryBytes: number | null;
  /** Processes that greeted the agent and live. */
  readonly processes: number;
  readonly findings: readonly FindingSnapshot[];
  /** What its socket refused: connections, and how often it was closed because of too many at once. */
  readonly refusedConnections: number;
  readonly socketFloods: number;
  readonly slices: readonly SliceSnapshot[];
}

/** A group of the PCIe tree, or a GPU (level X, one position). */
export interface TreeSnapshot {
  readonly level: Level;
  /** Positions in `cards`. */
  readonly positions: readonly number[];
  readonly children: readonly TreeSnapshot[];
}

/** The state of the node at one moment; plain values, fit for JSON. */
export interface NodeSnapshot {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly node: string;
  readonly version: string;
  readonly driverVersion: string | null;
  /** Why the GPU driver does not answer; null while it does. */
  readonly driverOutage: string | null;
  readonly notReady: readonly string[];
  readonly cards: readonly GpuSnapshot[];
  readonly tree: readonly TreeSnapshot[];
  /** Two positions in `cards`, and the NVLinks between them. */
  readonly nvlinks: readonly (readonly [number, number, number])[];
  readonly allocations: readonly AllocationSnapshot[];
}

/** Facts from the pod of a container; none without an API server. */
export interface PodFacts {
  /** Value of the environment variable SUBMITTER of the first container; empty without. */
  readonly user: string;
  /** Value of the annotation clusterName; empty without. */
  readonly cluster: string;
  /** Its containers that hold no GPU. */
  readonly otherContainers: readonly string[];
}

/** How the agent is a plugin of the container runtime. */
export interface NriCounts {
  /** The runtime asks about containers. */
  readonly connected: boolean;
  /** Containers that were made with a correction. */
  readonly corrected: number;
}

/** What happened since the agent started, by kind. */
export interface NodeCounts {
  /** Requests of the kubelet that were refused, by code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** What went wrong in the agent and around it, by cause. */
  readonly errors: ReadonlyMap<string, number>;
  /** Findings of the audit that were raised, by code. */
  readonly findings: ReadonlyMap<string, number>;
  /** Pods that were to be evicted for one. */
  readonly evictions: number;
  /** The Node Resource Interface; null where it is not used. */
  readonly nri: NriCounts | null;
}

/** What is used at one moment: the part of a snapshot that is kept as history. */
export interface UseMoment {
  readonly atMs: number;
  readonly cards: readonly Pick<GpuSnapshot, 'uuid' | 'usedPercent' | 'usedMemoryBytes'>[];
  readonly allocations: readonly {
    readonly id: string;
    readonly slices: readonly (Pick<SliceSnapshot, 'gpuUuid' | 'usedPercent' | 'usedMemoryBytes'> & {
      readonly counters: Pick<SliceCounters, 'throttledSeconds'> | null;
    })[];
  }[];
}

/** What the display needs of the agent. All answers come from memory. */
export interface NodeView {
  readonly nodeName: string;
  readonly version: string;
  snapshot(): NodeSnapshot;
  /** The part of the snapshot that the history needs, at low cost: counters are as of the last steering tick. */
  use(): UseMoment;
  /** The topology as the original prints it; extended: with NVLinks, model and whether the GPU may be chosen. */
  graph(options?: { readonly extended?: boolean }): string;
  pod(podUid: string): PodFacts | null;
  counts(): NodeCounts;
  /** Empty when the agent can serve pods; else what it waits for. */
  notReady(): readonly string[];
}
