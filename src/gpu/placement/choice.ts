/**
 * Some whole GPUs are to be chosen: from which, how many, and what they need to have. GPUs are positions of the
 * topology.
 */
export interface Choice {
  /** Free positions that may be chosen, ascending. */
  readonly free: readonly number[];
  /** Every free position of the machine: what is left of these is what later jobs get. */
  readonly nodeFree: readonly number[];
  /** Free positions that have to be part. */
  readonly must: readonly number[];
  /** How many GPUs are wanted, those of `must` included. */
  readonly count: number;
  /** What the chosen GPUs have to have in sum; 0 where no memory was asked for. */
  readonly needMemoryBytes: number;
  /** Memory of each position. */
  readonly memoryBytes: readonly number[];
  /** Processes that run at each position: of equal subtrees the quieter one is taken. */
  readonly processCounts: readonly number[];
}

/** True when a complete set has the memory that is asked for. */
export function serves(choice: Choice, positions: readonly number[]): boolean {
  if (choice.needMemoryBytes <= 0) return true;
  return (
    positions.reduce((sum, position) => sum + (choice.memoryBytes[position] as number), 0) >= choice.needMemoryBytes
  );
}
