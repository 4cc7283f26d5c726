/** What one container asks for. Cores below 100 are a part of one GPU; else a multiple of 100, that many whole GPUs. */
export interface PlacementRequest {
  readonly cores: number;
  /** On the one GPU of a part; in sum over whole GPUs, where 0 means that none was asked for. */
  readonly memoryBytes: number;
  /** Several whole GPUs have to be of one model and memory; otherwise they are where that is possible. */
  readonly equalGpus?: boolean;
}

/** All of these are numbers of `Gpu.index`. */
export interface PlacementOptions {
  /** GPUs that a scheduler predicted: taken when they can serve, else ignored. */
  readonly hint?: readonly number[];
  /** Only these may be chosen; absent, all. */
  readonly among?: readonly number[];
  /** These have to be part of the answer; what they are to be reused for counts as free in their slots. */
  readonly mustInclude?: readonly number[];
}

/** The options in positions of the topology. */
export interface Scope {
  readonly hint: readonly number[];
  readonly among: readonly number[];
  readonly must: readonly number[];
}
