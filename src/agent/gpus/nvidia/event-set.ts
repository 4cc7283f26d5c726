import { NVML } from './nvml-code.js';
import { command, filling, type Handle, type NvmlCall } from './nvml-call.js';

/** NVML calls for errors that GPUs report as events. */

/** Bits of `nvmlEventType` for errors. */
export const EVENT_DOUBLE_BIT_ECC = 2n;
export const EVENT_XID = 8n;

const FEATURE = 'reports of errors (without them only a lost GPU is detected)';

export const createEventSet = (): NvmlCall<Handle> =>
  filling({ feature: FEATURE, names: ['nvmlEventSetCreate'], sizes: [8], read: (_name, out) => out.readBigUInt64LE() });

export const supportedEvents = (gpu: Handle): NvmlCall<bigint> =>
  filling({
    feature: FEATURE,
    names: ['nvmlDeviceGetSupportedEventTypes'],
    inputs: [['handle', gpu]],
    sizes: [8],
    read: (_name, out) => out.readBigUInt64LE(),
  });

export const registerEvents = (gpu: Handle, types: bigint, set: Handle): NvmlCall<true> => ({
  ...command(
    ['nvmlDeviceRegisterEvents'],
    [
      ['handle', gpu],
      ['ulong', types],
      ['handle', set],
    ],
  ),
  feature: FEATURE,
});

export const freeEventSet = (set: Handle): NvmlCall<true> => command(['nvmlEventSetFree'], [['handle', set]]);

export interface NvmlEvent {
  readonly gpu: Handle;
  /** Id of the GPU instance that it is attributed to; null where it is not, or MIG is off. */
  readonly gpuInstance: number | null;
  readonly type: bigint;
  /** The XID, for events of that type. */
  readonly data: number;
}

const NO_INSTANCE = 0xffff_ffff;

/** The `nvmlEventData_t` of a pending event, or `none`. The call does not wait, so it blocks no thread. */
export const nextEvent = (set: Handle): NvmlCall<NvmlEvent | 'none'> =>
  filling<NvmlEvent | 'none'>({
    feature: null,
    names: ['nvmlEventSetWait_v2', 'nvmlEventSetWait'],
    inputs: [['handle', set]],
    sizes: [32],
    tail: [['uint', 0]],
    read: (name, out) => {
      const instance = name === 'nvmlEventSetWait' ? NO_INSTANCE : out.readUInt32LE(24);
      return {
        gpu: out.readBigUInt64LE(0),
        gpuInstance: instance === NO_INSTANCE ? null : instance,
        type: out.readBigUInt64LE(8),
        data: Number(out.readBigUInt64LE(16)),
      };
    },
    instead: (code) => (code === NVML.TIMEOUT ? 'none' : null),
  });
