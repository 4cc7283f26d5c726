import type { MigInstance } from '../../../gpu/gpu.js';
import type { ExcludedGpu, GpuDetails } from '../driver.js';
import * as identity from './identity.js';
import { NVML } from './nvml-code.js';
import { optional, settled, type NvmlGpu } from './nvidia-gpu.js';
import type { Nvml } from './nvml.js';
import { filling, uint, type Handle, type NvmlCall } from './nvml-call.js';

/** The MIG instances of one GPU. */
export interface Instances {
  readonly usable: readonly NvmlGpu[];
  readonly excluded: readonly ExcludedGpu[];
}

/** The format of instance UUIDs since driver 470; CUDA accepts no other format as the name of a device. */
const UUID_PATTERN = /^MIG-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu;

/**
 * Asks the instances of a GPU that MIG divides; `firstIndex` is given to the first. An instance shares calls and
 * sensors with its GPU.
 */
export async function describeInstances(nvml: Nvml, parent: NvmlGpu, firstIndex: number): Promise<Instances> {
  const found = await settled(async () => {
    const all: NvmlGpu[] = [];
    for (const handle of await instanceHandles(nvml, parent))
      all.push(await describeInstance(nvml, parent, handle, firstIndex + all.length));
    return all;
  });
  const reasons = new Map(found.map((gpu) => [gpu, exclusion(gpu, found)]));
  return {
    usable: found.filter((gpu) => reasons.get(gpu) === null),
    excluded: found.flatMap((gpu) => {
      const reason = reasons.get(gpu) ?? null;
      return reason === null ? [] : [{ gpu: gpu.details, reason }];
    }),
  };
}

/** UUIDs of the instances that a GPU has now, in the driver's order. */
export async function instanceUuids(nvml: Nvml, parent: NvmlGpu): Promise<readonly string[]> {
  const uuids: string[] = [];
  for (const handle of await instanceHandles(nvml, parent))
    uuids.push((await nvml.ask(parent.target, identity.uuid(handle))) ?? '');
  return uuids;
}

/** Its MIG devices: compute instances with their GPU instances. */
export async function instanceHandles(nvml: Nvml, { target, handle }: NvmlGpu): Promise<readonly Handle[]> {
  const most = (await optional(nvml.ask(target, mostInstances(handle)))) ?? 0;
  const handles: Handle[] = [];
  for (let index = 0; index < most; index++) {
    const instance = await nvml.ask(target, instanceByIndex(handle, index));
    if (instance !== null && instance !== 'none') handles.push(instance);
  }
  return handles;
}

async function describeInstance(nvml: Nvml, parent: NvmlGpu, handle: Handle, index: number): Promise<NvmlGpu> {
  const { target } = parent;
  const { totalBytes } = await nvml.require(target, identity.memory(handle));
  const model = await optional(nvml.ask(target, identity.model(handle)));
  const attributes = await optional(nvml.ask(target, instanceAttributes(handle)));
  const instance: MigInstance = {
    profile: profileOf(model, attributes, parent.details.memoryBytes),
    parentUuid: parent.details.uuid,
    gpuInstance: await nvml.require(target, gpuInstanceId(handle)),
    computeInstance: await nvml.require(target, computeInstanceId(handle)),
    multiprocessors: attributes?.multiprocessors ?? null,
  };
  const details: GpuDetails = {
    ...parent.details,
    index,
    uuid: await nvml.require(target, identity.uuid(handle)),
    model: model ?? `${parent.details.model} MIG ${instance.profile}`,
    memoryBytes: totalBytes,
    mig: null,
    instance,
  };
  return { handle, board: parent.handle, target, details };
}

function exclusion({ details }: NvmlGpu, all: readonly NvmlGpu[]): string | null {
  if (!UUID_PATTERN.test(details.uuid)) return 'the driver is older than 470 and gives MIG instances no UUIDs';
  const inSame = all.filter((other) => other.details.instance?.gpuInstance === details.instance?.gpuInstance);
  return inSame.length > 1 ? 'its GPU instance has several compute instances, which share one memory' : null;
}

interface Attributes {
  readonly multiprocessors: number;
  readonly gpuSlices: number;
  readonly computeSlices: number;
  readonly memoryMib: number;
}

const EIGHTHS = 8;
const GIB = 1024 ** 3;

/** The profile is the end of the product name; for an older driver it is built from the sizes. */
function profileOf(model: string | null, attributes: Attributes | null, gpuBytes: number): string {
  const named = /\bMIG (\S+)$/u.exec(model ?? '')?.[1];
  if (named !== undefined) return named;
  if (attributes === null) return 'unknown';
  return profileName(attributes.computeSlices, attributes.gpuSlices, attributes.memoryMib * 1024 ** 2, gpuBytes);
}

/** NVIDIA's name of a profile by its sizes. */
export function profileName(computeSlices: number, gpuSlices: number, bytes: number, gpuBytes: number): string {
  const part = Math.ceil((bytes / gpuBytes) * EIGHTHS) / EIGHTHS;
  const size = `${gpuSlices}g.${Math.round(part * Math.ceil(gpuBytes / GIB))}gb`;
  return computeSlices === gpuSlices ? size : `${computeSlices}c.${size}`;
}

const mostInstances = (gpu: Handle): NvmlCall<number> => number('nvmlDeviceGetMaxMigDeviceCount', gpu);
export const gpuInstanceId = (mig: Handle): NvmlCall<number> => number('nvmlDeviceGetGpuInstanceId', mig);
const computeInstanceId = (mig: Handle): NvmlCall<number> => number('nvmlDeviceGetComputeInstanceId', mig);

function number(name: string, handle: Handle): NvmlCall<number> {
  return filling({ feature: null, names: [name], inputs: [['handle', handle]], sizes: [4], read: uint });
}

const instanceByIndex = (gpu: Handle, index: number): NvmlCall<Handle | 'none'> =>
  filling<Handle | 'none'>({
    feature: null,
    names: ['nvmlDeviceGetMigDeviceHandleByIndex'],
    inputs: [
      ['handle', gpu],
      ['uint', index],
    ],
    sizes: [8],
    read: (_name, out) => out.readBigUInt64LE(),
    instead: (code) => (code === NVML.NOT_FOUND ? 'none' : null),
  });

/** `nvmlDeviceAttributes_t`: eight numbers of 32 bits, then the memory in MiB in 64. */
const instanceAttributes = (mig: Handle): NvmlCall<Attributes> =>
  filling({
    feature: null,
    names: ['nvmlDeviceGetAttributes_v2', 'nvmlDeviceGetAttributes'],
    inputs: [['handle', mig]],
    sizes: [40],
    read: (_name, out) => ({
      multiprocessors: out.readUInt32LE(0),
      gpuSlices: out.readUInt32LE(24),
      computeSlices: out.readUInt32LE(28),
      memoryMib: Number(out.readBigUInt64LE(32)),
    }),
  });
