import { filling, listing, uint, type Handle, type Listed, type NvmlCall } from './nvml-call.js';

/** NVML calls for the present use of a GPU. */

/** Share of the last sample period in which a kernel ran: the first number of `nvmlUtilization_t`. */
export const utilization = (gpu: Handle): NvmlCall<number> =>
  filling({
    feature: 'utilisation',
    names: ['nvmlDeviceGetUtilizationRates'],
    inputs: [['handle', gpu]],
    sizes: [8],
    read: uint,
  });

/** Temperature of the chip, in degrees Celsius. */
export const temperature = (gpu: Handle): NvmlCall<number> =>
  filling({
    feature: null,
    names: ['nvmlDeviceGetTemperature'],
    inputs: [
      ['handle', gpu],
      ['uint', 0],
    ],
    sizes: [4],
    read: uint,
  });

/** Power draw in milliwatts. */
export const power = (gpu: Handle): NvmlCall<number> =>
  filling({ feature: null, names: ['nvmlDeviceGetPowerUsage'], inputs: [['handle', gpu]], sizes: [4], read: uint });

/** Energy used since the driver was loaded, in millijoules. */
export const energy = (gpu: Handle): NvmlCall<number> =>
  filling({
    feature: null,
    names: ['nvmlDeviceGetTotalEnergyConsumption'],
    inputs: [['handle', gpu]],
    sizes: [8],
    read: (_name, out) => Number(out.readBigUInt64LE()),
  });

/** Memory errors since the driver was loaded that ECC could not correct. */
export const uncorrectedErrors = (gpu: Handle): NvmlCall<number> =>
  filling({
    feature: null,
    names: ['nvmlDeviceGetTotalEccErrors'],
    // Uncorrected errors (1) in the volatile counter (0).
    inputs: [
      ['handle', gpu],
      ['uint', 1],
      ['uint', 0],
    ],
    sizes: [8],
    read: (_name, out) => Number(out.readBigUInt64LE()),
  });

/** Kinds of context, each with its own list of processes. */
export const CONTEXTS = ['Compute', 'Graphics', 'MPSCompute'] as const;

export interface RunningProcess {
  readonly pid: number;
  readonly usedMemoryBytes: number | null;
}

const NOT_AVAILABLE = 0xffff_ffff_ffff_ffffn;

/** `nvmlProcessInfo_t`: pid, memory at 8; since its second version also GPU and compute instance. */
export function runningProcesses(
  gpu: Handle,
  context: (typeof CONTEXTS)[number],
  room: number,
): NvmlCall<Listed<RunningProcess>> {
  const oldest = `nvmlDeviceGet${context}RunningProcesses`;
  return listing({
    feature: context === 'Compute' ? 'list of processes' : null,
    names: [`${oldest}_v3`, `${oldest}_v2`, oldest],
    inputs: [['handle', gpu]],
    room,
    size: (name) => (name === oldest ? 16 : 24),
    entry: (out, at) => {
      const used = out.readBigUInt64LE(at + 8);
      return { pid: out.readUInt32LE(at), usedMemoryBytes: used === NOT_AVAILABLE ? null : Number(used) };
    },
  });
}

export interface ProcessShare {
  readonly pid: number;
  readonly utilizationPercent: number;
}

/**
 * `nvmlProcessUtilizationSample_t`: pid, time at 8, then percent of multiprocessors, memory, encoder and decoder. Lists
 * no idle processes.
 */
export const processShares = (gpu: Handle, sinceMicroseconds: number, room: number): NvmlCall<Listed<ProcessShare>> =>
  listing({
    feature: 'utilisation by process',
    names: ['nvmlDeviceGetProcessUtilization'],
    inputs: [['handle', gpu]],
    room,
    entriesFirst: true,
    tail: [['ulong', BigInt(sinceMicroseconds)]],
    size: () => 32,
    entry: (out, at) => ({ pid: out.readUInt32LE(at), utilizationPercent: out.readUInt32LE(at + 16) }),
  });
