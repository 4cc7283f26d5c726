import type { PodSetCharge } from './request-shape.js';

/** Which object: kind, namespace and name say it, the uid tells two lives of the same name apart. */
export interface WorkloadRef {
  /** `Deployment`, or with its API group where kinds collide: `Deployment.apps`. */
  readonly kind: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
  /** How often the object had changed when it was looked at, where somebody counts that: a resourceVersion. */
  readonly version?: number | undefined;
}

/** What a workload is charged for. Never changed: replaced; only the list it stands in marks it. */
export interface Workload {
  /** `refKey` of the workload. */
  readonly key: string;
  readonly uid: string;
  readonly group: string;
  readonly podSets: readonly PodSetCharge[];
  /** Key of the object count: `count/deployments.apps`, or empty. */
  readonly countKey: string;
  /** Replicas charged at least, of the first pod set: an autoscaler's reserved maximum. 0 without. */
  readonly heldReplicas: number;
  /**
   * Version of the object that this is the charge of; of a reservation, the one it was to follow. 0 where nobody
   * counts.
   */
  readonly version: number;
  /** Left its group or was replaced: for GroupWorkloads alone. */
  gone: boolean;
}

/** Name of a workload in maps. */
export function refKey(ref: WorkloadRef): string {
  // Joined arrays are flat strings; concatenated ones would keep their parts alive besides.
  return [ref.kind, ref.namespace ?? '', ref.name].join('/');
}

const KIND = /^[A-Za-z][A-Za-z0-9.-]*$/;
const NAMESPACE = /^[a-z0-9.-]*$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9.:_-]*$/;
const UID = /^[A-Za-z0-9.:_-]*$/;
const KEY = /^[A-Za-z][A-Za-z0-9.-]*\/[a-z0-9.-]*\/[A-Za-z0-9][A-Za-z0-9.:_-]*$/;
const MAX_KEY = 512;

/** Why `ref`, whose key is `key`, can name no object, or null. */
export function refProblem(ref: WorkloadRef, key: string): string | null {
  const uid = ref.uid ?? '';
  if (key.length > MAX_KEY || uid.length > MAX_KEY)
    return `kind, namespace and name are longer than ${MAX_KEY} characters`;
  if (KEY.test(key) && (uid === '' || UID.test(uid))) return null;
  if (!KIND.test(ref.kind)) return `"${ref.kind.slice(0, 80)}" is no kind`;
  if (!NAMESPACE.test(ref.namespace ?? '')) return `"${(ref.namespace ?? '').slice(0, 80)}" is no namespace`;
  return NAME.test(ref.name) ? `"${uid.slice(0, 80)}" is no uid` : `"${ref.name.slice(0, 80)}" is no name of an object`;
}

/** The reference that a key was made of, without uid. */
export function refOfKey(key: string): WorkloadRef {
  const [kind = '', namespace = '', name = ''] = key.split('/');
  return { kind, namespace, name };
}

/**
 * Whether a workload is a later state of the same object than another one. Two engines may charge an object to two
 * groups at once, whose records have nothing in common: the later state counts, for every engine.
 */
export function isLater(workload: Workload, than: Workload): boolean {
  return workload.uid !== '' && workload.uid === than.uid && than.version > 0 && workload.version > than.version;
}

/** Pods of a set that are charged. */
export function chargedCount(workload: Workload, index: number): number {
  const { count } = workload.podSets[index] as PodSetCharge;
  return index === 0 && workload.heldReplicas > count ? workload.heldReplicas : count;
}
