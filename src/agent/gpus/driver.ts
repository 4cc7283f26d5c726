import type { Gpu } from '../../gpu/gpu.js';
import type { GpuProcess, GpuSample } from '../../gpu/sample.js';
import type { Topology } from '../../gpu/topology/topology.js';

/** One GPU as its driver describes it. Null where the driver or the GPU has no answer. */
export interface GpuDetails extends Gpu {
  /** `9.0`. */
  readonly computeCapability: string | null;
  /** ECC is on now. */
  readonly ecc: boolean | null;
  /** The GPU is cut into MIG instances now. */
  readonly mig: boolean | null;
}

/** A GPU that is there but cannot be shared, and why. */
export interface ExcludedGpu {
  readonly gpu: GpuDetails;
  readonly reason: string;
}

/** The GPUs of this machine at one moment. */
export interface Inventory {
  readonly driverVersion: string | null;
  /** CUDA version that the driver supports: 1000 x major + 10 x minor. */
  readonly cudaVersion: number | null;
  /** GPUs that can be shared, in the driver's order; `index` counts excluded ones too, so it may skip numbers. */
  readonly gpus: readonly GpuDetails[];
  /** Position i is `gpus[i]`. */
  readonly topology: Topology;
  readonly excluded: readonly ExcludedGpu[];
  /** What an operator should know about this machine: unequal GPUs, answers that are missing and what that costs. */
  readonly notes: readonly string[];
}

/** Events of GPUs between two requests. */
export type DriverEvent =
  /** The driver reported error `xid` of a GPU. */
  | { readonly kind: 'xid'; readonly uuid: string; readonly xid: number }
  /** Memory errors that ECC could not correct. */
  | { readonly kind: 'ecc'; readonly uuid: string }
  /** The GPU no longer answers: fallen off the bus. */
  | { readonly kind: 'lost'; readonly uuid: string; readonly reason: string }
  /** A lost GPU answers again. */
  | { readonly kind: 'found'; readonly uuid: string }
  /** The driver itself does not answer; nothing is known of any GPU. */
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'reachable' }
  /** GPUs were added or removed: the inventory must be read again. */
  | { readonly kind: 'changed' };

export type DriverListener = (event: DriverEvent) => void;

/** Why the driver did not answer; `cause` holds what it said. */
export class DriverError extends Error {
  readonly code: 'unreachable' | 'timeout' | 'gpu-lost' | 'unknown-gpu' | 'failed';

  constructor(code: DriverError['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DriverError';
    this.code = code;
  }
}

/**
 * The GPUs of this machine. Each vendor is one implementation in its own folder; `contract.test.ts` tests all of them.
 * GPUs are named by UUID, because indexes change when a GPU is added or removed. Every call rejects with a
 * `DriverError` when the driver does not answer, and never hangs.
 */
export interface Driver {
  /** As on the command line: `nvidia`, `sim`, `dummy`. */
  readonly name: string;
  inventory(): Promise<Inventory>;
  sample(uuid: string): Promise<GpuSample>;
  processes(uuid: string): Promise<readonly GpuProcess[]>;
  /**
   * Energy that a GPU has used since it was reset or its driver was loaded, in millijoules; null where it does not
   * tell. It only ever grows: less than before means that the GPU was reset in between.
   */
  energyMillijoules(uuid: string): Promise<number | null>;
  /** Calls `listener` with everything that happens from now on, until the answer is called. */
  subscribe(listener: DriverListener): () => void;
  /**
   * Lets go of the driver; listeners hear nothing more. May be called twice. Rejects when a call into the driver will
   * not return.
   */
  close(): Promise<void>;
}
