import type { Finding } from './audit.js';
import type { UsageCounters } from './usage-counters.js';
import type { GpuMonitor } from './gpu-monitor.js';
import type { GpuSample } from '../../gpu/sample.js';
import type { SliceOwner } from './ports.js';
import type { SocketRefusals } from './slice-socket.js';
import type { Slices } from './slices.js';
import type { Drift, GpuSlice } from './gpu-slice.js';

/**
 * What a container does on one of its GPUs, as of the last sample and tick; counters as of now. Counters come from a
 * file that the container can write: they say nothing about anybody but itself.
 */
export interface DeviceObservation {
  readonly gpuUuid: string;
  /** What holds now; less than was allocated where it was changed. Null: not limited. */
  readonly memoryLimitBytes: number | null;
  /** Hundredths of the GPU. */
  readonly share: number;
  /** Hundredths that it may use while others leave the GPU idle; null: hard, the share is the most. */
  readonly softLimit: number | null;
  /** Host pids of its processes on this GPU. */
  readonly pids: readonly number[];
  /** Percent of the GPU in the last second: what the driver reports, or else what was charged. */
  readonly usedPercent: number;
  /** As the driver counts it, or else as the container does. */
  readonly usedMemoryBytes: number;
  /** Of that, what the driver keeps for itself. */
  readonly driverOverheadBytes: number;
  /** By its own account: most that it held at once since it started; null while its usage file cannot be read. */
  readonly peakMemoryBytes: number | null;
  /**
   * Launches, GPU time charged, time that launches waited, denials of memory by API and so on (times in ns). They only
   * ever grow: from the start of the container on, over its restarts, until the agent starts anew, which begins again
   * with what the running container's file says.
   */
  readonly counters: UsageCounters;
  /** What it may use now, in parts per million of the GPU; null under a hard limit or while it does nothing. */
  readonly grantPpm: number | null;
  /**
   * Factor on what its launches are charged, in parts per million: above 1000000 the driver reports more than was
   * charged.
   */
  readonly correctionPpm: number;
  /** Asked minus given in the last seconds, in parts per million of the GPU; null while it did not want its share. */
  readonly controlErrorPpm: number | null;
  /** The driver's view less the container's own account: of GPU time in the last seconds, of memory now. */
  readonly drift: Drift;
}

/** One slice, and what its container does. */
export interface SliceObservation {
  readonly allocation: string;
  readonly owner: SliceOwner;
  /** Processes that greeted and live. */
  readonly processes: number;
  /** What its `vcuda.sock` turned away since the agent opened it. */
  readonly refusals: SocketRefusals;
  readonly devices: readonly DeviceObservation[];
  /** What the audit has against it now. */
  readonly findings: readonly Finding[];
}

/** The least of it, as of the last sample and tick. */
export interface UseObservation {
  readonly allocation: string;
  readonly devices: readonly (Pick<DeviceObservation, 'gpuUuid' | 'usedPercent' | 'usedMemoryBytes'> & {
    /** Time that launches waited; only ever grows. */
    readonly throttledNs: number;
  })[];
}

/** One GPU of the node, and how well it can be watched. */
export interface GpuObservation {
  readonly gpuUuid: string;
  /** The last sample that succeeded; null before the first. */
  readonly sample: GpuSample | null;
  /** Samples since the agent started, and how many of them failed. */
  readonly samples: number;
  readonly failedSamples: number;
  /** Slices on this GPU, and how many of them have a process that may use it. */
  readonly containers: number;
  readonly presentContainers: number;
  /** What the driver lists for processes on it, without what it keeps for itself; as of the last sample. */
  readonly processMemoryBytes: number;
  /** Host pids of processes on it that belong to no container that was given this GPU. */
  readonly foreignPids: readonly number[];
}

/** What is known of every started slice. Reads memory and small files only. */
export function observeSlices(
  slices: Slices,
  gpus: readonly GpuMonitor[],
  findings: (allocation: string) => readonly Finding[],
): SliceObservation[] {
  const gpuSlices = gpuSlicesOf(gpus);
  return [...slices.started.values()].map((slice) => ({
    allocation: slice.id,
    owner: slice.spec.owner,
    processes: slice.sessions.size,
    refusals: slice.refusals,
    findings: findings(slice.id),
    devices: (gpuSlices.get(slice.id) ?? []).map((gpuSlice) => observeDevice(gpuSlice)),
  }));
}

/** What every started slice uses. Reads memory only, as long as the driver says what processes hold. */
export function observeUse(slices: Slices, gpus: readonly GpuMonitor[]): UseObservation[] {
  const gpuSlices = gpuSlicesOf(gpus);
  return [...slices.started.keys()].map((allocation) => ({
    allocation,
    devices: (gpuSlices.get(allocation) ?? []).map((gpuSlice) => ({
      gpuUuid: gpuSlice.gpuUuid,
      usedPercent: usedPercent(gpuSlice),
      usedMemoryBytes: gpuSlice.usedMemoryBytes ?? gpuSlice.held() ?? 0,
      throttledNs: gpuSlice.throttledNs,
    })),
  }));
}

/** What is known of every GPU, in the driver's order. Reads memory only. */
export function observeGpus(gpus: readonly GpuMonitor[]): GpuObservation[] {
  return gpus.map(({ uuid, state, samples, failedSamples, gpuSlices }) => ({
    gpuUuid: uuid,
    sample: state?.sample ?? null,
    samples,
    failedSamples,
    containers: gpuSlices.length,
    presentContainers: gpuSlices.filter(({ present }) => present).length,
    processMemoryBytes: state?.processMemoryBytes ?? 0,
    foreignPids: (state?.foreignProcesses ?? []).map(({ pid }) => pid),
  }));
}

/** By allocation, in the order of its GPUs; those that are gone from the machine are left out. */
function gpuSlicesOf(gpus: readonly GpuMonitor[]): ReadonlyMap<string, readonly GpuSlice[]> {
  const gpuSlices = new Map<string, GpuSlice[]>();
  for (const { gpuSlices: here } of gpus) {
    for (const gpuSlice of here) {
      const known = gpuSlices.get(gpuSlice.slice.id);
      if (known === undefined) gpuSlices.set(gpuSlice.slice.id, [gpuSlice]);
      else known.push(gpuSlice);
    }
  }
  for (const some of gpuSlices.values()) if (some.length > 1) some.sort((a, b) => a.index - b.index);
  return gpuSlices;
}

function usedPercent({ processes, told }: GpuSlice): number {
  const reported = processes.map(({ utilizationPercent }) => utilizationPercent);
  const known = reported.length > 0 && reported.every((percent) => percent !== null);
  return known
    ? reported.reduce((sum: number, percent) => sum + (percent ?? 0), 0)
    : (told?.active === true ? told.usedPpm : 0) / 10_000;
}

function observeDevice(gpuSlice: GpuSlice): DeviceObservation {
  const { memoryBytes, share, softLimit, driverOverheadBytes } = gpuSlice.live;
  const peakMemoryBytes = gpuSlice.readCounters()?.peakBytes ?? null;
  return {
    gpuUuid: gpuSlice.gpuUuid,
    memoryLimitBytes: memoryBytes,
    share,
    softLimit,
    pids: gpuSlice.processes.map(({ pid }) => pid),
    usedPercent: usedPercent(gpuSlice),
    usedMemoryBytes: gpuSlice.usedMemoryBytes ?? gpuSlice.held() ?? 0,
    driverOverheadBytes,
    peakMemoryBytes,
    counters: gpuSlice.counted,
    grantPpm: gpuSlice.told?.active === true ? gpuSlice.told.grantPpm : null,
    correctionPpm: gpuSlice.told?.correctionPpm ?? 1_000_000,
    controlErrorPpm: gpuSlice.controlErrorPpm,
    drift: gpuSlice.drift,
  };
}
