/**
 * A choice of some whole GPUs: the candidates, the count, and the required memory. GPUs are positions of the topology.
 */
export interface Choice {
  /** Free positions that may be chosen, ascending. */
  readonly free: readonly number[];
  /** Every free position of the machine; later jobs get the rest of the GPUs. */
  readonly nodeFree: readonly number[];
  /** Free positions that must be part of the answer. */
  readonly must: readonly number[];
  /** How many GPUs are wanted, including `must`. */
  readonly count: number;
  /** Memory that the chosen GPUs must have in sum; 0 without a memory request. */
  readonly needMemoryBytes: number;
  /** Memory of each position. */
  readonly memoryBytes: readonly number[];
  /** Number of processes at each position: of equal subtrees the one with fewer processes is chosen. */
  readonly processCounts: readonly number[];
}

/** True when a complete set has the requested memory. */
export function serves(choice: Choice, positions: readonly number[]): boolean {
  if (choice.needMemoryBytes <= 0) return true;
  return (
    positions.reduce((sum, position) => sum + (choice.memoryBytes[position] as number), 0) >= choice.needMemoryBytes
  );
}
