import type { KubeApi } from '../../kube/client.js';
import type { KubeObject } from '../../kube/object.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { type Demand, refOfKey, type QuotaEngine, type EvaluationOptions } from '../../quota/index.js';
import { readObject, withReferences, type ServedKind } from '../kinds.js';
import type { Ownership } from '../ownership.js';
import type { KnownWorkloads } from './known-workloads.js';
import { readWorkloadObject, type WorkloadObject } from './workload-object.js';

export interface WorkloadReconcilerOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly known: KnownWorkloads;
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

  constructor(options: WorkloadReconcilerOptions) {
    this.#options = options;
  }

  /** Charges an object as it was seen; rejects if that is to be repeated. */
  async reconcile(seen: WorkloadObject): Promise<void> {
    const { engine, known, log } = this.#options;
    if (await this.#rereadForGroup(seen)) return;
    const object = await this.#withReferences(seen);
    const { key, uid, group } = object;
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
    const { known, evaluation } = this.#options;
    const read = readWorkloadObject(kind, object, evaluation());
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

  /** Releases what is charged for a deleted object; rejects if that is to be repeated. */
  async release(key: string, uid: string, group: string): Promise<void> {
    const decision = await this.#options.engine.observe({ workload: { ...refOfKey(key), uid }, group, demand: null });
    if (decision.code === 'Conflict') throw new Error(decision.message);
  }

  /**
   * Reads and charges an object again that names no group, if another group pays for its namespace than when it was
   * seen. Whether that was so.
   */
  async #rereadForGroup({ isLabelled, group, kind, namespace, name }: WorkloadObject): Promise<boolean> {
    const { api, evaluation } = this.#options;
    if (isLabelled || (evaluation().defaultGroup?.(namespace) ?? '') === group) return false;
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
    const resolved = 'ok' in options || options === now ? null : readWorkloadObject(seen.kind, object, options);
    if (resolved?.uid !== seen.uid) return seen;
    known.resolved(seen, resolved);
    return resolved;
  }

  /** The demand that is charged for the object itself; null for none. */
  async #ownDemand(object: WorkloadObject): Promise<Demand | null> {
    const { engine, known, ownership } = this.#options;
    const { owner, labels, kind, uid, namespace, demand: whole } = object;
    const demand = whole === null ? null : await ownership.beyondAdmitted(object, whole);
    if (demand === null || owner === null) return demand;
    const charge = await ownership.chargeOf({ kind: kind.evaluator.kind, namespace, labels, owner, demand });
    if (charge.kind === 'covered') return null;
    // An owner that was scaled to zero covered the object until now: a terminating object is not charged again. Its
    // deletion may have begun while the owner was read.
    const isTerminating = known.withUid(uid)?.terminating ?? object.terminating;
    return isTerminating && !engine.isCharged(demand.workload) ? null : charge.demand;
  }
}
