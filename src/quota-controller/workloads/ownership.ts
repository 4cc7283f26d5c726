import {
  type Demand,
  type PodSet,
  apiGroupOf,
  evaluateAlone,
  type EvaluationOptions,
  type Owner,
} from '../../quota/internal.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import type { KubeApi } from '../../kube/client.js';
import { selectsLabels } from '../../manifests/label-selector.js';
import { readObject, withReferences, type ServedKind } from './kinds.js';
import type { KubeObject } from '../../kube/object.js';
import type { Admitted, AdmittedObject, KueueObjects } from './kueue-objects.js';
import { asksForNothing, beyondOwner, isOfTypes, withRunning, type RunningPod } from './owned-demand.js';
import { MAX_OWNERS, type OwnedPods } from './owned-pods.js';
import { accountOf, isRunning, type WorkloadObject } from './workload-object.js';

export interface OwnershipOptions {
  readonly api: KubeApi;
  readonly evaluation: () => EvaluationOptions;
  readonly kinds: () => readonly ServedKind[];
  /** What Kueue has admitted; by default nothing. */
  readonly kueue?: Pick<KueueObjects, 'admitted'> | null;
  /** The pods that run; null where they are not watched. */
  readonly owned?: OwnedPods | null;
}

/** An object with an owner. */
export interface OwnedObject {
  readonly uid: string;
  readonly kind: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly owner: Owner;
  /** The object's own demand; null where it cannot be read. */
  readonly demand: Demand | null;
}

/** The charge of an owned object. */
export type OwnedCharge =
  /** The charge of its owner covers it. */
  | { readonly kind: 'covered' }
  /** The object is charged itself: with its whole demand, or with the part beyond its owner. */
  | { readonly kind: 'own'; readonly demand: Demand | null };

/** The kind that each built-in controller creates; controllers of other kinds may create any kind. */
const CREATED_KINDS: Readonly<Record<string, string>> = {
  'apps/Deployment': 'ReplicaSet',
  'apps/ReplicaSet': 'Pod',
  'apps/StatefulSet': 'Pod',
  'batch/Job': 'Pod',
  'argoproj.io/Rollout': 'ReplicaSet',
};

/**
 * Computes the charge of an object with owners. Users can write any owner reference; therefore an owner counts only if
 * it exists with that uid, creates objects of this kind with these labels, and has pods. It covers the requests of as
 * many pods as it has; anything beyond is charged for the object itself.
 */
export class Ownership {
  readonly #options: OwnershipOptions;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /** The Workload of Kueue that is charged in place of an object. */
  async admitted(object: AdmittedObject): Promise<Admitted> {
    return (await this.#options.kueue?.admitted(object)) ?? null;
  }

  async chargeOf(object: OwnedObject): Promise<OwnedCharge> {
    const { demand, labels } = object;
    const { groupLabel = GROUP_LABEL } = this.#options.evaluation();
    if (demand === null || (labels[groupLabel] ?? '') !== '') return this.#chargeOf(object);
    // An object that names no group is covered by an owner of every group, whatever group pays for its namespace.
    const unnamed = { ...demand, group: '' };
    const charge = await this.#chargeOf({ ...object, demand: unnamed });
    if (charge.kind === 'covered' || charge.demand === null) return charge;
    if (charge.demand === unnamed) return { kind: 'own', demand };
    return { kind: 'own', demand: { ...charge.demand, group: demand.group } };
  }

  async #chargeOf({ uid: self, kind, namespace, labels, owner, demand }: OwnedObject): Promise<OwnedCharge> {
    const { api, kinds, evaluation } = this.#options;
    let [link, next, least] = [{ kind, labels }, owner as Owner | null, demand];
    for (let depth = 0; next !== null && depth < MAX_OWNERS; depth++) {
      const { apiVersion, kind: ownerKind, name, uid } = next;
      const apiGroup = apiGroupOf(apiVersion);
      const served = kinds().find((one) => one.evaluator.kind === ownerKind && one.evaluator.apiGroup === apiGroup);
      const object = served === undefined ? null : await readObject(api, served, namespace, name);
      if (object === null || object.metadata?.uid !== uid) break;
      if (depth === 0 && demand !== null && asksForNothing(demand)) return { kind: 'covered' };
      if (!creates(`${apiGroup}/${ownerKind}`, object, link)) break;
      const manifest = { apiVersion, kind: ownerKind, ...object };
      // A pod that a rolling update adds is charged once it runs.
      const surge = { requireLabel: false, chargeSurge: kind === 'Pod' };
      const options = await withReferences(api, kinds(), manifest, { ...evaluation(), ...surge });
      if ('ok' in options) break;
      const { evaluation: alone, owner: above } = evaluateAlone(manifest, options);
      if (!alone.ok || alone.demand === null || asksForNothing(alone.demand)) break;
      if (demand === null && alone.demand.group !== '') return { kind: 'covered' };
      const rest = demand === null ? null : beyondOwner(demand, alone.demand);
      const isCovered = rest === null && (kind !== 'Pod' || this.#hasRoom(alone.demand, uid, self));
      if (demand !== null && isCovered) return { kind: 'covered' };
      if (rest !== null && rest !== demand && (least === demand || least === null)) least = rest;
      [link, next] = [{ kind: ownerKind, labels: object.metadata.labels ?? {} }, above];
    }
    return { kind: 'own', demand: least };
  }

  /** Whether an owner has a pod more than the others below it. */
  #hasRoom(owner: Demand, uid: string, self: string): boolean {
    const below = this.#options.owned?.podsBelow(uid, owner.group) ?? [];
    const others = below.filter((pod) => pod.uid !== self && !pod.terminating && isRunning(pod));
    // A pod that owns others is a pod itself.
    const taken = owner.workload.kind === 'Pod' ? 1 : 0;
    return owner.podSets.reduce((sum, { count }) => sum + count, 0) - taken > others.length;
  }

  /**
   * Adds to the demand of a workload the pods that run below it and that neither it covers, nor the Workload of Kueue
   * that is charged in its place, nor the charges of the objects between.
   */
  besides(object: WorkloadObject, demand: Demand, admitted: Admitted, between: readonly PodSet[]): Demand {
    const { owned = null } = this.#options;
    if (owned === null || admitted === 'everything') return demand;
    const { types } = accountOf(object);
    const pods = owned.podsOf(object).filter((pod) => isOfTypes(accountOf(pod).types, types));
    if (pods.length === 0) return demand;
    // A pod covers itself, and no pod that it owns.
    const own = demand.workload.kind === 'Pod' ? [] : demand.podSets;
    const covering = [...own, ...(admitted?.podSets ?? []), ...between];
    return withRunning(demand, covering, runningPods(pods), object.kind.evaluator.waitsForEnd !== true);
  }
}

function runningPods(pods: readonly WorkloadObject[]): readonly RunningPod[] {
  return pods
    .filter(isRunning)
    .flatMap(({ charge, terminating }) => (charge?.podSets ?? []).map((podSet) => ({ podSet, isEnding: terminating })));
}

/** Whether the controller of an owner would create an object of this kind with these labels. */
function creates(
  ownerKind: string,
  { spec }: KubeObject,
  { kind, labels }: { readonly kind: string; readonly labels: Readonly<Record<string, string>> },
): boolean {
  const createdKind = CREATED_KINDS[ownerKind];
  if (createdKind === undefined) return true;
  const selector = spec?.['selector'];
  // Only a Rollout may lack a selector, when it takes the template of another workload.
  return kind === createdKind && selectsLabels(selector ?? {}, labels);
}
