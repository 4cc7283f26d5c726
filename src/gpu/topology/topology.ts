import type { Level } from './level.js';

/**
 * The connections between the GPUs of one machine. Rows and columns are positions: the order of the GPUs in the
 * inventory, which is the driver's. Both matrices are square and symmetric. A topology is immutable; a machine that
 * changes gets a new one.
 */
export interface Topology {
  /** PCIe distance of each pair, `X` on the diagonal. */
  readonly levels: readonly (readonly Level[])[];
  /** Active NVLinks between each pair, through bridges or NVSwitch; 0 for none and on the diagonal. */
  readonly nvlinks: readonly (readonly number[])[];
}

/** Number of GPUs in the topology. */
export function gpuCount(topology: Topology): number {
  return topology.levels.length;
}

/** PCIe level between two positions. */
export function levelBetween(topology: Topology, a: number, b: number): Level {
  const level = topology.levels[a]?.[b];
  if (level === undefined) throw new RangeError(`no GPUs at positions ${a} and ${b}`);
  return level;
}

/** Active NVLinks between two positions. */
export function linksBetween(topology: Topology, a: number, b: number): number {
  const links = topology.nvlinks[a]?.[b];
  if (links === undefined) throw new RangeError(`no GPUs at positions ${a} and ${b}`);
  return links;
}

/** True when any two GPUs of the machine are joined by NVLink. */
export function hasNvlink(topology: Topology): boolean {
  return topology.nvlinks.some((row) => row.some((links) => links > 0));
}

/** Builds a topology; `pair` returns the level and the number of NVLinks of two positions (`a < b`). */
export function topologyOfPairs(
  count: number,
  pair: (a: number, b: number) => { level: Level; nvlinks: number },
): Topology {
  const levels = Array.from({ length: count }, () => new Array<Level>(count).fill('X'));
  const nvlinks = Array.from({ length: count }, () => new Array<number>(count).fill(0));
  for (let a = 0; a < count; a++) {
    for (let b = a + 1; b < count; b++) {
      const known = pair(a, b);
      for (const [row, column] of [
        [a, b],
        [b, a],
      ] as const) {
        (levels[row] as Level[])[column] = known.level;
        (nvlinks[row] as number[])[column] = known.nvlinks;
      }
    }
  }
  return { levels, nvlinks };
}

/** A machine without known topology: `count` GPUs, every pair at distance `level`. */
export function uniformTopology(count: number, level: Level = 'SYS'): Topology {
  return topologyOfPairs(count, () => ({ level, nvlinks: 0 }));
}

/** The topology of a subset of the GPUs: its position i is `positions[i]` of the given topology. */
export function subTopology(topology: Topology, positions: readonly number[]): Topology {
  const at = (index: number) => positions[index] as number;
  return topologyOfPairs(positions.length, (a, b) => ({
    level: levelBetween(topology, at(a), at(b)),
    nvlinks: linksBetween(topology, at(a), at(b)),
  }));
}
