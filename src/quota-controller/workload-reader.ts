import {
  apiGroupOf,
  evaluateAlone,
  GROUP_LABEL,
  type Evaluation,
  type EvaluationOptions,
} from '../quota/evaluators/evaluate.js';
import type { KubeApi } from '../kube/client.js';
import { readObject, withReferences, type ServedKind } from './kinds.js';
import type { KubeObject } from './object.js';
import { Ownership } from './ownership.js';

export interface WorkloadReaderOptions {
  readonly api: KubeApi;
  /** How workloads are read now. */
  readonly evaluation: () => EvaluationOptions;
  readonly kinds: () => readonly ServedKind[];
}

/** Of an object that only shows a pod of a file on a node. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/**
 * Reads what a workload asks for: by the policy, with the objects that it refers to, less what its owners are charged
 * for. The webhooks decide by it, and the commands explain by it.
 */
export class WorkloadReader {
  readonly #options: WorkloadReaderOptions;
  /** Who is charged for objects with owners. */
  readonly ownership: Ownership;

  constructor(options: WorkloadReaderOptions) {
    this.#options = options;
    this.ownership = new Ownership(options);
  }

  /** How workloads are read now. */
  options(): EvaluationOptions {
    return this.#options.evaluation();
  }

  /** The kind of an object; null for one that is not charged or that the API server does not have. */
  kindOf(apiGroup: string, isIt: (kind: ServedKind) => boolean): ServedKind | null {
    return this.#options.kinds().find((served) => served.evaluator.apiGroup === apiGroup && isIt(served)) ?? null;
  }

  async evaluate(object: KubeObject): Promise<Evaluation> {
    const { api, kinds } = this.#options;
    const referring = await withReferences(api, kinds(), object, this.options());
    const { evaluation: alone, owner } = evaluateAlone(object, referring);
    const demand = alone.ok ? alone.demand : null;
    if (owner === null || (alone.ok && demand === null)) return alone;
    const { namespace = '', labels = {} } = object.metadata ?? {};
    const charge = await this.ownership.chargeOf({ kind: object.kind ?? '', namespace, labels, owner, demand });
    if (charge.kind === 'covered') return { ok: true, demand: null, reason: 'its owner is charged' };
    return alone.ok && alone.demand !== null && charge.demand !== null ? { ...alone, demand: charge.demand } : alone;
  }

  /** Why a workload without a group may not come to a namespace whose workloads have to name one; null where it may. */
  async missingGroup(object: KubeObject): Promise<string | null> {
    if (object.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined) return null;
    const wanted = await this.evaluate(object);
    if (wanted.ok && (wanted.demand === null || wanted.demand.group !== '')) return null;
    const { groupLabel = GROUP_LABEL } = this.options();
    return `workloads of this namespace have to name the group that they are charged to: set the label ${groupLabel}`;
  }

  /** An object as the API server holds it; null where there is none. */
  async live(
    apiGroup: string,
    isIt: (kind: ServedKind) => boolean,
    namespace: string,
    name: string,
  ): Promise<{ readonly kind: ServedKind; readonly object: KubeObject } | null> {
    const kind = this.kindOf(apiGroup, isIt);
    const object = kind === null ? null : await readObject(this.#options.api, kind, namespace, name);
    return kind === null || object === null ? null : { kind, object };
  }
}

/** Whether a kind is the one that an apiVersion and a kind name. */
export function isKind(apiVersion: string, kind: string): (served: ServedKind) => boolean {
  const apiGroup = apiGroupOf(apiVersion);
  return ({ evaluator }) => evaluator.kind === kind && evaluator.apiGroup === apiGroup;
}

/** Why a scale of a kind cannot be decided on. */
export function unknownScale({ resource, evaluator }: ServedKind): string {
  return `where the scale subresource of ${resource} writes the replicas is not known: allow gpu-manager-quota to get the CustomResourceDefinition ${evaluator.resource}`;
}
