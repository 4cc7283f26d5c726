import type { Quantity } from '../../manifests/quantity.js';
import type { GpuOfType } from '../../manifests/gpu-resources.js';
import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

/** Pods of a workload with one template. */
export interface TemplatedPods {
  /** Role of the pods, such as `worker`; empty for the only pod set. */
  readonly name: string;
  readonly count: number;
  /** A PodTemplateSpec. */
  readonly template: Json;
  /** Path of the template in the manifest, for messages. */
  readonly path: string;
}

/** Data that evaluators may read beside the manifest. */
export interface EvaluationContext {
  /** Looks up another object of the same namespace, such as the `workloadRef` of a Rollout. */
  readonly lookup: (apiVersion: string, kind: string, name: string) => Json;
  /** Whether to count the pods that a rolling update may add to the replicas. */
  readonly chargeSurge: boolean;
  /** Number of nodes on which a pod of this template may run; null while nodes are unknown. */
  readonly matchingNodes: (template: Json) => number | null;
}

/** Finds the pods of a kind of objects. */
export interface Evaluator {
  /** API group, such as `apps`; empty for the core group. */
  readonly apiGroup: string;
  readonly kind: string;
  /** Resource name for object counts, such as `deployments.apps`. */
  readonly resource: string;
  /**
   * Whether objects of this kind are charged instead of the objects that they own. False for a CronJob: its Jobs are
   * charged.
   */
  readonly charges: boolean;
  /**
   * For objects that stand for others: the labels that name the group and the types, instead of `metadata.labels`. Such
   * an object is charged even if it has an owner.
   */
  labels?(reader: ManifestReader, object: Json): ReadonlyMap<string, string>;
  /**
   * For objects with `labels`: whether what was charged for it stays charged although it names no group now, because
   * what it stands for still runs.
   */
  isHeld?(reader: ManifestReader, object: Json): boolean;
  /**
   * Whether a pod that is being deleted is replaced only when it is gone, as where the replacement has its name. Pods
   * of other kinds run beside their replacements.
   */
  readonly waitsForEnd?: boolean;
  pods(reader: ManifestReader, object: Json, context: EvaluationContext): readonly TemplatedPods[];
  /**
   * For objects other than pods: their amounts by resource, including resources of `isObjectResource`. Such an object
   * is charged even if it has an owner.
   */
  amounts?(reader: ManifestReader, object: Json, gpu: GpuOfType): Readonly<Record<string, Quantity>>;
  /** Whether the object has finished and uses nothing any more. */
  isTerminal?(reader: ManifestReader, object: Json): boolean;
}

/** Whether an object has a true condition of one of these types. */
export function hasCondition(reader: ManifestReader, object: Json, types: readonly string[]): boolean {
  return reader
    .items(reader.at(object, 'status', 'conditions'), 'status.conditions')
    .some(
      (condition) =>
        types.includes(reader.text(reader.at(condition, 'type'), 'status.conditions.type')) &&
        reader.at(condition, 'status') === 'True',
    );
}

/** A number of pods or jobs in a status; 0 where it has none. A status is no reason to refuse an object. */
export function statusCount(reader: ManifestReader, status: Json, ...path: readonly string[]): number {
  const value = reader.at(status, ...path);
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** A kind with its API group, such as `Job.batch`, as keys of workloads have it; a core kind alone: `Pod`. */
export function kindName({ apiGroup, kind }: Pick<Evaluator, 'apiGroup' | 'kind'>): string {
  return apiGroup === '' ? kind : `${kind}.${apiGroup}`;
}

/** The name of a resource in paths of the API server, without its API group: `deployments`. */
export function resourceOf({ apiGroup, resource }: Pick<Evaluator, 'apiGroup' | 'resource'>): string {
  return apiGroup === '' ? resource : resource.slice(0, -apiGroup.length - 1);
}
