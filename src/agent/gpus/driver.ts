import type { Gpu } from '../../gpu/gpu.js';
import type { FoundInstance, MigPlace, PartitionableGpu } from '../../gpu/mig-partition.js';
import type { GpuProcess, GpuSample } from '../../gpu/sample.js';
import type { Topology } from '../../gpu/topology/topology.js';

/** One GPU as its driver describes it. Null where the driver or the GPU does not report a value. */
export interface GpuDetails extends Gpu {
  /** Such as `9.0`. */
  readonly computeCapability: string | null;
  /** Whether ECC is enabled now. */
  readonly ecc: boolean | null;
  /** Whether the GPU is partitioned into MIG instances now; null for an instance. */
  readonly mig: boolean | null;
}

/** A GPU that exists but cannot be shared, and the reason. */
export interface ExcludedGpu {
  readonly gpu: GpuDetails;
  readonly reason: string;
}

/** The GPUs of this machine at one moment. */
export interface Inventory {
  readonly driverVersion: string | null;
  /** CUDA version that the driver supports: 1000 x major + 10 x minor. */
  readonly cudaVersion: number | null;
  /** GPUs that can be shared, in the driver's order; `index` also counts excluded ones, so numbers may be skipped. */
  readonly gpus: readonly GpuDetails[];
  /** Position i of `topology` is `gpus[i]`. */
  readonly topology: Topology;
  readonly excluded: readonly ExcludedGpu[];
  /** GPUs in MIG mode that the agent divides; they are excluded, and their instances are among `gpus`. Absent: none. */
  readonly partitionable?: readonly PartitionableGpu<GpuDetails>[];
  /** Notes for operators: unequal GPUs, and values that the driver does not report with their consequences. */
  readonly notes: readonly string[];
}

/** Events of GPUs. */
export type DriverEvent =
  /** The driver reported error `xid` for a GPU. */
  | { readonly kind: 'xid'; readonly uuid: string; readonly xid: number }
  /** Memory errors that ECC could not correct. */
  | { readonly kind: 'ecc'; readonly uuid: string }
  /** The GPU does not answer any more: it has fallen off the bus. */
  | { readonly kind: 'lost'; readonly uuid: string; readonly reason: string }
  /** A lost GPU answers again. */
  | { readonly kind: 'found'; readonly uuid: string }
  /** The driver itself does not answer; the state of all GPUs is unknown. */
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'reachable' }
  /** GPUs were added or removed: the inventory must be read again. */
  | { readonly kind: 'changed' };

export type DriverListener = (event: DriverEvent) => void;

/** Why the driver did not answer; `cause` is the driver's own error. */
export class DriverError extends Error {
  readonly code: 'unreachable' | 'timeout' | 'gpu-lost' | 'unknown-gpu' | 'failed';

  constructor(code: DriverError['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DriverError';
    this.code = code;
  }
}

/** What became of an instance that was to be destroyed. */
export type Destroyed = 'destroyed' | 'missing' | 'in-use' | 'foreign';

/** Creates and destroys MIG instances. After a change the driver reports `changed`. */
export interface MigPartitioner {
  /** The instances that a GPU has at this moment. */
  instances(gpuUuid: string): Promise<readonly FoundInstance[]>;
  /** Creates an instance with one compute instance; returns its UUID. Leaves nothing after a failure. */
  create(place: MigPlace): Promise<string>;
  /**
   * Destroys the instance at a place unless a process uses it. `foreign`: it has another UUID than `uuid`, and stays.
   * `uuid` null: whatever is there.
   */
  destroy(place: MigPlace, uuid: string | null): Promise<Destroyed>;
}

/** Memory limits of a control group on one GPU, in bytes. */
export interface GroupLimits {
  /** Memory that the group gets even if other groups want it; 0: none. At most `hardBytes`. */
  readonly softBytes: number;
  /** An allocation beyond it fails; null: no limit. */
  readonly hardBytes: number | null;
}

/** What became of limits that were to be set: `gone`: the group does not exist; otherwise the driver's reason. */
export type GroupLimited = 'set' | 'gone' | { readonly refused: string };

/** The limits that a group has; `none`: it exists, and has no limits; `gone`: it does not exist. */
export type GroupMemory = (GroupLimits & { readonly usedBytes: number }) | 'none' | 'gone';

/**
 * Memory limits that the driver itself keeps, for every program of a control group (version 2). NVIDIA's drivers have
 * them from 615 on. A group is named by the full path of its folder.
 */
export interface GroupLimiter {
  /** Why the driver keeps no limits on this GPU; null: it does. `group` is one that exists. */
  problem(gpuUuid: string, group: string): Promise<string | null>;
  /** Limits of 0 and null remove those that the group had. */
  set(gpuUuid: string, group: string, limits: GroupLimits): Promise<GroupLimited>;
  get(gpuUuid: string, group: string): Promise<GroupMemory>;
}

/**
 * The GPUs of this machine. Each vendor has one implementation in a separate folder; `contract.test.ts` tests all of
 * them. GPUs are named by UUID, because indexes change when a GPU is added or removed. Every call rejects with a
 * `DriverError` if the driver does not answer, and never hangs.
 */
export interface Driver {
  /** Name on the command line: `nvidia`, `sim`, `dummy`. */
  readonly name: string;
  /** Null if the driver cannot divide GPUs. */
  readonly partitioner: MigPartitioner | null;
  /** Null if no driver of this kind keeps memory limits. */
  readonly groupLimiter: GroupLimiter | null;
  inventory(): Promise<Inventory>;
  sample(uuid: string): Promise<GpuSample>;
  processes(uuid: string): Promise<readonly GpuProcess[]>;
  /**
   * Energy that a GPU has used since it was reset or its driver was loaded, in millijoules; null if it does not report
   * it. A value below an earlier one means that the GPU was reset in between.
   */
  energyMillijoules(uuid: string): Promise<number | null>;
  /** Calls `listener` with every event from now on, until the returned function is called. */
  subscribe(listener: DriverListener): () => void;
  /**
   * Closes the driver; listeners get no further events. May be called twice. Rejects when a call into the driver does
   * not return.
   */
  close(): Promise<void>;
}
