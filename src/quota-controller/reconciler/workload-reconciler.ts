import type { KubeApi } from '../../kube/client.js';
import type { KubeObject } from '../../kube/object.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { type Demand, type PodSet, refOfKey, type QuotaEngine, type EvaluationOptions } from '../../quota/internal.js';
import { readObject, withReferences, type ServedKind } from '../workloads/kinds.js';
import { asksForNothing, beyondWorkload, isOfTypes } from '../workloads/owned-demand.js';
import type { Admitted } from '../workloads/kueue-objects.js';
import type { Ownership } from '../workloads/ownership.js';
import type { KnownWorkloads } from '../workloads/known-workloads.js';
import type { OwnedPods } from '../workloads/owned-pods.js';
import { inAccount, isPodKind, readOwnedObject, type WorkloadObject } from '../workloads/workload-object.js';

export interface WorkloadReconcilerOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly known: KnownWorkloads;
  readonly owned: OwnedPods;
  /** The kinds that the API server serves now. */
  readonly kinds: () => readonly ServedKind[];
  /** The current options for evaluating workloads. */
  readonly evaluation: () => EvaluationOptions;
  /** Computes the charges of objects with owners. */
  readonly ownership: Ownership;
  readonly log: StructuredLog;
}

/** Charges workloads in the ledger as their objects ask for, and releases what is charged for deleted ones. */
export class WorkloadReconciler {
  readonly #options: WorkloadReconcilerOptions;
  /** By uid: what owned objects that are no pods are charged beyond their owners. */
  readonly #between = new Map<string, Demand>();

  constructor(options: WorkloadReconcilerOptions) {
    this.#options = options;
  }

  /** Charges an object as it was seen; rejects if that is to be repeated. */
  async reconcile(seen: WorkloadObject): Promise<void> {
    const { engine, known, log } = this.#options;
    if (await this.#rereadForGroup(seen)) return;
    const object = await this.#withReferences(seen);
    const { key, uid, group } = object;
    if (object.isHeld) return;
    if (object.problem !== null) {
      log.warn({ workload: key, group, problem: object.problem }, 'workload not charged: its requests cannot be read');
      return;
    }
    const demand = await this.#ownDemand(object);
    // It was deleted while its owner was read, and its deletion is observed by a run of its own.
    if (known.withUid(uid) === null) return;
    if (demand === null)
      return group === '' && !engine.isCharged(refOfKey(key)) ? undefined : this.release(key, uid, group);
    const decision = await engine.observe({ workload: { ...demand.workload }, group, demand });
    if (decision.code === 'Conflict') throw new Error(decision.message);
    if (!decision.allowed)
      log.warn({ workload: key, group, code: decision.code, reason: decision.message }, 'workload not charged');
  }

  /** Charges an object that was read from the API server, which the watch may not have shown; whether it counts. */
  async reconcileRead(kind: ServedKind, object: KubeObject): Promise<boolean> {
    const { known } = this.#options;
    const read = this.read(kind, object);
    if (read === null) {
      const uid = object.metadata?.uid ?? '';
      const before = known.withUid(uid);
      if (before !== null) await this.release(before.key, uid, before.group);
      return false;
    }
    known.read(read);
    await this.reconcile(read);
    return true;
  }

  /** The object as it is charged: by its label, or by what it came loose from; null for neither. */
  read(kind: ServedKind, object: KubeObject, options = this.#options.evaluation()): WorkloadObject | null {
    const read = readOwnedObject(kind, object, options);
    if (read === null || read.isLabelled || read.isHeld) return read;
    const account = this.#options.owned.looseAccount(read.uid);
    return account === null ? (read.group === '' ? null : read) : inAccount(read, account);
  }

  /** Charges what an ended owner left, and then releases the owner. */
  async end(key: string, uid: string, group: string): Promise<void> {
    const { known, owned } = this.#options;
    const left = owned.podsBelow(uid, group).flatMap((pod) => known.withUid(pod.uid) ?? []);
    await Promise.all(left.map((pod) => this.reconcile(pod)));
    // A pod that has an owner again is charged with that one first.
    const pod = owned.pod(uid);
    const root = pod === null ? null : owned.rootOf(pod);
    if (root !== null) await this.reconcile(root);
    await this.release(key, uid, group);
  }

  /** Releases what is charged for a deleted object; rejects if that is to be repeated. */
  async release(key: string, uid: string, group: string): Promise<void> {
    this.#between.delete(uid);
    const decision = await this.#options.engine.observe({ workload: { ...refOfKey(key), uid }, group, demand: null });
    if (decision.code === 'Conflict') throw new Error(decision.message);
  }

  /**
   * Reads and charges an object again that names no group, if another group pays for its namespace than when it was
   * seen. Whether that was so.
   */
  async #rereadForGroup({ uid, isLabelled, isHeld, group, kind, namespace, name }: WorkloadObject): Promise<boolean> {
    const { api, evaluation } = this.#options;
    // What came loose, or is held, keeps the group that it had.
    if (isLabelled || isHeld || this.#options.owned.looseAccount(uid) !== null) return false;
    if ((evaluation().defaultGroup?.(namespace) ?? '') === group) return false;
    const object = await readObject(api, kind, namespace, name);
    if (object !== null) await this.reconcileRead(kind, object);
    return true;
  }

  /** Evaluates a workload again with the objects that it references. */
  async #withReferences(seen: WorkloadObject): Promise<WorkloadObject> {
    if (!seen.refers) return seen;
    const { api, known, kinds, evaluation } = this.#options;
    const object = await readObject(api, seen.kind, seen.namespace, seen.name);
    if (object === null) return seen;
    const now = evaluation();
    const options = await withReferences(api, kinds(), object, now);
    const resolved = 'ok' in options || options === now ? null : this.read(seen.kind, object, options);
    if (resolved?.uid !== seen.uid) return seen;
    known.resolved(seen, resolved);
    return resolved;
  }

  /** The demand that is charged for the object itself; null for none. */
  async #ownDemand(object: WorkloadObject): Promise<Demand | null> {
    const { engine, known, owned, ownership } = this.#options;
    const { owner, labels, kind, uid, namespace, demand: whole } = object;
    const isPod = isPodKind(kind);
    const root = isPod ? owned.rootOf(object) : null;
    if (root !== null && whole !== null) return this.#coveredBy(root, whole);
    const asks = whole !== null && (!asksForNothing(whole) || owned.podsOf(object).length > 0);
    const admitted = asks ? await ownership.admitted(object) : null;
    const demand = whole === null ? null : beyondWorkload(whole, admitted);
    if (demand === null || owner === null || isPod)
      return demand === null ? null : this.withRunning(object, demand, admitted);
    const charge = await ownership.chargeOf({ uid, kind: kind.evaluator.kind, namespace, labels, owner, demand });
    this.#between.delete(uid);
    if (charge.kind === 'covered') return null;
    // An owner that was scaled to zero covered the object until now: a terminating object is not charged again. Its
    // deletion may have begun while the owner was read.
    const isTerminating = known.withUid(uid)?.terminating ?? object.terminating;
    if (charge.demand === null || (isTerminating && !engine.isCharged(demand.workload))) return null;
    this.#between.set(uid, charge.demand);
    return this.withRunning(object, charge.demand, admitted);
  }

  /** A demand of an object together with the pods that run below it and that are not covered. */
  withRunning(object: WorkloadObject, demand: Demand, admitted: Admitted): Demand {
    return this.#options.ownership.besides(object, demand, admitted, this.#setsBelow(object));
  }

  /** The demands that are charged for the objects between a workload and its pods. */
  #setsBelow({ uid, group }: WorkloadObject): readonly PodSet[] {
    return [...this.#options.owned.objectsBelow(uid)].flatMap((below) => {
      const between = this.#between.get(below);
      return between?.group === group ? between.podSets : [];
    });
  }

  /** A pod of its owner's group and types is charged with its owner, and only after that no longer by itself. */
  async #coveredBy(root: WorkloadObject, demand: Demand): Promise<Demand | null> {
    if (!isOfTypes(demand.types, root.demand?.types)) return demand;
    if (this.#options.engine.isCharged(demand.workload)) await this.reconcile(root);
    return null;
  }
}
