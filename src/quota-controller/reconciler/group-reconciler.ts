import type { Clock } from '../../host/clock.js';
import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import type { Decision, QuotaEngine } from '../../quota/internal.js';
import { readGroup, type GroupObject } from '../../kube/quota/group-object.js';
import { GROUPS_PATH, itemPath } from '../../kube/quota/names.js';
import { isUpToDate } from './group-drift.js';

export interface GroupReconcilerOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly clock: Clock;
  /** How long an admission is reserved until its object is observed. */
  readonly reservationMs: number;
  /** Queues the reconciliation of a group after a delay. */
  readonly enqueue: (group: string, delayMs: number) => void;
  /** Called after each reconciliation. */
  readonly changed: (group: string) => void;
  /** Called when a group was created in the ledger: its workloads can be charged now. */
  readonly created: (group: string) => void;
}

/** Reconciles the groups of the ledger with their objects. */
export class GroupReconciler {
  readonly #options: GroupReconcilerOptions;
  readonly #byName = new Map<string, GroupObject>();
  /** Since when groups in the ledger have no object; -Infinity after an observed deletion. */
  readonly #absent = new Map<string, number>();
  readonly #problems = new Map<string, string>();
  /** Groups of the ledger that the API server does not have, and why they are still there. */
  readonly #withoutObject = new Map<string, string>();
  /** Groups with reserved limits, and when the reservation expires. */
  readonly #reservedUntil = new Map<string, number>();

  constructor(options: GroupReconcilerOptions) {
    this.#options = options;
  }

  groups(): readonly GroupObject[] {
    return [...this.#byName.values()];
  }

  group(name: string): GroupObject | null {
    return this.#byName.get(name) ?? null;
  }

  /** Why the ledger differs from a group's object; null if it does not. */
  problemOf(name: string): string | null {
    return this.#problems.get(name) ?? null;
  }

  /**
   * Groups of the ledger without an object that nothing can bring any more, and why they have not ended yet. Each ends
   * when it has no workloads and no children.
   */
  withoutObject(): ReadonlyMap<string, string> {
    return this.#withoutObject;
  }

  /** Records the observed object of a group; null after its deletion. */
  observe(name: string, object: GroupObject | null): void {
    if (object === null) {
      this.#byName.delete(name);
      this.#absent.set(name, -Infinity);
    } else {
      this.#byName.set(name, object);
      this.#absent.delete(name);
    }
  }

  /** Brings the ledger to the state of a group's object. Rejects on a conflict or if the API server fails. */
  async reconcile(name: string): Promise<void> {
    const { engine } = this.#options;
    const object = this.#byName.get(name);
    const known = engine.status(name);
    let decision: Decision | null = null;
    if (object === undefined) {
      if (known !== null) decision = await this.#remove(name, known.createdAt);
    } else if (object.terminating) {
      if (known !== null && !known.conditions.some(({ type }) => type === 'Terminating'))
        decision = await engine.execute({ type: 'terminateGroup', name });
    } else if (known === null) decision = await this.#add(object);
    else if (known.limitsReservedUntil !== null || !isUpToDate(object, known, engine.now)) {
      decision = await this.#update(name);
      this.awaitReservation(name);
    }
    // A child whose limit the parent could not pay may fit now.
    if (decision?.allowed === true)
      for (const { spec } of this.#byName.values())
        if (spec.parent === name && this.#problems.has(spec.name)) this.#options.enqueue(spec.name, 0);
    if (decision?.code === 'Conflict') throw new Error(decision.message);
    const refusedLoan = decision?.warnings.find(({ code }) => code === 'LoanRefused')?.reason ?? null;
    const problem = decision === null || decision.allowed ? refusedLoan : decision.message;
    if (problem === null) this.#problems.delete(name);
    else this.#problems.set(name, problem);
    const parent = this.#noteWithoutObject(name, object === undefined ? problem : null) ? known?.parent : undefined;
    for (const changed of [name, parent ?? '']) if (changed !== '') this.#options.changed(changed);
  }

  /** Whether this changes which groups have no object. */
  #noteWithoutObject(name: string, problem: string | null): boolean {
    if (problem === null) return this.#withoutObject.delete(name);
    const isNew = !this.#withoutObject.has(name);
    this.#withoutObject.set(name, problem);
    return isNew;
  }

  /** Ends the limit reservation of a group if its object was stored since; rejects if the API server fails. */
  async settleLimits(name: string): Promise<void> {
    if ((this.#options.engine.status(name)?.limitsReservedUntil ?? null) !== null) await this.#update(name);
  }

  /**
   * Reconciles a group when its limit reservation expires, so that limits for an object that was never stored are
   * released.
   */
  awaitReservation(name: string): void {
    const { engine, reservationMs, clock } = this.#options;
    const until = engine.status(name)?.limitsReservedUntil ?? null;
    if (until === null || this.#reservedUntil.get(name) === until) return;
    this.#reservedUntil.set(name, until);
    const waitMs = Math.min(Math.max(0, until - engine.now), reservationMs) + 50;
    clock.after(waitMs, () => {
      if (this.#reservedUntil.get(name) === until) this.#reservedUntil.delete(name);
      this.#options.enqueue(name, 0);
    });
  }

  /**
   * Gives the ledger the limits of a group's object as the API server has it now: the watch may be silent, and an older
   * object would lower limits that were admitted since. Null for an object that no longer exists.
   */
  async #update(name: string): Promise<Decision | null> {
    const { api, engine } = this.#options;
    const answer = await api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
    if (!answer.ok && answer.code !== 'not-found') throw new KubeError(`group ${name} cannot be read`, answer);
    if (!answer.ok) return null;
    const { spec, generation } = readGroup(answer.body);
    return engine.execute({ type: 'updateGroup', ...spec, force: true, observed: generation });
  }

  async #add(object: GroupObject): Promise<Decision> {
    const { engine, created, enqueue } = this.#options;
    const decision = await engine.execute({ type: 'createGroup', ...object.spec });
    if (!decision.allowed) return decision;
    created(object.spec.name);
    for (const { spec } of this.#byName.values()) if (spec.parent === object.spec.name) enqueue(spec.name, 0);
    return decision;
  }

  /**
   * Deletes a group whose object was deleted or never stored. Its quota stays reserved while the object may still be
   * stored, because the ledger may have another group than the one whose object was deleted.
   */
  async #remove(name: string, createdAt: number): Promise<Decision | null> {
    const since = this.#absent.get(name) ?? this.#options.clock.now();
    this.#absent.set(name, since);
    const waitMs = Math.max(since, createdAt) + this.#options.reservationMs - this.#options.clock.now();
    if (waitMs > 0) {
      this.#options.clock.after(waitMs, () => this.#options.enqueue(name, 0));
      return null;
    }
    const answer = await this.#options.api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
    if (answer.ok) return null;
    if (answer.code !== 'not-found') throw new KubeError(`group ${name} cannot be read`, answer);
    return this.#options.engine.deleteGroup(name);
  }
}
