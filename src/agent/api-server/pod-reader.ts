import type { NodePod, PodContainer } from './node-pod.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../gpu/resources.js';
import { wholeQuantity } from '../../quota/core/quantity.js';

/** Annotations of a static pod's entry at the API server: the UID by which the kubelet calls it, and the mark that it is one. */
const CONFIG_HASH_KEY = 'kubernetes.io/config.hash';
const CONFIG_MIRROR_KEY = 'kubernetes.io/config.mirror';

const LONGEST_MESSAGE = 2_048;

/**
 * A pod as the API server's JSON shows it, cut down to what is looked at; null for what is no pod. Nothing is taken for
 * granted: a field of the wrong type counts as absent.
 */
export function readPod(object: unknown): NodePod | null {
  const metadata = child(object, 'metadata');
  const spec = child(object, 'spec');
  const status = child(object, 'status');
  const objectUid = text(metadata, 'uid');
  const name = text(metadata, 'name');
  if (objectUid === '' || name === '') return null;
  const annotations = child(metadata, 'annotations');
  const mirror = text(annotations, CONFIG_MIRROR_KEY) !== '';
  return {
    uid: (mirror && text(annotations, CONFIG_HASH_KEY)) || objectUid,
    objectUid,
    namespace: text(metadata, 'namespace'),
    name,
    node: text(spec, 'nodeName'),
    resourceVersion: text(metadata, 'resourceVersion'),
    phase: phaseOf(text(status, 'phase')),
    failure: { reason: text(status, 'reason'), message: message(status) },
    createdAt: time(text(metadata, 'creationTimestamp')) ?? 0,
    admittedAt: time(text(status, 'startTime')),
    deletedAt: time(text(metadata, 'deletionTimestamp')),
    controller: controllerOf(list(metadata, 'ownerReferences')),
    mirror,
    annotations: new Map(
      Object.entries(annotations).flatMap(([key, value]) =>
        isKept(key) && typeof value === 'string' ? [[key, value]] : [],
      ),
    ),
    submitter: submitterOf(list(spec, 'containers')[0]),
    initContainers: containersOf(list(spec, 'initContainers'), list(status, 'initContainerStatuses')),
    containers: containersOf(list(spec, 'containers'), list(status, 'containerStatuses')),
  };
}

function isKept(key: string): boolean {
  return key.startsWith('tencent.com/') || key === 'clusterName';
}

function phaseOf(phase: string): NodePod['phase'] {
  return phase === 'Running' || phase === 'Succeeded' || phase === 'Failed' || phase === 'Unknown' ? phase : 'Pending';
}

function controllerOf(owners: readonly unknown[]): NodePod['controller'] {
  const owner = owners.find((entry) => isObject(entry) && entry.controller === true);
  return owner === undefined ? null : { kind: text(owner, 'kind'), name: text(owner, 'name') };
}

function submitterOf(container: unknown): string | null {
  const variable = list(container, 'env').find((entry) => text(entry, 'name') === 'SUBMITTER');
  return variable === undefined ? null : text(variable, 'value');
}

function containersOf(specs: readonly unknown[], statuses: readonly unknown[]): PodContainer[] {
  return specs.map((spec) => {
    const name = text(spec, 'name');
    const limits = child(child(spec, 'resources'), 'limits');
    const state = child(
      statuses.find((entry) => text(entry, 'name') === name),
      'state',
    );
    return {
      name,
      cores: amount(limits[CORE_RESOURCE]),
      memoryBlocks: amount(limits[MEMORY_RESOURCE]),
      running: isObject(state.running),
      terminated: isObject(state.terminated),
      waiting: message(child(state, 'waiting')),
    };
  });
}

function amount(value: unknown): number {
  const whole = typeof value === 'string' || typeof value === 'number' ? wholeQuantity(value) : null;
  return whole === null || whole < 0 ? 0 : whole;
}

function message(object: unknown): string {
  return text(object, 'message').slice(0, LONGEST_MESSAGE);
}

function time(value: string): number | null {
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? null : ms;
}

type Json = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function child(object: unknown, key: string): Json {
  const value = isObject(object) ? object[key] : undefined;
  return isObject(value) ? value : {};
}

function list(object: unknown, key: string): readonly unknown[] {
  const value = isObject(object) ? object[key] : undefined;
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

function text(object: unknown, key: string): string {
  const value = isObject(object) ? object[key] : undefined;
  return typeof value === 'string' ? value : '';
}
