import { NVML_VALUE, nearer, type Level } from './level.js';
import { topologyOfPairs, type Topology } from './topology.js';

/** One pair in a matrix: its PCIe level, or NVLinks that hide it. */
export interface Link {
  readonly level: Level | null;
  readonly nvlinks: number;
}

/** One GPU in a matrix. */
export interface Device {
  /** Links to every GPU, in order, then to every other device (NICs). */
  readonly links: readonly Link[];
  /** CPUs or NUMA node near the GPU; equal texts for GPUs of one socket. */
  readonly affinity: string | null;
}

/**
 * Builds a topology from a matrix in which NVLink labels hide PCIe levels. PCIe is a tree, so two GPUs are no farther
 * apart than the farther of them is from any third device; the nearest such path counts. Without one, GPUs with the
 * same affinity are `NODE` and others `SYS`: never nearer than they really are.
 */
export function bridgeHiddenLevels(gpus: readonly Device[]): Topology {
  return topologyOfPairs(gpus.length, (a, b) => {
    const [from, to] = [gpus[a] as Device, gpus[b] as Device];
    const shown = from.links[b] as Link;
    return { level: shown.level ?? hiddenLevel(from, to), nvlinks: shown.nvlinks };
  });
}

function hiddenLevel(from: Device, to: Device): Level {
  let best: Level = from.affinity !== null && from.affinity === to.affinity ? 'NODE' : 'SYS';
  for (const [at, link] of from.links.entries()) {
    const onward = to.links[at]?.level ?? null;
    if (link.level === null || onward === null || link.level === 'X' || onward === 'X') continue;
    const way = NVML_VALUE[link.level] > NVML_VALUE[onward] ? link.level : onward;
    if (nearer(way, best)) best = way;
  }
  return best;
}
