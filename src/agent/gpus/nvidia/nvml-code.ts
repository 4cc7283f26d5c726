import { DriverError } from '../driver.js';

/** The codes of `nvmlReturn_t` in nvml.h that the agent distinguishes. */
export const NVML = {
  SUCCESS: 0,
  UNINITIALIZED: 1,
  INVALID_ARGUMENT: 2,
  NOT_SUPPORTED: 3,
  NO_PERMISSION: 4,
  NOT_FOUND: 6,
  INSUFFICIENT_SIZE: 7,
  DRIVER_NOT_LOADED: 9,
  TIMEOUT: 10,
  FUNCTION_NOT_FOUND: 13,
  GPU_IS_LOST: 15,
  RESET_REQUIRED: 16,
  OPERATING_SYSTEM: 17,
  LIB_RM_VERSION_MISMATCH: 18,
  IN_USE: 19,
  NO_DATA: 21,
  INSUFFICIENT_RESOURCES: 23,
  ARGUMENT_VERSION_MISMATCH: 25,
  DEPRECATED: 26,
  GPU_NOT_FOUND: 28,
} as const;

const MEANING: Readonly<Record<number, string>> = {
  [NVML.UNINITIALIZED]: 'NVML is not initialised',
  [NVML.INVALID_ARGUMENT]: 'invalid argument',
  [NVML.NOT_SUPPORTED]: 'not supported',
  [NVML.NO_PERMISSION]: 'no permission',
  [NVML.NOT_FOUND]: 'not found',
  [NVML.DRIVER_NOT_LOADED]: 'the kernel driver is not loaded',
  [NVML.TIMEOUT]: 'timeout',
  [NVML.FUNCTION_NOT_FOUND]: 'the driver has no such function',
  [NVML.GPU_IS_LOST]: 'the GPU has fallen off the bus',
  [NVML.RESET_REQUIRED]: 'the GPU needs a reset',
  [NVML.LIB_RM_VERSION_MISMATCH]: 'library and kernel driver have different versions',
  [NVML.IN_USE]: 'in use',
  [NVML.INSUFFICIENT_RESOURCES]: 'insufficient resources',
  [NVML.GPU_NOT_FOUND]: 'no such GPU',
};

/** The meaning of a return code, in words. */
export function meaning(code: number): string {
  return MEANING[code] ?? `NVML error ${code}`;
}

/** True if the driver or the GPU does not support the call. */
export function isUnsupported(code: number): boolean {
  return (
    code === NVML.NOT_SUPPORTED ||
    code === NVML.NO_PERMISSION ||
    code === NVML.FUNCTION_NOT_FOUND ||
    code === NVML.ARGUMENT_VERSION_MISMATCH ||
    code === NVML.DEPRECATED
  );
}

/** The error for a return code, which says whether one GPU or the whole driver failed. */
export function errorOf(what: string, code: number): DriverError {
  const message = `${what}: ${meaning(code)}`;
  switch (code) {
    case NVML.GPU_IS_LOST:
    case NVML.RESET_REQUIRED:
    case NVML.GPU_NOT_FOUND:
      return new DriverError('gpu-lost', message, code);
    case NVML.UNINITIALIZED:
    case NVML.DRIVER_NOT_LOADED:
    case NVML.LIB_RM_VERSION_MISMATCH:
      return new DriverError('unreachable', message, code);
    default:
      return new DriverError('failed', message, code);
  }
}
