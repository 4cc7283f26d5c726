import type { NodeSnapshot } from '../node/index.js';

/**
 * A snapshot in two parts: the state, which changes with events, and the usage, which always changes. Usage entries are
 * in the order of the state. Pages get the state rarely and the usage every second.
 */
export interface LiveDocument {
  readonly state: string;
  readonly usage: string;
}

const GPU_STATE = [
  'index',
  'uuid',
  'model',
  'instance',
  'pciBusId',
  'numaNode',
  'memoryBytes',
  'usable',
  'health',
  'allocatedCores',
  'allocatedMemoryBytes',
] as const;
const ALLOCATION_STATE = [
  'id',
  'phase',
  'unenforced',
  'owners',
  'claims',
  'allocatedAtMs',
  'cores',
  'memoryBytes',
  'findings',
  'quotaGroup',
  'suspension',
] as const;
const SLICE_STATE = [
  'gpuUuid',
  'gpuIndex',
  'allocatedCores',
  'allocatedMemoryBytes',
  'share',
  'softLimit',
  'priority',
  'memoryLimitBytes',
] as const;

/** Both texts are JSON. */
export function liveDocument(snapshot: NodeSnapshot): LiveDocument {
  const { atMs, gpus, allocations, ...rest } = snapshot;
  const usage = {
    at: atMs,
    gpus: gpus.map(({ usedPercent, usedMemoryBytes, temperatureCelsius, powerWatts, foreignPids }) => ({
      usedPercent: tenth(usedPercent),
      usedMemoryBytes,
      temperatureCelsius,
      powerWatts: tenth(powerWatts),
      foreignProcesses: foreignPids.length,
    })),
    slices: allocations.flatMap(({ slices }) =>
      slices.map(({ usedPercent, usedMemoryBytes, counters }) => ({
        usedPercent: tenth(usedPercent),
        usedMemoryBytes,
        throttledSeconds: Math.round((counters?.throttledSeconds ?? 0) * 1000) / 1000,
      })),
    ),
  };
  const state = {
    ...rest,
    gpus: gpus.map((gpu) => pick(gpu, GPU_STATE)),
    allocations: allocations.map((allocation) => ({
      ...pick(allocation, ALLOCATION_STATE),
      slices: allocation.slices.map((slice) => pick(slice, SLICE_STATE)),
    })),
  };
  return { state: JSON.stringify(state), usage: JSON.stringify(usage) };
}

function tenth(value: number | null): number | null {
  return value === null ? null : Math.round(value * 10) / 10;
}

function pick<T, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.map((key) => [key, from[key]])) as Pick<T, K>;
}
