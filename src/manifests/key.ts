/** A key of `hard`: `limits.cpu.A4`, `requests.nvidia.com/gpu`, `pods`, `count/jobs.batch`, `cash/limits.cpu`. */
export type Key = string;

/** Prefix of budgets: the key after it is charged by the hour. */
export const CASH = 'cash/';

/** GPUs of any vendor's resource, and the earlier name of the same. A request of either charges the keys of both. */
export const GPU_COUNT = ['gpus', 'gpu.cards'] as const;

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage', 'storage', ...GPU_COUNT, 'gpu.memory'] as const;
const HUGEPAGES = 'hugepages-';
/** Keys that count objects other than pods, and services of some types. */
const OBJECTS: ReadonlySet<string> = new Set([
  'persistentvolumeclaims',
  'resourceclaims',
  'services',
  'services.loadbalancers',
  'services.nodeports',
]);
/** Suffix of storage per class: `gold.storageclass.storage.k8s.io/requests.storage`. */
const CLASS_STORAGE = '/requests.storage';
const SIDES = ['requests.', 'limits.'] as const;

/** Unit in which amounts of a key are counted and shown. */
export interface Unit {
  /** Decimal places of the base unit: 3 for thousandths of a core or of a GPU, 0 for bytes and counts. */
  readonly decimals: number;
  /** Shown with the suffixes Ki, Mi, Gi. */
  readonly binary: boolean;
  /** A fraction is shown as `0.3`; false: in thousandths, as `300m`. */
  readonly pointed?: boolean;
}

const MILLI: Unit = { decimals: 3, binary: false };
const GPUS: Unit = { decimals: 3, binary: false, pointed: true };
const BYTE: Unit = { decimals: 0, binary: true };
const ONE: Unit = { decimals: 0, binary: false };

/** The unit of a key or of a resource name. */
export function unitOfKey(key: Key): Unit {
  const resource = withoutPrefix(key);
  if (key.endsWith(CLASS_STORAGE)) return BYTE;
  if (resource.includes('/') || resource === 'pods' || OBJECTS.has(resource)) return ONE;
  if (GPU_COUNT.some((name) => isResource(resource, name))) return GPUS;
  if (isResource(resource, 'cpu')) return MILLI;
  return BYTE;
}

/**
 * Whether a resource is extended, with a domain in its name, or derived from one. Request and limit of such a resource
 * are equal.
 */
export function isExtended(resource: string): boolean {
  return resource.includes('/') || isGpuCount(resource) || resource === 'gpu.memory';
}

/** Whether a resource is GPUs of any vendor's resource: `gpus`, without a type. */
export function isGpuCount(resource: string): boolean {
  return resource === 'gpus' || resource === 'gpu.cards';
}

/** Whether a resource counts objects other than pods. */
export function isObjectResource(resource: string): boolean {
  return OBJECTS.has(resource);
}

/** The key after `cash/`; null for another key. */
export function cashTarget(key: Key): Key | null {
  return key.startsWith(CASH) ? key.slice(CASH.length) : null;
}

/**
 * Why `key` can never be charged, or null. An unknown key would silently limit nothing. A request is expanded to the
 * keys that it charges, which are compared as a whole.
 */
export function keyProblem(key: Key): string | null {
  if (key.length > 317 || !/^[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?$/.test(key))
    return `"${key.slice(0, 80)}" is not a resource name`;
  const target = cashTarget(key) ?? key;
  if (target === 'pods') return null;
  if (target.startsWith(CASH)) return `"${key}" repeats the prefix cash/`;
  if (/^count\/[a-z0-9.-]+$/.test(target)) return target === key ? null : `"${key}": objects have no hours`;
  const resource = withoutPrefix(target);
  if (isQualified(resource) || isKnown(resource) || OBJECTS.has(key)) return null;
  return `"${key}" names no resource that a workload can request`;
}

/** Why a workload cannot request `resource`; null if it can. */
export function resourceProblem(resource: string): string | null {
  if (resource.length > 253 || !/^[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?$/.test(resource))
    return `"${resource.slice(0, 80)}" is not a resource name`;
  if (/^(?:requests|limits|count|cash)[./]/.test(resource)) return `"${resource}" is a quota key, not a resource`;
  return null;
}

function withoutPrefix(key: Key): string {
  const from = key.startsWith(CASH) ? CASH.length : 0;
  const prefix = SIDES.find((side) => key.startsWith(side, from)) ?? '';
  return key.slice(from + prefix.length);
}

function isResource(resource: string, name: string): boolean {
  return resource === name || resource.startsWith(`${name}.`);
}

function isQualified(resource: string): boolean {
  return /^[A-Za-z0-9.-]+\/[^/]+$/.test(resource) && !resource.startsWith('count/') && !resource.startsWith(CASH);
}

function isKnown(resource: string): boolean {
  if (resource.startsWith(HUGEPAGES)) return /^hugepages-\d+[KMG]i$/.test(resource);
  return COMPUTE.some((name) => isResource(resource, name));
}
