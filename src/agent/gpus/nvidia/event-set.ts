import { NVML } from './nvml-code.js';
import { command, filling, type Handle, type Question } from './question.js';

/** Questions about errors that GPUs report by themselves. */

/** `nvmlEventType`, as far as it says that something broke: bits. */
export const EVENT_DOUBLE_BIT_ECC = 2n;
export const EVENT_XID = 8n;

const FEATURE = 'report of errors (only a GPU that is lost is noticed)';

export const createEventSet = (): Question<Handle> =>
  filling({ feature: FEATURE, names: ['nvmlEventSetCreate'], sizes: [8], read: (_name, out) => out.readBigUInt64LE() });

export const supportedEvents = (gpu: Handle): Question<bigint> =>
  filling({
    feature: FEATURE,
    names: ['nvmlDeviceGetSupportedEventTypes'],
    inputs: [['handle', gpu]],
    sizes: [8],
    read: (_name, out) => out.readBigUInt64LE(),
  });

export const registerEvents = (gpu: Handle, types: bigint, set: Handle): Question<true> => ({
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

export const freeEventSet = (set: Handle): Question<true> => command(['nvmlEventSetFree'], [['handle', set]]);

export interface NvmlEvent {
  readonly gpu: Handle;
  readonly type: bigint;
  /** The XID, for that type. */
  readonly data: number;
}

/**
 * `nvmlEventData_t` of an event that is there already, else `none`: it waits for nothing, so that no thread is held.
 */
export const nextEvent = (set: Handle): Question<NvmlEvent | 'none'> =>
  filling<NvmlEvent | 'none'>({
    feature: null,
    names: ['nvmlEventSetWait_v2', 'nvmlEventSetWait'],
    inputs: [['handle', set]],
    sizes: [32],
    tail: [['uint', 0]],
    read: (_name, out) => {
      const event = out;
      return {
        gpu: event.readBigUInt64LE(0),
        type: event.readBigUInt64LE(8),
        data: Number(event.readBigUInt64LE(16)),
      };
    },
    instead: (code) => (code === NVML.TIMEOUT ? 'none' : null),
  });
