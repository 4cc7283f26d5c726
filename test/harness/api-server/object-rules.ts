import { randomBytes, randomUUID } from 'node:crypto';
import { conflict, invalid, MODIFIED_MEANWHILE } from './api-failure.js';
import { isDeepEqual, valueAt, type Json, type KubeObject, type ObjectMeta } from './kube-object.js';
import { apiVersionOf, type ResourceType } from './resource-type.js';

const DNS_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** RFC 3339 with whole seconds, as metadata times are written. */
export function timestamp(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

/** The stored form of an object that a client creates. `seeded` objects keep status, uid and creation time. */
export function newObject(
  type: ResourceType,
  namespace: string,
  sent: KubeObject,
  nowMs: number,
  seeded = false,
): KubeObject {
  const { generateName } = sent.metadata;
  const name =
    sent.metadata.name ??
    (generateName === undefined ? '' : `${generateName}${randomBytes(3).toString('hex').slice(0, 5)}`);
  if (!DNS_NAME.test(name) || name.length > 253)
    throw invalid(
      type,
      name,
      'metadata.name',
      `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'`,
    );
  const metadata: ObjectMeta = {
    ...sent.metadata,
    name,
    ...(type.namespaced ? { namespace } : {}),
    uid: seeded ? (sent.metadata.uid ?? randomUUID()) : randomUUID(),
    creationTimestamp: seeded ? (sent.metadata.creationTimestamp ?? timestamp(nowMs)) : timestamp(nowMs),
    ...(type.generation === true ? { generation: 1 } : {}),
  };
  const { status, ...rest } = sent;
  const created: KubeObject = {
    ...rest,
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: without(metadata, seeded ? ['resourceVersion'] : SERVER_SIDE),
  };
  if (seeded && status !== undefined) return { ...created, status };
  if (type.initialStatus !== undefined) return { ...created, status: type.initialStatus() };
  return (type.statusSubresource === true && type.custom === true) || status === undefined
    ? created
    : { ...created, status };
}

const SERVER_SIDE = ['resourceVersion', 'deletionTimestamp', 'deletionGracePeriodSeconds'];

function without(metadata: ObjectMeta, keys: readonly string[]): ObjectMeta {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !keys.includes(key)));
}

/**
 * The current object after an update. The status subresource changes only `status`, the object itself everything else.
 * Server-managed metadata stays.
 */
export function updatedObject(
  type: ResourceType,
  current: KubeObject,
  sent: KubeObject,
  subresource: string,
  conditional: boolean,
): KubeObject {
  const name = current.metadata.name ?? '';
  const { resourceVersion, uid } = sent.metadata;
  if (conditional) {
    if (uid !== undefined && uid !== current.metadata.uid) {
      throw conflict(
        type,
        name,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid ?? ''}`,
      );
    }
    if (resourceVersion === undefined && type.custom === true)
      throw invalid(type, name, 'metadata.resourceVersion', 'Invalid value: 0x0: must be specified for an update');
  } else if (uid !== undefined && uid !== current.metadata.uid) {
    throw invalid(type, name, 'metadata.uid', `Invalid value: "${uid}": field is immutable`);
  }
  if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
    throw conflict(type, name, MODIFIED_MEANWHILE);
  if (type.statusSubresource === true && subresource === 'status') return { ...current, status: sent.status };

  const kept = Object.fromEntries(
    [
      'name',
      'namespace',
      'uid',
      'creationTimestamp',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
      'generation',
      'resourceVersion',
    ].flatMap((key) => (key in current.metadata ? [[key, current.metadata[key]]] : [])),
  );
  const metadata: ObjectMeta = { ...without(sent.metadata, [...SERVER_SIDE, 'generation']), ...kept };
  const next: KubeObject = { ...sent, apiVersion: apiVersionOf(type), kind: type.kind, metadata };
  const settled = type.statusSubresource === true ? withField(next, 'status', current.status) : next;
  const changed = !isDeepEqual(contentOf(settled), contentOf(current));
  if (type.generation !== true || !changed) return settled;
  return { ...settled, metadata: { ...metadata, generation: (current.metadata.generation ?? 0) + 1 } };
}

function contentOf(object: KubeObject): Json {
  const { metadata: _metadata, status: _status, ...content } = object;
  return content;
}

function withField(object: KubeObject, field: string, value: unknown): KubeObject {
  const { [field]: _old, ...rest } = object;
  return (value === undefined ? rest : { ...rest, [field]: value }) as KubeObject;
}

/**
 * True when the update changes nothing: the server then answers with the current object and its old resourceVersion.
 */
export function changesNothing(current: KubeObject, next: KubeObject): boolean {
  return isDeepEqual(current, next);
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
}

/**
 * The object after a deletion request: null when it is removed at once, the marked object while finalizers or a grace
 * period hold it.
 */
export function deletedObject(
  type: ResourceType,
  current: KubeObject,
  options: DeleteOptions,
  nowMs: number,
): KubeObject | null {
  const name = current.metadata.name ?? '';
  const { uid, resourceVersion } = options.preconditions ?? {};
  if (uid !== undefined && uid !== current.metadata.uid) {
    throw conflict(
      type,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid ?? ''}`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
    throw conflict(type, name, MODIFIED_MEANWHILE);

  const grace = graceSeconds(type, current, options);
  const held = { Foreground: 'foregroundDeletion', Orphan: 'orphan', Background: null }[
    options.propagationPolicy ?? 'Background'
  ];
  const finalizers = [...new Set([...(current.metadata.finalizers ?? []), ...(held === null ? [] : [held])])];
  if (finalizers.length === 0 && grace === 0) return null;
  const metadata: ObjectMeta = {
    ...current.metadata,
    deletionTimestamp: current.metadata.deletionTimestamp ?? timestamp(nowMs + grace * 1000),
    deletionGracePeriodSeconds: Math.min(grace, current.metadata.deletionGracePeriodSeconds ?? grace),
    ...(finalizers.length === 0 ? {} : { finalizers }),
  };
  return { ...current, metadata };
}

/** A pod on a node that is removed at once is marked before, which watches observe; null for everything else. */
export function markedForEnd(type: ResourceType, current: KubeObject, nowMs: number): KubeObject | null {
  if (!staysForKubelet(type, current)) return null;
  return {
    ...current,
    metadata: {
      ...current.metadata,
      deletionTimestamp: current.metadata.deletionTimestamp ?? timestamp(nowMs),
      deletionGracePeriodSeconds: 0,
    },
  };
}

/** Pods on a node stay until their kubelet has ended them, unless they have ended already. */
function graceSeconds(type: ResourceType, current: KubeObject, options: DeleteOptions): number {
  if (!staysForKubelet(type, current)) return 0;
  const asked = options.gracePeriodSeconds ?? valueAt(current, 'spec.terminationGracePeriodSeconds');
  return typeof asked === 'number' ? asked : 30;
}

function staysForKubelet(type: ResourceType, current: KubeObject): boolean {
  if (type.deletedGracefully !== true) return false;
  const node = valueAt(current, 'spec.nodeName');
  const phase = valueAt(current, 'status.phase');
  return typeof node === 'string' && node !== '' && phase !== 'Succeeded' && phase !== 'Failed';
}

/** True when nothing holds an object any more whose deletion was requested. */
export function isReleased(type: ResourceType, object: KubeObject): boolean {
  if (object.metadata.deletionTimestamp === undefined || (object.metadata.finalizers ?? []).length > 0) return false;
  return type.deletedGracefully !== true || object.metadata.deletionGracePeriodSeconds === 0;
}
