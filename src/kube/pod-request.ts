import { DEFAULT_CATALOG, type CardCatalog } from '../manifests/gpu-resources.js';
import { withClaims } from '../manifests/claim-needs.js';
import { RESIZE_KEYS } from '../manifests/gpu-resize.js';
import { ManifestReader } from '../manifests/manifest-reader.js';
import { podNeeds, type PodNeeds, type PodProblem } from '../manifests/pod-needs.js';
import { list, record, texts, type JsonRecord } from './json.js';

/** The parts of a pod that say what it requests, as they are written. */
export interface PodRequest {
  readonly spec: JsonRecord;
  readonly status: JsonRecord;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A pod's requests including its claims, for the GPU type that its workload declares. */
export type NeedsOf = (
  gpuType?: string,
  catalog?: CardCatalog,
  claimed?: Readonly<Record<string, number>>,
) => PodNeeds | PodProblem;

/**
 * Reads these parts of a pod and nothing else of it: they are a tenth of a pod, and the same for the pods of a
 * workload.
 */
export function readPodRequest(object: unknown): PodRequest {
  const { metadata, spec, status } = record(object);
  const { containers, initContainers, overhead, resources } = record(spec);
  const annotations = texts(record(metadata).annotations);
  const kept = RESIZE_KEYS.filter((key) => annotations[key] !== undefined);
  const asked = (value: unknown): JsonRecord => {
    const container = record(value);
    return { name: container.name, restartPolicy: container.restartPolicy, resources: container.resources };
  };
  const askedIn = (value: unknown): unknown => (Array.isArray(value) ? value.map(asked) : value);
  return {
    spec: { containers: askedIn(containers), initContainers: askedIn(initContainers), overhead, resources },
    status: resizeOf(record(status)),
    annotations: Object.fromEntries(kept.map((key) => [key, annotations[key] as string])),
  };
}

export function needsOf({ spec, status, annotations }: PodRequest): NeedsOf {
  return (gpuType = '', catalog = DEFAULT_CATALOG, claimed = {}) => {
    const reader = new ManifestReader();
    return podNeeds(reader, withClaims(reader, spec, claimed), 'spec', gpuType, catalog, { status, annotations });
  };
}

/** The parts of the status that describe an in-place resize of a running pod. */
function resizeOf({ conditions, containerStatuses, initContainerStatuses, resize }: JsonRecord): JsonRecord {
  const held = (statuses: unknown): readonly JsonRecord[] =>
    list(statuses).flatMap((status) => {
      const { name, resources, allocatedResources } = record(status);
      return resources === undefined && allocatedResources === undefined
        ? []
        : [{ name, resources, allocatedResources }];
    });
  return {
    conditions: list(conditions).filter((condition) => record(condition).type === 'PodResizePending'),
    containerStatuses: held(containerStatuses),
    initContainerStatuses: held(initContainerStatuses),
    resize,
  };
}
