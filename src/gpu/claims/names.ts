import { createHash } from 'node:crypto';

/** The DRA driver's name: in ResourceSlices, claims' results, and the paths of its sockets. */
export const DRIVER_NAME = 'gpu.tencent.com';

/** Name of the configuration object that users put into claims and classes, and its version. */
export const CONFIG_API_VERSION = 'gpu.tencent.com/v1';
export const CONFIG_KIND = 'SliceConfig';

/** Key of the taint that a GPU gets which is not healthy; the value is its health status. */
export const HEALTH_TAINT_KEY = `${DRIVER_NAME}/health`;

const LONGEST_POOL_NAME = 253;

/** The pool of a node's GPUs. No other driver uses this name: the scheduler keys its counters by pool alone. */
export function poolName(node: string): string {
  const name = `${node}/vcuda`;
  return name.length <= LONGEST_POOL_NAME ? name : `vcuda-${shortHash(node)}`;
}

/** The device that a GPU is published as: by its UUID, so that the name never means another GPU. */
export function deviceName(gpuUuid: string): string {
  return `gpu-${gpuUuid.replace(/^GPU-/, '').toLowerCase()}`;
}

/**
 * The id of a claim unit, in the form of allocation ids: it names the directory, the socket, the CDI file and the log
 * lines. It follows from claim and main request alone, so it is the same after every restart, and when the claim is
 * allocated anew.
 */
export function unitId(claimUid: string, request: string): string {
  return shortHash(`claim\0${claimUid}\0${request}`);
}

/** `main` of `main/alternative`, as results of prioritized lists name their requests. */
export function mainRequest(request: string): string {
  return request.split('/')[0] ?? request;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
