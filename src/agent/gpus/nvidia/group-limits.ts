import type { GroupLimited, GroupLimits, GroupMemory } from '../driver.js';
import { addressOf } from './library.js';
import { NVML, meaning } from './nvml-code.js';
import type { Handle, NvmlCall } from './nvml-call.js';

/** NVML calls for memory limits of control groups, in drivers from 615 on. */

/** `NVML_DEVICE_MEMORY_LIMIT_MAX`. */
const NO_LIMIT = 0xffff_ffff_ffff_ffffn;

/** A limit that the driver refuses because of these is a result of `setLimits`. */
const REFUSALS: readonly number[] = [
  NVML.INVALID_ARGUMENT,
  NVML.NOT_SUPPORTED,
  NVML.NO_PERMISSION,
  NVML.FUNCTION_NOT_FOUND,
];

/** `nvmlSetMemoryLimits_v1_t`: name of the group, soft limit at 8, hard limit at 16. */
export function setLimits(gpu: Handle, group: string, { softBytes, hardBytes }: GroupLimits): NvmlCall<GroupLimited> {
  const [pointee, out] = structure(group, 24);
  out.writeBigUInt64LE(BigInt(softBytes), 8);
  out.writeBigUInt64LE(hardBytes === null ? NO_LIMIT : BigInt(hardBytes), 16);
  return {
    ...callOf('nvmlDeviceSetMemoryLimits_v1', gpu, out),
    pointee,
    read: () => 'set',
    instead: (code) =>
      code === NVML.OPERATING_SYSTEM ? 'gone' : REFUSALS.includes(code) ? { refused: meaning(code) } : null,
  };
}

/** `nvmlGetMemoryLimits_v1_t`: the same, and memory in use at 24. Null: the driver keeps no limits on this GPU. */
export function limitsOf(gpu: Handle, group: string): NvmlCall<GroupMemory> {
  const [pointee, out] = structure(group, 32);
  return {
    ...callOf('nvmlDeviceGetMemoryLimits_v1', gpu, out),
    pointee,
    read: () => {
      const hard = out.readBigUInt64LE(16);
      return {
        softBytes: Number(out.readBigUInt64LE(8)),
        hardBytes: hard === NO_LIMIT ? null : Number(hard),
        usedBytes: Number(out.readBigUInt64LE(24)),
      };
    },
    instead: (code) => (code === NVML.NOT_FOUND ? 'none' : code === NVML.OPERATING_SYSTEM ? 'gone' : null),
  };
}

function structure(group: string, size: number): readonly [Buffer, Buffer] {
  const name = Buffer.from(`${group}\0`);
  const out = Buffer.alloc(size);
  out.writeBigUInt64LE(addressOf(name));
  return [name, out];
}

function callOf(name: string, gpu: Handle, out: Buffer): Omit<NvmlCall<never>, 'read' | 'instead'> {
  return { feature: null, names: [name], parameters: ['handle', 'memory'], args: [gpu, out] };
}
