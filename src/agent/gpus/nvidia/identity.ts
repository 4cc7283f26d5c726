import { command, filling, text, textAt, uint, type Handle, type NvmlCall } from './nvml-call.js';

/** NVML calls about the driver and the identity of its GPUs. Layouts of nvml.h, CUDA 10 to 13. */

export const init = (): NvmlCall<true> => command(['nvmlInit_v2', 'nvmlInit']);
export const shutdown = (): NvmlCall<true> => command(['nvmlShutdown']);
export const driverVersion = (): NvmlCall<string> => text('driver version', ['nvmlSystemGetDriverVersion']);

export const cudaVersion = (): NvmlCall<number> =>
  filling({
    feature: 'CUDA version',
    names: ['nvmlSystemGetCudaDriverVersion_v2', 'nvmlSystemGetCudaDriverVersion'],
    sizes: [4],
    read: uint,
  });

export const deviceCount = (): NvmlCall<number> =>
  filling({ feature: 'count of GPUs', names: ['nvmlDeviceGetCount_v2', 'nvmlDeviceGetCount'], sizes: [4], read: uint });

export const handleByIndex = (index: number): NvmlCall<Handle> =>
  filling({
    feature: 'GPU by index',
    names: ['nvmlDeviceGetHandleByIndex_v2', 'nvmlDeviceGetHandleByIndex'],
    inputs: [['uint', index]],
    sizes: [8],
    read: (_name, out) => out.readBigUInt64LE(),
  });

export const uuid = (gpu: Handle): NvmlCall<string> => text('UUID', ['nvmlDeviceGetUUID'], [['handle', gpu]]);
export const model = (gpu: Handle): NvmlCall<string> => text('product name', ['nvmlDeviceGetName'], [['handle', gpu]]);

export const minor = (gpu: Handle): NvmlCall<number> =>
  filling({
    feature: 'minor number',
    names: ['nvmlDeviceGetMinorNumber'],
    inputs: [['handle', gpu]],
    sizes: [4],
    read: uint,
  });

/** `nvmlPciInfo_t`: legacy id of 16 bytes, five numbers, id of 32 bytes (which older versions lack). */
const PCI_INFO_SIZE = 68;
const PCI_BUS_ID_AT = 36;

/** Such as `00000000:3B:00.0`: upper case, domain of eight digits. */
export const pciBusId = (gpu: Handle): NvmlCall<string> =>
  busId('PCI bus id', ['nvmlDeviceGetPciInfo_v3', 'nvmlDeviceGetPciInfo_v2'], [['handle', gpu]]);

/** Builds a call to a function that fills an `nvmlPciInfo_t`; only its first name has the long id. */
export function busId(
  feature: string | null,
  names: readonly [string, string],
  inputs: readonly (readonly ['handle' | 'uint', bigint | number])[],
): NvmlCall<string> {
  return filling({
    feature,
    names,
    inputs,
    sizes: [PCI_INFO_SIZE],
    read: (name, out) => {
      const id = textAt(out, name === names[0] ? PCI_BUS_ID_AT : 0);
      const [domain = '', ...rest] = id.split(':');
      return [domain.padStart(8, '0'), ...rest].join(':').toUpperCase();
    },
  });
}

export interface MemoryInfo {
  readonly totalBytes: number;
  readonly usedBytes: number;
}

/**
 * `nvmlMemory_t`: total, free, used, 64 bits each. Its second version counts the driver's reserved memory separately;
 * the first counts it as used.
 */
export const memory = (gpu: Handle): NvmlCall<MemoryInfo> =>
  filling({
    feature: 'memory size',
    names: ['nvmlDeviceGetMemoryInfo'],
    inputs: [['handle', gpu]],
    sizes: [24],
    read: (_name, out) => ({
      totalBytes: Number(out.readBigUInt64LE(0)),
      usedBytes: Number(out.readBigUInt64LE(16)),
    }),
  });

export const eccMode = (gpu: Handle): NvmlCall<boolean> => mode(gpu, 'nvmlDeviceGetEccMode');
export const migMode = (gpu: Handle): NvmlCall<boolean> => mode(gpu, 'nvmlDeviceGetMigMode');

/** Reads the present mode; the second value is the mode after the next reset. */
function mode(gpu: Handle, name: string): NvmlCall<boolean> {
  return filling({
    feature: null,
    names: [name],
    inputs: [['handle', gpu]],
    sizes: [4, 4],
    read: (_name, current) => uint(name, current) === 1,
  });
}

export const computeCapability = (gpu: Handle): NvmlCall<string> =>
  filling({
    feature: 'compute capability',
    names: ['nvmlDeviceGetCudaComputeCapability'],
    inputs: [['handle', gpu]],
    sizes: [4, 4],
    read: (name, major, minorPart) => `${uint(name, major)}.${uint(name, minorPart)}`,
  });

const NODE_WORDS = 16;

/** The lowest NUMA node near the GPU, from a mask of 1024; -1 for an empty mask. */
export const numaNode = (gpu: Handle): NvmlCall<number> =>
  filling({
    feature: null,
    names: ['nvmlDeviceGetMemoryAffinity'],
    inputs: [
      ['handle', gpu],
      ['uint', NODE_WORDS],
    ],
    sizes: [NODE_WORDS * 8],
    // Scope 0 selects the NUMA node instead of the socket.
    tail: [['uint', 0]],
    read: (_name, out) => lowestBit(out),
  });

function lowestBit(mask: Buffer): number {
  const byte = mask.findIndex((value) => value !== 0);
  if (byte < 0) return -1;
  const value = mask.readUInt8(byte);
  return byte * 8 + 31 - Math.clz32(value & -value);
}
