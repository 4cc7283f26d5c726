import { apiGroupOf, evaluateAlone, type Evaluation, type EvaluationOptions } from '../../quota/internal.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import type { KubeApi } from '../../kube/client.js';
import { readObject, withReferences, type ServedKind } from './kinds.js';
import type { KubeObject } from '../../kube/object.js';
import { CONFIG_MIRROR_KEY } from '../../kube/pod.js';
import type { KueueObjects } from './kueue-objects.js';
import { workloadPriority } from './workload-priority.js';
import { asksForNothing, beyondWorkload } from './owned-demand.js';
import { Ownership } from './ownership.js';
import type { OwnedPods } from './owned-pods.js';

export interface WorkloadReaderOptions {
  readonly api: KubeApi;
  /** The current options for evaluating workloads. */
  readonly evaluation: () => EvaluationOptions;
  readonly kinds: () => readonly ServedKind[];
  /** What Kueue has admitted; by default nothing. */
  readonly kueue?: Pick<KueueObjects, 'admitted'> | null;
  /** The pods that run; by default they are not watched. */
  readonly owned?: OwnedPods | null;
}

/**
 * Evaluates a workload with the policy, the objects that it refers to, and the charges of its owners. The webhooks
 * decide with it, and the commands explain with it.
 */
export class WorkloadReader {
  readonly #options: WorkloadReaderOptions;
  /** Computes the charges of objects with owners. */
  readonly ownership: Ownership;

  constructor(options: WorkloadReaderOptions) {
    this.#options = options;
    this.ownership = new Ownership(options);
  }

  options(): EvaluationOptions {
    return this.#options.evaluation();
  }

  /** The kind of an object; null for a kind that is not charged or not served. */
  kindOf(apiGroup: string, matches: (kind: ServedKind) => boolean): ServedKind | null {
    return this.#options.kinds().find((served) => served.evaluator.apiGroup === apiGroup && matches(served)) ?? null;
  }

  async evaluate(object: KubeObject, options = this.options()): Promise<Evaluation> {
    const { api, kinds } = this.#options;
    const referring = await withReferences(api, kinds(), object, options);
    if ('ok' in referring) return { ok: false, code: 'InvalidDemand', reason: referring.reason };
    const { evaluation, owner } = evaluateAlone(object, referring);
    const { namespace = '', labels = {}, uid = '' } = object.metadata ?? {};
    const isAsking = evaluation.ok && evaluation.demand !== null && !asksForNothing(evaluation.demand);
    const alone = isAsking
      ? {
          ...evaluation,
          demand: beyondWorkload(evaluation.demand, await this.ownership.admitted({ uid, namespace, labels })),
        }
      : evaluation;
    const demand = alone.ok ? alone.demand : null;
    if (owner === null || (alone.ok && demand === null)) return alone;
    const charge = await this.ownership.chargeOf({ uid, kind: object.kind ?? '', namespace, labels, owner, demand });
    if (charge.kind === 'covered') return { ok: true, demand: null, reason: 'its owner is charged' };
    return alone.ok && alone.demand !== null && charge.demand !== null ? { ...alone, demand: charge.demand } : alone;
  }

  /** The priority that the pods of a workload will have. */
  priorityOf(object: KubeObject): Promise<number> {
    return workloadPriority(this.#options.api, this.#options.kinds(), object);
  }

  /** Why a workload without a group is refused in a namespace that requires one; null if it is admitted. */
  async missingGroup(object: KubeObject): Promise<string | null> {
    // Of a static pod, the object is made by the kubelet; on other kinds the annotation means nothing.
    if (object.kind === 'Pod' && object.metadata?.annotations?.[CONFIG_MIRROR_KEY] !== undefined) return null;
    const wanted = await this.evaluate(object);
    if (wanted.ok && (wanted.demand === null || wanted.demand.group !== '')) return null;
    const { groupLabel = GROUP_LABEL } = this.options();
    return `workloads of this namespace must name the group that is charged for them: set the label ${groupLabel}`;
  }

  /** Reads an object from the API server; null where it does not exist. */
  async live(
    apiGroup: string,
    matches: (kind: ServedKind) => boolean,
    namespace: string,
    name: string,
  ): Promise<{ readonly kind: ServedKind; readonly object: KubeObject } | null> {
    const kind = this.kindOf(apiGroup, matches);
    const object = kind === null ? null : await readObject(this.#options.api, kind, namespace, name);
    return kind === null || object === null ? null : { kind, object };
  }
}

/** Returns a test for the kind of an apiVersion and kind. */
export function isKind(apiVersion: string, kind: string): (served: ServedKind) => boolean {
  const apiGroup = apiGroupOf(apiVersion);
  return ({ evaluator }) => evaluator.kind === kind && evaluator.apiGroup === apiGroup;
}

/** Why the scale of a kind cannot be decided. */
export function unknownScale({ resource, evaluator }: ServedKind): string {
  return `where the scale subresource of ${resource} writes the replicas is not known: allow gpu-manager-quota to get the CustomResourceDefinition ${evaluator.resource}`;
}
