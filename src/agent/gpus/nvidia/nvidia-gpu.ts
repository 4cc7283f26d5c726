import type { GpuDetails } from '../driver.js';
import { DriverError } from '../driver.js';
import type { KernelDriver } from './kernel-driver.js';
import * as identity from './identity.js';
import type { Nvml } from './nvml.js';
import type { Handle } from './nvml-call.js';

/** A GPU that answered when the session was opened, or a MIG instance on it. */
export interface NvmlGpu {
  readonly handle: Handle;
  /** Handle for temperature, power and energy: an instance uses its GPU's. */
  readonly board: Handle;
  /** Target of its calls, which run one after another; messages use it as the GPU's name. */
  readonly target: string;
  readonly details: GpuDetails;
}

/** Reads everything about a GPU that never changes. Rejects if the GPU does not answer. */
export async function describeGpu(nvml: Nvml, kernel: KernelDriver, index: number): Promise<NvmlGpu> {
  const target = `GPU ${index}`;
  const handle = await nvml.require(target, identity.handleByIndex(index));
  const pciBusId = await nvml.require(target, identity.pciBusId(handle));
  const uuid = await nvml.require(target, identity.uuid(handle));
  const { totalBytes } = await nvml.require(target, identity.memory(handle));
  const near = await optional(nvml.ask(target, identity.numaNode(handle)));
  const details: GpuDetails = {
    index,
    uuid,
    pciBusId,
    memoryBytes: totalBytes,
    minor: (await optional(nvml.ask(target, identity.minor(handle)))) ?? index,
    model: (await optional(nvml.ask(target, identity.model(handle)))) ?? 'unknown',
    numaNode: near === null || near < 0 ? await kernel.numaNode(pciBusId) : near,
    computeCapability: await optional(nvml.ask(target, identity.computeCapability(handle))),
    ecc: await optional(nvml.ask(target, identity.eccMode(handle))),
    mig: await optional(nvml.ask(target, identity.migMode(handle))),
  };
  return { handle, board: handle, target, details };
}

/** A failed call is not an error as long as the GPU and the driver exist. */
export async function optional<T>(answer: Promise<T | null>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof DriverError && error.code === 'failed') return null;
    throw error;
  }
}

/** Reads again after a failure, since somebody may have destroyed a MIG instance meanwhile. */
export async function settled<T>(read: () => Promise<T>): Promise<T> {
  for (let left = 2; ; left--)
    try {
      return await read();
    } catch (error) {
      if (left === 0 || !(error instanceof DriverError) || error.code !== 'failed') throw error;
    }
}
