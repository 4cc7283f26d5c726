import type { Priority } from '../../gpu/priority.js';
import type { Finding } from './audit/audit.js';
import type { UsageCounters } from './usage/usage-counters.js';
import type { GpuMonitor } from './steering/gpu-monitor.js';
import type { AdoptedProcess } from './steering/sampled-processes.js';
import type { GpuProcess, GpuSample } from '../../gpu/sample.js';
import type { SliceOwner } from './ports.js';
import type { SocketRefusals } from './compat/slice-socket.js';
import type { Slice } from './slice.js';
import type { Suspension } from './suspend/suspension-file.js';
import { sumOf } from './suspend/suspensions.js';
import type { Slices } from './slices.js';
import type { Drift, GpuSlice } from './steering/gpu-slice.js';

/**
 * The use of one GPU by a container, as of the last sample and tick; counters as of now. Counters come from a file that
 * the container can write, so they are trusted only about this container.
 */
export interface DeviceObservation {
  readonly gpuUuid: string;
  /** The present limit, which may be lower than the allocation. Null: not limited. */
  readonly memoryLimitBytes: number | null;
  /** The driver enforces that limit too, in every container of the slice that is known. Absent: the library alone. */
  readonly memoryByDriver?: true;
  /** Cores of the GPU. */
  readonly share: number;
  /** Set where these are a part of its multiprocessors, kept by MPS; absent: of its time, kept by the library. */
  readonly compute?: 'sm';
  /** Cores that it may use while other containers leave the GPU idle; null: a hard share. */
  readonly softLimit: number | null;
  readonly priority: Priority;
  /** Host pids of its processes on this GPU. */
  readonly pids: readonly number[];
  /** Percent of the GPU in the last second as the driver reports it, or else as it was charged. */
  readonly usedPercent: number;
  /** The driver's count, or the container's usage file if the driver reports none. */
  readonly usedMemoryBytes: number;
  /** The driver's own part of `usedMemoryBytes`; 0 as well where the library leaves memory to the driver. */
  readonly driverOverheadBytes: number;
  /** The most memory that it may hold on the host beyond its memory limit, and its present memory there; 0: nothing. */
  readonly hostBackedLimitBytes: number;
  readonly hostBackedBytes: number;
  /**
   * The most that it held at once since it started, by its own account; null while its usage file cannot be read, and
   * where the library leaves memory to the driver.
   */
  readonly peakMemoryBytes: number | null;
  /**
   * Launches, charged GPU time, throttled time, denials of memory by API and so on (times in ns). They only grow, even
   * when the container restarts. A new agent starts with the values in the running container's file.
   */
  readonly counters: UsageCounters;
  /** GPU time that it may use now, in parts per million of the GPU; null under a hard share or while it is idle. */
  readonly grantPpm: number | null;
  /**
   * Factor on the charges of its launches, in parts per million: above 1000000 the driver reports more than was
   * charged.
   */
  readonly correctionPpm: number;
  /**
   * Wanted minus received GPU time in the last seconds, in parts per million of the GPU; null while it was
   * throttled less than 80 % of the time.
   */
  readonly controlErrorPpm: number | null;
  /** The driver's figures minus the container's own account: of GPU time in the last seconds, of memory now. */
  readonly drift: Drift;
}

/** One slice, and the use of its GPUs. */
export interface SliceObservation {
  readonly allocation: string;
  readonly owner: SliceOwner;
  /** Its limits are not enforced, only compared with its use. */
  readonly unenforced: boolean;
  /** Number of living processes that sent a greeting. */
  readonly processes: number;
  /** Connections and calls that its `vcuda.sock` refused since the agent opened it. */
  readonly refusals: SocketRefusals;
  readonly devices: readonly DeviceObservation[];
  /** The audit's present findings. */
  readonly findings: readonly Finding[];
  /** What happens to its GPU memory; null while it runs. */
  readonly suspension: SuspensionObservation | null;
}

/** A container that is suspended, or on its way there or back. */
export interface SuspensionObservation extends Pick<Suspension, 'step' | 'sinceMs' | 'by' | 'held' | 'wantsSinceMs'> {
  /** What its processes had on the GPU. */
  readonly hostBytes: number;
}

/** The use of one GPU by a slice, reduced to a few figures; as of the last sample and tick. */
export interface UseObservation {
  readonly allocation: string;
  readonly owner: SliceOwner;
  readonly devices: readonly (Pick<
    DeviceObservation,
    'gpuUuid' | 'usedPercent' | 'usedMemoryBytes' | 'share' | 'softLimit' | 'priority'
  > & {
    /** Throttled time and launches; they only grow. */
    readonly throttledNs: number;
    readonly launches: number;
  })[];
}

/** One GPU of the node, with the state of its samples. */
export interface GpuObservation {
  readonly gpuUuid: string;
  /** The last successful sample; null before the first. */
  readonly sample: GpuSample | null;
  /** Samples since the agent started, and how many of them failed. */
  readonly samples: number;
  readonly failedSamples: number;
  /** Slices on this GPU, and how many of them have a process that may use it. */
  readonly containers: number;
  readonly presentContainers: number;
  /** Memory that the driver lists for processes on it, without the driver's own part; as of the last sample. */
  readonly processMemoryBytes: number;
  /** Host pids of its processes that belong to no container with an allocation on this GPU. */
  readonly foreignPids: readonly number[];
  /** Its processes of containers that the original's plugin started. */
  readonly adopted: readonly AdoptedProcess[];
}

/** All observations of every started slice. Reads memory and small files only. */
export function observeSlices(
  slices: Slices,
  gpus: readonly GpuMonitor[],
  findings: (allocation: string) => readonly Finding[],
  byDriver: (slice: Slice, gpuUuid: string) => boolean = () => false,
  suspensionOf: (allocation: string) => Suspension | null = () => null,
  smShareOf: (slice: Slice) => number | null = () => null,
): SliceObservation[] {
  const gpuSlices = gpuSlicesOf(gpus);
  return [...slices.started.values()].map((slice) => ({
    allocation: slice.id,
    owner: slice.spec.owner,
    unenforced: slice.unenforced,
    processes: slice.sessions.size,
    refusals: slice.refusals,
    findings: findings(slice.id),
    suspension: observeSuspension(suspensionOf(slice.id)),
    devices: (gpuSlices.get(slice.id) ?? []).map((gpuSlice) => {
      const smShare = smShareOf(slice);
      return {
        ...observeDevice(gpuSlice),
        ...(byDriver(slice, gpuSlice.gpuUuid) ? { memoryByDriver: true as const } : {}),
        ...(smShare === null ? {} : { share: smShare, compute: 'sm' as const }),
      };
    }),
  }));
}

function observeSuspension(record: Suspension | null): SuspensionObservation | null {
  if (record === null) return null;
  const { step, sinceMs, by, held, wantsSinceMs, processes } = record;
  return { step, sinceMs, by, held, wantsSinceMs, hostBytes: sumOf(processes) };
}

/** The GPU use of every started slice. Reads memory only, unless the driver does not report the memory of processes. */
export function observeUse(slices: Slices, gpus: readonly GpuMonitor[]): UseObservation[] {
  const gpuSlices = gpuSlicesOf(gpus);
  return [...slices.started].map(([allocation, { spec }]) => ({
    allocation,
    owner: spec.owner,
    devices: (gpuSlices.get(allocation) ?? []).map((gpuSlice) => {
      const { share, softLimit, priority = 'normal' } = gpuSlice.live;
      return {
        ...{ share, softLimit, priority },
        gpuUuid: gpuSlice.gpuUuid,
        usedPercent: usedPercent(gpuSlice),
        usedMemoryBytes: gpuSlice.usedMemoryBytes ?? gpuSlice.held() ?? 0,
        throttledNs: gpuSlice.throttledNs,
        launches: gpuSlice.launches,
      };
    }),
  }));
}

/** The processes of one slice on each of its GPUs, as of the last sample. Reads memory only. */
export function observeProcesses(
  allocation: string,
  gpus: readonly GpuMonitor[],
): readonly { readonly gpuUuid: string; readonly processes: readonly GpuProcess[] }[] {
  const own = gpuSlicesOf(gpus).get(allocation) ?? [];
  return own.map(({ gpuUuid, processes }) => ({ gpuUuid, processes }));
}

/** The observation of every GPU, in the driver's order. Reads memory only. */
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
    adopted: state?.adoptedProcesses ?? [],
  }));
}

/** By allocation, in the order of its GPUs, without GPUs that have left the machine. */
export function gpuSlicesOf(gpus: readonly GpuMonitor[]): ReadonlyMap<string, readonly GpuSlice[]> {
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

function usedPercent({ processes, decision }: GpuSlice): number {
  const reported = processes.map(({ utilizationPercent }) => utilizationPercent);
  const known = reported.length > 0 && reported.every((percent) => percent !== null);
  return known
    ? reported.reduce((sum: number, percent) => sum + (percent ?? 0), 0)
    : (decision?.active === true ? decision.usedPpm : 0) / 10_000;
}

function observeDevice(gpuSlice: GpuSlice): DeviceObservation {
  const {
    memoryBytes,
    share,
    softLimit,
    driverOverheadBytes,
    hostBackedBytes = 0,
    priority = 'normal',
  } = gpuSlice.live;
  const { memoryByDriver } = gpuSlice.slice.limits;
  const peakMemoryBytes = memoryByDriver ? null : (gpuSlice.readCounters()?.peakBytes ?? null);
  return {
    gpuUuid: gpuSlice.gpuUuid,
    memoryLimitBytes: memoryBytes,
    share,
    softLimit,
    priority,
    pids: gpuSlice.processes.map(({ pid }) => pid),
    usedPercent: usedPercent(gpuSlice),
    usedMemoryBytes: gpuSlice.usedMemoryBytes ?? gpuSlice.held() ?? 0,
    driverOverheadBytes: memoryByDriver ? 0 : driverOverheadBytes,
    hostBackedLimitBytes: hostBackedBytes,
    // Only slices with one GPU have host-backed memory, so there is one sum for a slice.
    hostBackedBytes: gpuSlice.index === 0 ? (gpuSlice.slice.hostBacked() ?? 0) : 0,
    peakMemoryBytes,
    counters: gpuSlice.counted,
    grantPpm: gpuSlice.decision?.active === true ? gpuSlice.decision.grantPpm : null,
    correctionPpm: gpuSlice.decision?.correctionPpm ?? 1_000_000,
    controlErrorPpm: gpuSlice.controlErrorPpm,
    drift: gpuSlice.drift,
  };
}
