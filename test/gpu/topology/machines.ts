import type { Gpu } from '../../../src/gpu/gpu.js';
import type { GpuSlot } from '../../../src/gpu/placement/slot.js';
import { nearer, type Level } from '../../../src/gpu/topology/level.js';
import { topologyOfPairs, type Topology } from '../../../src/gpu/topology/topology.js';

export const GIB = 1024 ** 3;

/** GPUs that a level joins: `['PIX', [0, 1], [2, 3]]`. */
export type Joined = readonly [Level, ...(readonly (readonly number[])[])];

/** A machine from its groups; of several groups that contain a pair the nearest counts, pairs in none are SYS. */
export function pcieMachine(count: number, ...joined: readonly Joined[]): Topology {
  return topologyOfPairs(count, (a, b) => {
    let level: Level = 'SYS';
    for (const [at, ...groups] of joined) {
      if (groups.some((group) => group.includes(a) && group.includes(b)) && nearer(at, level)) level = at;
    }
    return { level, nvlinks: 0 };
  });
}

/** The same machine with NVLinks: `[a, b, links]`. */
export function withNvlinks(topology: Topology, links: readonly (readonly [number, number, number])[]): Topology {
  return topologyOfPairs(topology.levels.length, (a, b) => ({
    level: topology.levels[a]?.[b] ?? 'SYS',
    nvlinks: links.find(([x, y]) => (x === a && y === b) || (x === b && y === a))?.[2] ?? 0,
  }));
}

/**
 * Machines of the kind that the original's tests and ours use; the highest level is NODE, as the original's SOC was.
 */
export const T1 = pcieMachine(1);
export const T2 = pcieMachine(2, ['NODE', [0, 1]]);
export const T2P = pcieMachine(2, ['PHB', [0, 1]]);
export const T3 = pcieMachine(3, ['PIX', [1, 2]], ['NODE', [0, 1, 2]]);
export const T4 = pcieMachine(4, ['PIX', [0, 1], [2, 3]], ['NODE', [0, 1, 2, 3]]);
export const T6 = pcieMachine(6, ['PIX', [0, 1], [2, 3], [4, 5]], ['PHB', [0, 1, 2, 3]], ['NODE', [0, 1, 2, 3, 4, 5]]);
export const T8 = pcieMachine(
  8,
  ['PIX', [0, 1], [2, 3], [4, 5], [6, 7]],
  ['PXB', [0, 1, 2, 3], [4, 5, 6, 7]],
  ['NODE', [0, 1, 2, 3, 4, 5, 6, 7]],
);

/** Links of a hybrid cube mesh of eight GPUs: `[a, b, links]`. */
export const CUBE_MESH_LINKS: readonly (readonly [number, number, number])[] = [
  [0, 1, 1],
  [0, 2, 1],
  [0, 3, 2],
  [1, 2, 2],
  [1, 3, 1],
  [2, 3, 2],
  [4, 5, 1],
  [4, 6, 1],
  [4, 7, 2],
  [5, 6, 2],
  [5, 7, 1],
  [6, 7, 2],
  [0, 4, 2],
  [1, 5, 2],
  [2, 6, 1],
  [3, 7, 1],
];

/** Eight GPUs in a hybrid cube mesh: two quads of NV1 and NV2, linked GPU to GPU; neighbours share a PCIe switch. */
export const CUBE_MESH = withNvlinks(
  pcieMachine(8, ['PIX', [0, 1], [2, 3], [4, 5], [6, 7]], ['NODE', [0, 1, 2, 3], [4, 5, 6, 7]]),
  CUBE_MESH_LINKS,
);

/** `count` GPUs, every pair linked through NVSwitch, two NUMA nodes. */
export function switched(count: number, links: number): Topology {
  const half = Array.from({ length: count / 2 }, (_, position) => position);
  return topologyOfPairs(count, (a, b) => ({
    level: half.includes(a) === half.includes(b) ? 'NODE' : 'SYS',
    nvlinks: links,
  }));
}

/** Eight GPUs on two sockets: three NVLink pairs and two single GPUs. */
export const BRIDGED = withNvlinks(pcieMachine(8, ['NODE', [0, 1, 2, 3], [4, 5, 6, 7]]), [
  [0, 1, 4],
  [2, 3, 4],
  [4, 5, 4],
]);

/** Eight GPUs on two sockets, each two joined by an NVLink bridge, as H100 PCIe have it. */
export const PAIRED = withNvlinks(pcieMachine(8, ['NODE', [0, 1, 2, 3], [4, 5, 6, 7]]), [
  [0, 1, 12],
  [2, 3, 12],
  [4, 5, 12],
  [6, 7, 12],
]);

export function gpuAt(index: number, change: Partial<Gpu> = {}): Gpu {
  const hex = index.toString(16).padStart(2, '0').toUpperCase();
  return {
    index,
    minor: index,
    uuid: `GPU-000000${hex.toLowerCase()}-0000-0000-0000-000000000000`,
    pciBusId: `00000000:${hex}:00.0`,
    model: 'Tesla V100-SXM2-16GB',
    memoryBytes: 16 * GIB,
    numaNode: null,
    ...change,
  };
}

/** Slots of `count` free 16 GiB GPUs of which `used[index]` cores are taken, and memory in proportion. */
export function slotsOf(count: number, used: Readonly<Record<number, number>> = {}): GpuSlot[] {
  return Array.from({ length: count }, (_, index) => {
    const gpu = gpuAt(index);
    const cores = used[index] ?? 0;
    return {
      gpu,
      freeCores: 100 - cores,
      freeMemoryBytes: gpu.memoryBytes - (gpu.memoryBytes * cores) / 100,
      processCount: 0,
      usable: true,
    };
  });
}
