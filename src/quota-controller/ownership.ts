import type { Demand } from '../quota/core/demand.js';
import { apiGroupOf, evaluateAlone, type EvaluationOptions, type Owner } from '../quota/evaluators/evaluate.js';
import type { KubeApi } from '../kube/client.js';
import { selectsLabels } from '../kube/label-selector.js';
import { readObject, withReferences, type ServedKind } from './kinds.js';
import type { KubeObject } from './object.js';
import { asksForNothing, beyondOwner } from './owned-demand.js';

export interface OwnershipOptions {
  readonly api: KubeApi;
  readonly evaluation: () => EvaluationOptions;
  readonly kinds: () => readonly ServedKind[];
}

/** An object that names an owner. */
export interface Owned {
  readonly kind: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly owner: Owner;
  /** What it asks for itself; null where that cannot be read. */
  readonly demand: Demand | null;
}

/** What is to be charged for an owned object. */
export type OwnCharge =
  /** Its owner is charged for it. */
  | { readonly kind: 'covered' }
  /** It is charged by itself: whole, or for what it asks beyond its owner. */
  | { readonly kind: 'own'; readonly demand: Demand | null };

/** What controllers of Kubernetes make; other kinds may make anything. */
const MAKES: Readonly<Record<string, string>> = {
  'apps/Deployment': 'ReplicaSet',
  'apps/ReplicaSet': 'Pod',
  'apps/StatefulSet': 'Pod',
  'batch/Job': 'Pod',
  'argoproj.io/Rollout': 'ReplicaSet',
};

/** Owners of owners of owners: more than any kind has. */
const MOST_OWNERS = 8;

/**
 * Who is charged for an object with owners. A reference can be made up, so an owner counts where it is there with that
 * uid, makes objects of this kind with these labels, and has pods at all. It covers what its own pods ask for; what an
 * object asks beyond that is charged by itself.
 */
export class Ownership {
  readonly #options: OwnershipOptions;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  async chargeOf({ kind, namespace, labels, owner, demand }: Owned): Promise<OwnCharge> {
    const { api, kinds, evaluation } = this.#options;
    let [link, next, least] = [{ kind, labels }, owner as Owner | null, demand];
    for (let depth = 0; next !== null && depth < MOST_OWNERS; depth++) {
      const { apiVersion, kind: ownerKind, name, uid } = next;
      const apiGroup = apiGroupOf(apiVersion);
      const served = kinds().find((one) => one.evaluator.kind === ownerKind && one.evaluator.apiGroup === apiGroup);
      const object = served === undefined ? null : await readObject(api, served, namespace, name);
      if (object === null || object.metadata?.uid !== uid) break;
      if (depth === 0 && demand !== null && asksForNothing(demand)) return { kind: 'covered' };
      if (!makes(`${apiGroup}/${ownerKind}`, object, link)) break;
      const manifest = { apiVersion, kind: ownerKind, ...object };
      const options = await withReferences(api, kinds(), manifest, { ...evaluation(), requireLabel: false });
      const { evaluation: alone, owner: above } = evaluateAlone(manifest, options);
      if (!alone.ok || alone.demand === null || asksForNothing(alone.demand)) break;
      if (demand === null && alone.demand.group !== '') return { kind: 'covered' };
      const rest = demand === null ? null : beyondOwner(demand, alone.demand);
      if (demand !== null && rest === null) return { kind: 'covered' };
      if (rest !== demand && (least === demand || least === null)) least = rest;
      [link, next] = [{ kind: ownerKind, labels: object.metadata.labels ?? {} }, above];
    }
    return { kind: 'own', demand: least };
  }
}

/** Whether the controller of an object would make one of that kind with these labels. */
function makes(
  ownerKind: string,
  { spec }: KubeObject,
  { kind, labels }: { readonly kind: string; readonly labels: Readonly<Record<string, string>> },
): boolean {
  const made = MAKES[ownerKind];
  if (made === undefined) return true;
  const selector = spec?.['selector'];
  // Only a Rollout may have none: one that takes the template of another workload.
  return kind === made && selectsLabels(selector ?? {}, labels);
}
