import type { Quantity } from '../core/quantity.js';
import type { CardCatalog } from './gpu-resources.js';
import type { Json, ManifestReader } from './manifest.js';

/** Pods of a workload that are made of one template. */
export interface TemplatedPods {
  /** Role: `worker`; empty where there is only one. */
  readonly name: string;
  readonly count: number;
  /** A PodTemplateSpec: metadata and spec. */
  readonly template: Json;
  /** Where the template stands in the manifest, for messages. */
  readonly path: string;
}

/** What evaluators may ask beside the manifest. */
export interface EvaluationContext {
  /** Another object of the same namespace, for workloads that refer to one: an Argo Rollout's `workloadRef`. */
  readonly lookup: (apiVersion: string, kind: string, name: string) => Json;
  /** Count the pods that a rolling update may have beyond the replicas. */
  readonly chargeSurge: boolean;
  /** On how many nodes a pod of this template may run; null where the nodes are not known. */
  readonly matchingNodes: (template: Json) => number | null;
}

/** The type of GPU that an object is of; empty for none. */
export interface GpuOfType {
  readonly type: string;
  readonly catalog: CardCatalog;
}

/** Knows where a kind of object has its pods. */
export interface Evaluator {
  /** API group: `apps`, empty for the core. */
  readonly apiGroup: string;
  readonly kind: string;
  /** Name for object counts: `deployments.apps`. */
  readonly resource: string;
  /**
   * Objects of this kind are charged themselves; those that they own are not. False for a CronJob, whose Jobs are
   * charged.
   */
  readonly charges: boolean;
  pods(reader: ManifestReader, object: Json, context: EvaluationContext): readonly TemplatedPods[];
  /**
   * Of objects that are no pods: what one asks for, by resource; names of `isObjectResource` among them. Such an object
   * is charged whoever owns it.
   */
  amounts?(reader: ManifestReader, object: Json, gpu: GpuOfType): Readonly<Record<string, Quantity>>;
  /** Whether it is done and holds nothing any more. */
  isTerminal?(reader: ManifestReader, object: Json): boolean;
}

/** Whether an object has a condition of one of these types that is true. */
export function hasCondition(reader: ManifestReader, object: Json, types: readonly string[]): boolean {
  return reader
    .items(reader.at(object, 'status', 'conditions'), 'status.conditions')
    .some(
      (condition) =>
        types.includes(reader.text(reader.at(condition, 'type'), 'status.conditions.type')) &&
        reader.at(condition, 'status') === 'True',
    );
}
