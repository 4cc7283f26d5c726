import type { NodeSnapshot } from '../node/index.js';

/**
 * A snapshot in two parts: the state, which changes with events, and the usage, which always changes. Usage entries are
 * in the order of the state. Pages get the state rarely and the usage every second.
 */
export interface LiveDocument {
  readonly state: string;
  readonly usage: string;
}

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
    gpus: gpus.map(
      ({
        index,
        uuid,
        model,
        instance,
        pciBusId,
        numaNode,
        memoryBytes,
        usable,
        health,
        allocatedCores,
        allocatedMemoryBytes,
      }) => ({
        index,
        uuid,
        model,
        instance,
        pciBusId,
        numaNode,
        memoryBytes,
        usable,
        health,
        allocatedCores,
        allocatedMemoryBytes,
      }),
    ),
    allocations: allocations.map(
      ({ id, phase, unenforced, owners, claims, allocatedAtMs, cores, memoryBytes, findings, quotaGroup, slices }) => ({
        id,
        phase,
        unenforced,
        owners,
        claims,
        allocatedAtMs,
        cores,
        memoryBytes,
        findings,
        quotaGroup,
        slices: slices.map(
          ({
            gpuUuid,
            gpuIndex,
            allocatedCores,
            allocatedMemoryBytes,
            share,
            softLimit,
            priority,
            memoryLimitBytes,
          }) => ({
            gpuUuid,
            gpuIndex,
            allocatedCores,
            allocatedMemoryBytes,
            share,
            softLimit,
            priority,
            memoryLimitBytes,
          }),
        ),
      }),
    ),
  };
  return { state: JSON.stringify(state), usage: JSON.stringify(usage) };
}

function tenth(value: number | null): number | null {
  return value === null ? null : Math.round(value * 10) / 10;
}
