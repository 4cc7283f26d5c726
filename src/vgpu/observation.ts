import type { Finding } from '../core/audit.js';
import type { DeviceUsage } from '../core/usage-file.js';
import type { GpuMonitor } from './gpu-monitor.js';
import type { SliceOwner } from './ports.js';
import type { Slices } from './slices.js';
import type { Tenant } from './tenant.js';

/** What a container does on one of its GPUs, as of the last look and beat. */
export interface DeviceObservation {
  readonly gpuUuid: string;
  /** What holds now; less than was allocated where it was changed. Null: not limited. */
  readonly memoryLimitBytes: number | null;
  /** Hundredths of the GPU. */
  readonly share: number;
  readonly softLimit: number | null;
  /** Host pids of its processes on this GPU. */
  readonly pids: readonly number[];
  /** Percent of the GPU in the last second: what the driver reports, or else what was charged. */
  readonly usedPercent: number;
  /** As the driver counts it, or else as the container does. */
  readonly usedMemoryBytes: number;
  /** Of that, what the driver keeps for itself. */
  readonly driverOverheadBytes: number;
  /** Counters since the container started; null while its usage file cannot be read. Not to be trusted further than its own slice. */
  readonly counters: DeviceUsage | null;
  /** What it may use now, in parts per million of the GPU; null under a hard limit or while it does nothing. */
  readonly grantPpm: number | null;
  /** Factor on what its launches are charged. */
  readonly correctionPpm: number;
  /** Asked minus given in the last seconds, in parts per million of the GPU; null while it did not want its share. */
  readonly controlErrorPpm: number | null;
}

/** One slice, and what its container does. */
export interface SliceObservation {
  readonly allocation: string;
  readonly owner: SliceOwner;
  /** Processes that greeted and live. */
  readonly processes: number;
  readonly devices: readonly DeviceObservation[];
  /** What the audit has against it. */
  readonly findings: readonly Finding[];
}

/** What is known of every started slice. Reads memory and small files only. */
export function observeSlices(slices: Slices, gpus: readonly GpuMonitor[], findings: (allocation: string) => readonly Finding[]): SliceObservation[] {
  const tenants = new Map<string, Tenant>();
  for (const gpu of gpus) for (const tenant of gpu.tenants) tenants.set(`${tenant.slice.id}/${tenant.index}`, tenant);
  return [...slices.started.values()].map((slice) => ({
    allocation: slice.id,
    owner: slice.spec.owner,
    processes: slice.sessions.size,
    findings: findings(slice.id),
    devices: slice.spec.devices.flatMap(({ uuid }, index) => {
      const tenant = tenants.get(`${slice.id}/${index}`);
      return tenant === undefined ? [] : [observeDevice(uuid, tenant)];
    }),
  }));
}

function observeDevice(gpuUuid: string, tenant: Tenant): DeviceObservation {
  const { memoryBytes, share, softLimit, driverOverheadBytes } = tenant.live;
  const reported = tenant.processes.map(({ utilizationPercent }) => utilizationPercent);
  const known = reported.length > 0 && reported.every((percent) => percent !== null);
  const told = tenant.told?.active === true ? tenant.told : null;
  return {
    gpuUuid,
    memoryLimitBytes: memoryBytes,
    share,
    softLimit,
    pids: tenant.processes.map(({ pid }) => pid),
    usedPercent: known ? reported.reduce((sum: number, percent) => sum + (percent ?? 0), 0) : (told?.usedPpm ?? 0) / 10_000,
    usedMemoryBytes: tenant.usedMemoryBytes ?? tenant.held() ?? 0,
    driverOverheadBytes,
    counters: tenant.counters,
    grantPpm: told?.grantPpm ?? null,
    correctionPpm: tenant.told?.correctionPpm ?? 1_000_000,
    controlErrorPpm: tenant.controlErrorPpm,
  };
}
