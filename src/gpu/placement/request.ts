import type { DividedRequest } from '../division.js';
import type { GpuSelection } from '../gpu-selection.js';

/**
 * The request of one container. Fewer than 100 cores are a part of one GPU; otherwise a multiple of 100 means whole
 * GPUs.
 */
export interface PlacementRequest extends DividedRequest {
  /** What the pod's annotations say about its GPUs; absent: any GPUs. */
  readonly selection?: GpuSelection;
}

/** GPUs are given by `Gpu.index`. */
export interface PlacementOptions {
  /** GPUs that a scheduler predicted: chosen if they fit, else ignored. */
  readonly hint?: readonly number[];
  /** The only GPUs that may be chosen; absent: all. */
  readonly among?: readonly number[];
  /** GPUs that must be part of the answer; their slots count reused ids as free. */
  readonly mustInclude?: readonly number[];
}

/** The options in positions of the topology. */
export interface Scope {
  readonly hint: readonly number[];
  readonly among: readonly number[];
  readonly must: readonly number[];
}
