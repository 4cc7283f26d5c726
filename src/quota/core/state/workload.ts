import type { PodSetCharge } from './request-shape.js';

/**
 * Reference of an object by kind, namespace and name; the uid distinguishes objects that had the same name one after
 * the other.
 */
export interface WorkloadRef {
  /** `Deployment`, or with the API group: `Deployment.apps`. */
  readonly kind: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
  /** Version of the object, such as its resourceVersion; 0 or absent if unknown. */
  readonly version?: number | undefined;
}

/** The charge of a workload. Immutable, except for the mark of the list that holds it. */
export interface Workload {
  /** Key by `refKey`. */
  readonly key: string;
  readonly uid: string;
  readonly group: string;
  readonly podSets: readonly PodSetCharge[];
  /** Key of the object count, such as `count/deployments.apps`; empty for none. */
  readonly countKey: string;
  /** Minimum of charged replicas in the first pod set: the reserved maximum of an autoscaler; 0 for none. */
  readonly heldReplicas: number;
  /** Version of the charged object; for a reservation, the version before the admitted change. 0 if unknown. */
  readonly version: number;
  /** Removed from its group or replaced; used only by GroupWorkloads. */
  isStale: boolean;
}

/** The key of a workload in maps. */
export function refKey(ref: WorkloadRef): string {
  // Array.join gives a flat string; a concatenation would keep its parts in memory.
  return [ref.kind, ref.namespace ?? '', ref.name].join('/');
}

const KIND = /^[A-Za-z][A-Za-z0-9.-]*$/;
const NAMESPACE = /^[a-z0-9.-]*$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9.:_-]*$/;
const UID = /^[A-Za-z0-9.:_-]*$/;
const KEY = /^[A-Za-z][A-Za-z0-9.-]*\/[a-z0-9.-]*\/[A-Za-z0-9][A-Za-z0-9.:_-]*$/;
const MAX_KEY = 512;

/** Why `ref`, whose key is `key`, is not a valid reference; null if it is valid. */
export function refProblem(ref: WorkloadRef, key: string): string | null {
  const uid = ref.uid ?? '';
  if (key.length > MAX_KEY || uid.length > MAX_KEY)
    return `kind, namespace and name are longer than ${MAX_KEY} characters`;
  if (KEY.test(key) && (uid === '' || UID.test(uid))) return null;
  if (!KIND.test(ref.kind)) return `"${ref.kind.slice(0, 80)}" is not a kind`;
  if (!NAMESPACE.test(ref.namespace ?? '')) return `"${(ref.namespace ?? '').slice(0, 80)}" is not a namespace`;
  return NAME.test(ref.name)
    ? `"${uid.slice(0, 80)}" is not a uid`
    : `"${ref.name.slice(0, 80)}" is not an object name`;
}

/** The reference of a key, without uid. */
export function refOfKey(key: string): WorkloadRef {
  const [kind = '', namespace = '', name = ''] = key.split('/');
  return { kind, namespace, name };
}

/**
 * Whether a workload is a later state of the same object. Two engines may charge an object to two groups at once, in
 * unrelated records; then the later state counts in every engine.
 */
export function isLater(workload: Workload, than: Workload): boolean {
  return workload.uid !== '' && workload.uid === than.uid && than.version > 0 && workload.version > than.version;
}

/** Charged pods of a set. */
export function chargedCount(workload: Workload, index: number): number {
  const { count } = workload.podSets[index] as PodSetCharge;
  return index === 0 && workload.heldReplicas > count ? workload.heldReplicas : count;
}
