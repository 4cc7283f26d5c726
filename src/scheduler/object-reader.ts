import type { ContainerSpec, LabelRequirement, NodeObject, ObjectMeta, PodObject } from './kube-objects.js';

/**
 * Reads pods and nodes from JSON of whatever origin. Nothing is taken for granted: a field of the wrong type counts as absent. What
 * comes out holds only what is looked at, so that it is small enough to keep.
 */
export function readPod(value: unknown): PodObject {
  const spec = record(record(value).spec);
  const status = record(record(value).status);
  return {
    metadata: readMeta(value),
    spec: {
      ...text('nodeName', spec),
      ...(typeof spec.priority === 'number' ? { priority: spec.priority } : {}),
      nodeSelector: texts(spec.nodeSelector),
      ...readAffinity(spec),
      overhead: quantities(spec.overhead),
      initContainers: list(spec.initContainers).map(readContainer),
      containers: list(spec.containers).map(readContainer),
    },
    status: { ...text('phase', status), ...text('nominatedNodeName', status) },
  };
}

export function readNode(value: unknown): NodeObject {
  const status = record(record(value).status);
  return {
    metadata: { ...readMeta(value), labels: texts(record(record(value).metadata).labels) },
    spec: { unschedulable: record(record(value).spec).unschedulable === true },
    status: { allocatable: quantities(status.allocatable ?? status.capacity) },
  };
}

/** The object's name; empty where it has none. */
export function nameOf(value: unknown): string {
  const { name } = record(record(value).metadata);
  return typeof name === 'string' ? name : '';
}

/** Annotations of others are none of our business, and may be long. */
const OWN_KEYS = 'tencent.com/';

function readMeta(value: unknown): ObjectMeta {
  const metadata = record(record(value).metadata);
  const annotations = Object.entries(texts(metadata.annotations)).filter(([key]) => key.startsWith(OWN_KEYS));
  return {
    ...text('name', metadata),
    ...text('namespace', metadata),
    ...text('uid', metadata),
    annotations: Object.fromEntries(annotations),
    ...((metadata.deletionTimestamp ?? null) === null ? {} : { deletionTimestamp: metadata.deletionTimestamp }),
  };
}

function readContainer(value: unknown): ContainerSpec {
  const container = record(value);
  const { limits, requests } = record(container.resources);
  return {
    ...text('name', container),
    ...text('restartPolicy', container),
    resources: { limits: quantities(limits), requests: quantities(requests) },
  };
}

function readAffinity(spec: Record<string, unknown>): Pick<NonNullable<PodObject['spec']>, 'affinity'> {
  const required = record(record(record(spec.affinity).nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution);
  if (!Array.isArray(required.nodeSelectorTerms)) return {};
  const nodeSelectorTerms = required.nodeSelectorTerms.map((term: unknown) => ({
    matchExpressions: list(record(term).matchExpressions).map(readRequirement),
    matchFields: list(record(term).matchFields).map(readRequirement),
  }));
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
}

function readRequirement(value: unknown): LabelRequirement {
  const requirement = record(value);
  return {
    ...text('key', requirement),
    ...text('operator', requirement),
    values: list(requirement.values).filter((entry) => typeof entry === 'string'),
  };
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text<K extends string>(key: K, from: Record<string, unknown>): { readonly [key in K]?: string } {
  const value = from[key];
  return (typeof value === 'string' ? { [key]: value } : {}) as { readonly [key in K]?: string };
}

function texts(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function quantities(value: unknown): Record<string, string | number> {
  const isQuantity = (entry: [string, unknown]): entry is [string, string | number] =>
    typeof entry[1] === 'string' || typeof entry[1] === 'number';
  return Object.fromEntries(Object.entries(record(value)).filter(isQuantity));
}
