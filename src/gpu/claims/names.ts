import { createHash } from 'node:crypto';
import type { Gpu } from '../gpu.js';
import type { MigPlace } from '../mig-partition.js';

/** The DRA driver's name in ResourceSlices, in the results of claims, and in the paths of its sockets. */
export const DRIVER_NAME = 'gpu.tencent.com';

/** API version of the configuration object that users put into claims and classes. */
export const CONFIG_API_VERSION = 'gpu.tencent.com/v1';
export const CONFIG_KIND = 'SliceConfig';

/** Key of the taint of an unhealthy GPU; its value is the health status. */
export const HEALTH_TAINT_KEY = `${DRIVER_NAME}/health`;

const MAX_POOL_NAME = 253;

/**
 * The pool of a node's GPUs. No other driver uses this name: the scheduler's counters have only the pool in their key.
 */
export function poolName(node: string): string {
  const name = `${node}/vcuda`;
  return name.length <= MAX_POOL_NAME ? name : `vcuda-${shortHash(node)}`;
}

/** Device name of a GPU or MIG instance, made from its UUID, so that the name never means another GPU. */
export function deviceName(gpuUuid: string): string {
  const [, kind = 'gpu', id = gpuUuid] = /^(GPU|MIG)-(.*)$/u.exec(gpuUuid) ?? [];
  return `${kind}-${id}`.toLowerCase();
}

/** Device name of a place at which the agent creates MIG instances: it outlives the instances there. */
export function placeName(gpuUuid: string, profile: string, { profileId, start }: Omit<MigPlace, 'gpuUuid'>): string {
  const printable = profile.replaceAll(/[^0-9a-z]+/giu, '-').toLowerCase();
  return `${deviceName(gpuUuid)}-${printable}-${profileId}-${start}`;
}

/** Device name of a GPU of the node: of its place, if the agent creates the instances there. */
export function deviceNameOf({ uuid, instance }: Pick<Gpu, 'uuid' | 'instance'>): string {
  return instance?.placement === undefined
    ? deviceName(uuid)
    : placeName(instance.parentUuid, instance.profile, instance.placement);
}

/**
 * The id of a claim unit, in the form of allocation ids: it names the directory, the socket and the CDI file, and logs
 * use it. It depends only on claim and main request, so it stays the same after every restart and after a new
 * allocation of the claim.
 */
export function unitId(claimUid: string, request: string): string {
  return shortHash(`claim\0${claimUid}\0${request}`);
}

/** The main request of a request name: `main` for `main/alternative`, which results of prioritized lists contain. */
export function mainRequest(request: string): string {
  return request.split('/')[0] ?? request;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
