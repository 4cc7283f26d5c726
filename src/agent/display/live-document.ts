import type { NodeSnapshot } from '../node/view.js';

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
  const { atMs, cards: gpus, allocations, ...rest } = snapshot;
  const usage = {
    at: atMs,
    cards: gpus.map(({ usedPercent, usedMemoryBytes, temperatureCelsius, powerWatts, strangerPids }) => ({
      usedPercent: tenth(usedPercent),
      usedMemoryBytes,
      temperatureCelsius,
      powerWatts: tenth(powerWatts),
      foreignProcesses: strangerPids.length,
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
    cards: gpus.map(
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
        givenCores,
        givenMemoryBytes,
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
        givenCores,
        givenMemoryBytes,
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
          ({ gpuUuid, gpuIndex, givenCores, givenMemoryBytes, share, softLimit, priority, memoryLimitBytes }) => ({
            gpuUuid,
            gpuIndex,
            givenCores,
            givenMemoryBytes,
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
