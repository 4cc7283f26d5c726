import type { FoundInstance, MigPlace, MigProfile, PartitionableGpu } from '../../../gpu/mig-partition.js';
import { DriverError, type Destroyed, type GpuDetails } from '../driver.js';
import * as identity from './identity.js';
import { gpuInstanceId, instanceHandles, profileName } from './mig-instance.js';
import { optional, settled, type NvmlGpu } from './nvidia-gpu.js';
import { NVML } from './nvml-code.js';
import type { Nvml } from './nvml.js';
import { command, filling, listing, textAt, type Handle, type Listed, type NvmlCall } from './nvml-call.js';

/** NVML's numbers of profiles of GPU instances, and of compute instances. */
const GPU_INSTANCE_PROFILES = 0x11;
const COMPUTE_INSTANCE_PROFILES = 8;
/** No GPU has more places for a profile, or more instances of it. */
const ROOM = 32;
const MIB = 1024 ** 2;

/** How MIG can divide a GPU, and its instances. Null if the driver does not tell. */
export async function askPartition(nvml: Nvml, gpu: NvmlGpu): Promise<PartitionableGpu<GpuDetails> | null> {
  const profiles: MigProfile[] = [];
  for (let number = 0; number < GPU_INSTANCE_PROFILES; number++) {
    const info = await optional(nvml.ask(gpu.target, profileInfo(gpu, number)));
    const places = info === null ? null : await optional(nvml.ask(gpu.target, placements(gpu.handle, info.id)));
    if (info === null || places === null || !('entries' in places)) continue;
    const size = places.entries[0]?.size ?? 0;
    const starts = places.entries.map(({ start }) => start).sort((a, b) => a - b);
    if (size > 0) profiles.push({ ...info, starts, size });
  }
  const found = profiles.length === 0 ? null : await optional(foundInstances(nvml, gpu, profiles));
  return found === null ? null : { gpu: gpu.details, profiles, found: found.map(({ handle: _, ...one }) => one) };
}

type Found = FoundInstance & { readonly handle: Handle };

/** The GPU instances of these profiles; null if the driver does not list them. */
export function foundInstances(
  nvml: Nvml,
  gpu: NvmlGpu,
  profiles: readonly Pick<MigProfile, 'id'>[],
): Promise<readonly Found[] | null> {
  return settled(() => readInstances(nvml, gpu, profiles));
}

async function readInstances(
  nvml: Nvml,
  gpu: NvmlGpu,
  profiles: readonly Pick<MigProfile, 'id'>[],
): Promise<readonly Found[] | null> {
  const uuids = new Map<number, string[]>();
  for (const handle of await instanceHandles(nvml, gpu)) {
    const id = await nvml.require(gpu.target, gpuInstanceId(handle));
    uuids.set(id, [...(uuids.get(id) ?? []), await nvml.require(gpu.target, identity.uuid(handle))]);
  }
  const found: Found[] = [];
  for (const { id: profileId } of profiles) {
    const listed = await nvml.ask(gpu.target, gpuInstances(gpu.handle, profileId));
    if (listed === null || !('entries' in listed)) return null;
    for (const handle of listed.entries) {
      const { id, start, size } = await nvml.require(gpu.target, instanceInfo(handle));
      found.push({ handle, gpuInstance: id, profileId, start, size, uuids: uuids.get(id) ?? [] });
    }
  }
  return found;
}

/** Creates a GPU instance with one compute instance for all of it; returns its UUID. Leaves nothing after a failure. */
export async function createInstance(nvml: Nvml, gpu: NvmlGpu, { profileId, start }: MigPlace): Promise<string> {
  const { target } = gpu;
  const places = await nvml.require(target, placements(gpu.handle, profileId));
  const size = 'entries' in places ? places.entries[0]?.size : undefined;
  if (size === undefined) throw new DriverError('failed', `${target} has no place for MIG profile ${profileId}`);
  const instance = await nvml.require(target, createGpuInstance(gpu.handle, profileId, start, size));
  try {
    await nvml.require(target, createComputeInstance(instance, await wholeProfile(nvml, target, instance)));
    const made = (await foundInstances(nvml, gpu, [{ id: profileId }]))?.find((one) => one.start === start);
    const [uuid] = made?.uuids ?? [];
    if (uuid === undefined)
      throw new DriverError('failed', `${target}: the driver does not list the created MIG instance`);
    return uuid;
  } catch (error) {
    await destroyAll(nvml, target, instance).catch(() => undefined);
    throw error;
  }
}

/** Destroys the instance at a place; `foreign` if it has another UUID than `uuid`. With null, any instance there. */
export async function destroyInstance(
  nvml: Nvml,
  gpu: NvmlGpu,
  place: MigPlace,
  uuid: string | null,
): Promise<Destroyed> {
  const found = await foundInstances(nvml, gpu, [{ id: place.profileId }]);
  if (found === null) throw new DriverError('failed', `${gpu.target}: the driver does not list its MIG instances`);
  const here = found.find(({ start }) => start === place.start);
  if (here === undefined) return 'missing';
  if (uuid !== null && here.uuids.some((other) => other !== uuid)) return 'foreign';
  return destroyAll(nvml, gpu.target, here.handle);
}

async function destroyAll(nvml: Nvml, target: string, instance: Handle): Promise<'destroyed' | 'in-use'> {
  for (let number = 0; number < COMPUTE_INSTANCE_PROFILES; number++) {
    const profileId = await optional(nvml.ask(target, computeProfile(instance, number)));
    const listed = profileId === null ? null : await nvml.ask(target, computeInstances(instance, profileId.id));
    if (listed === null || !('entries' in listed)) continue;
    for (const compute of listed.entries)
      if ((await nvml.require(target, destroy('nvmlComputeInstanceDestroy', compute))) === 'in-use') return 'in-use';
  }
  return nvml.require(target, destroy('nvmlGpuInstanceDestroy', instance));
}

/** Id of the profile of a compute instance that has all slices of the GPU instance. */
async function wholeProfile(nvml: Nvml, target: string, instance: Handle): Promise<number> {
  let largest: { readonly id: number; readonly slices: number } | null = null;
  for (let number = 0; number < COMPUTE_INSTANCE_PROFILES; number++) {
    const profile = await optional(nvml.ask(target, computeProfile(instance, number)));
    if (profile !== null && profile.slices > (largest?.slices ?? 0)) largest = profile;
  }
  if (largest === null) throw new DriverError('failed', `${target}: the GPU instance has no compute profile`);
  return largest.id;
}

const ENGINES = ['copy-engines', 'decoders', 'encoders', 'jpeg-engines', 'ofa-engines'] as const;
const NAME_SIZE = 96;

/**
 * `nvmlGpuInstanceProfileInfo_v2_t`: version, nine numbers, memory in MiB in 64 bits, name. The first version has
 * neither version nor name.
 */
function profileInfo(gpu: NvmlGpu, number: number): NvmlCall<Omit<MigProfile, 'starts' | 'size'>> {
  const size = 56 + NAME_SIZE;
  const named = 'nvmlDeviceGetGpuInstanceProfileInfoV';
  const call = filling({
    feature: null,
    names: [named, 'nvmlDeviceGetGpuInstanceProfileInfo'],
    inputs: [
      ['handle', gpu.handle],
      ['uint', number],
    ],
    sizes: [size],
    read: (name, out) => {
      const first = name === named ? 4 : 0;
      const at = (position: number): number => out.readUInt32LE(first + 4 * position);
      const memoryBytes = Number(out.readBigUInt64LE(name === named ? 48 : 40)) * MIB;
      const text = name === named ? textAt(out, 56).replace(/^MIG /u, '') : '';
      return {
        id: at(0),
        name: text === '' ? profileName(at(2), at(2), memoryBytes, gpu.details.memoryBytes) : text,
        memoryBytes,
        multiprocessors: at(4),
        engines: Object.fromEntries(
          ENGINES.flatMap((engine, position) => (at(5 + position) === 0 ? [] : [[engine, at(5 + position)]])),
        ),
      };
    },
  });
  const [, , out] = call.args;
  if (Buffer.isBuffer(out)) out.writeUInt32LE(size | (2 << 24));
  return call;
}

const placements = (gpu: Handle, profileId: number) =>
  listing({
    feature: null,
    names: ['nvmlDeviceGetGpuInstancePossiblePlacements_v2', 'nvmlDeviceGetGpuInstancePossiblePlacements'],
    inputs: [
      ['handle', gpu],
      ['uint', profileId],
    ],
    room: ROOM,
    entriesFirst: true,
    size: () => 8,
    entry: (out, at) => ({ start: out.readUInt32LE(at), size: out.readUInt32LE(at + 4) }),
  });

const gpuInstances = (gpu: Handle, profileId: number): NvmlCall<Listed<Handle>> =>
  handles('nvmlDeviceGetGpuInstances', gpu, profileId);
const computeInstances = (instance: Handle, profileId: number): NvmlCall<Listed<Handle>> =>
  handles('nvmlGpuInstanceGetComputeInstances', instance, profileId);

function handles(name: string, of: Handle, profileId: number): NvmlCall<Listed<Handle>> {
  return listing({
    feature: null,
    names: [name],
    inputs: [
      ['handle', of],
      ['uint', profileId],
    ],
    room: ROOM,
    entriesFirst: true,
    size: () => 8,
    entry: (out, at) => out.readBigUInt64LE(at),
  });
}

/** `nvmlGpuInstanceInfo_t`: device, id, profile, start and size. */
const instanceInfo = (instance: Handle) =>
  filling({
    feature: null,
    names: ['nvmlGpuInstanceGetInfo'],
    inputs: [['handle', instance]],
    sizes: [24],
    read: (_name, out) => ({ id: out.readUInt32LE(8), start: out.readUInt32LE(16), size: out.readUInt32LE(20) }),
  });

function createGpuInstance(gpu: Handle, profileId: number, start: number, size: number): NvmlCall<Handle> {
  const placement = Buffer.alloc(8);
  placement.writeUInt32LE(start);
  placement.writeUInt32LE(size, 4);
  return filling({
    feature: null,
    names: ['nvmlDeviceCreateGpuInstanceWithPlacement'],
    inputs: [
      ['handle', gpu],
      ['uint', profileId],
      ['memory', placement],
    ],
    sizes: [8],
    read: (_name, out) => out.readBigUInt64LE(),
  });
}

const createComputeInstance = (instance: Handle, profileId: number): NvmlCall<Handle> =>
  filling({
    feature: null,
    names: ['nvmlGpuInstanceCreateComputeInstance'],
    inputs: [
      ['handle', instance],
      ['uint', profileId],
    ],
    sizes: [8],
    read: (_name, out) => out.readBigUInt64LE(),
  });

/** `nvmlComputeInstanceProfileInfo_t`: nine numbers, the id and the slices first; engines are shared. */
const computeProfile = (instance: Handle, number: number) =>
  filling({
    feature: null,
    names: ['nvmlGpuInstanceGetComputeInstanceProfileInfo'],
    inputs: [
      ['handle', instance],
      ['uint', number],
      ['uint', 0],
    ],
    sizes: [36],
    read: (_name, out) => ({ id: out.readUInt32LE(0), slices: out.readUInt32LE(4) }),
  });

function destroy(name: string, handle: Handle): NvmlCall<'destroyed' | 'in-use'> {
  return {
    ...command([name], [['handle', handle]]),
    read: () => 'destroyed',
    instead: (code) => (code === NVML.IN_USE ? 'in-use' : null),
  };
}
