import { Turn } from '../../host/turn.js';
import { type Demand, refOfKey, type QuotaEngine, type EvaluationOptions } from '../../quota/index.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { readGroup, type GroupObject } from '../../kube/quota/group-object.js';
import { readObject, withReferences, type ServedKind } from '../kinds.js';
import { Listeners } from '../../host/listeners.js';
import type { KubeObject } from '../../kube/object.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { GROUPS_PATH } from '../../kube/quota/names.js';
import type { Ownership } from '../ownership.js';
import { NO_GROUP } from '../store/ledger.js';
import type { Clock } from '../../host/clock.js';
import { Pause } from '../../host/pause.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import { levelsOf } from './group-drift.js';
import { GroupReconciler } from './group-reconciler.js';
import { LedgerWatch } from './ledger-watch.js';
import { listWorkloads } from './list-workloads.js';
import { ReservationCheck } from './reservation-check.js';
import { readWorkloadObject, selectorOf, WORKLOADS_PER_PAGE, type WorkloadObject } from './workload-object.js';

export interface ReconcilerOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly kinds: readonly ServedKind[];
  /** The current options for evaluating workloads. */
  readonly evaluation: () => EvaluationOptions;
  /** Computes the charges of objects with owners. */
  readonly ownership: Ownership;
  readonly log: StructuredLog;
  readonly clock: Clock;
  /** Delay after which this process reconciles an object that another replica admitted. */
  readonly othersMs?: number;
  /** How long an admission is reserved until its object is observed. */
  readonly reservationMs: number;
}

/** Maximum number of remembered admissions of this process. */
const MAX_ADMITTED = 10_000;
/** Workloads that are reconciled at a time at the start; those of a group that wait together share a commit. */
const INITIAL_CONCURRENCY = 2048;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;

/**
 * Reconciles the ledger with groups and workloads at the API server. Every replica reconciles all objects: the replica
 * that admitted an object at once, the others after a delay. Reconciling an object twice changes nothing.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #groupInformer: Informer<GroupObject>;
  readonly #groups: GroupReconciler;
  /** Informers by path of the kind. */
  readonly #workloads = new Map<string, Informer<WorkloadObject>>();
  #kinds: readonly ServedKind[];
  readonly #ledgers: LedgerWatch;
  readonly #workloadByKey = new Map<string, WorkloadObject>();
  readonly #workloadByUid = new Map<string, WorkloadObject>();
  /** Deleted objects that the ledger still has to release, with their last group. */
  readonly #deleted = new Map<string, WorkloadObject>();
  readonly #admitted = new Set<string>();
  readonly #queue: ReconcileQueue;
  readonly #reservations: ReservationCheck;
  readonly #pause: Pause;
  readonly #listeners = new Listeners<string>();
  #synced = false;
  /** Uids by key of workloads that changed during the initial reconciliation; null before and after. */
  #early: Map<string, string> | null = null;
  #resolveSynced: () => void = () => undefined;
  readonly #whenSynced = new Promise<void>((resolve) => (this.#resolveSynced = resolve));
  #stopped = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    const { api, engine, kinds, clock, log } = options;
    this.#pause = new Pause(clock);
    this.#queue = new ReconcileQueue({
      reconcile: (key) => this.#reconcile(key),
      failed: (key, error) => log.warn({ err: error, subject: key }, 'reconciliation of the ledger failed; retrying'),
      clock,
      log,
    });
    this.#groupInformer = api.informer({ path: GROUPS_PATH, keep: readGroup });
    this.#groups = new GroupReconciler({
      api,
      engine,
      clock,
      reservationMs: options.reservationMs,
      enqueue: (name, delayMs) => this.#queue.put(groupKey(name), delayMs),
      changed: (name) => this.#notify(name),
      created: (name) => {
        for (const { key, group } of this.workloads()) if (group === name) this.#queue.put(key, 0);
      },
    });
    this.#ledgers = new LedgerWatch({
      api,
      engine,
      clock,
      log,
      changed: (group) => this.#ledgerChanged(group),
      read: (group, isNews) => {
        this.#groups.awaitReservation(group);
        if (isNews) this.#notify(group);
      },
    });
    this.#kinds = kinds;
    this.#reservations = new ReservationCheck({
      api,
      engine,
      kinds: () => this.#kinds,
      clock,
      log,
      reservationMs: options.reservationMs,
      isOurs: (uid) => this.#admitted.has(uid),
      found: (kind, object) => this.#reconcileRead(kind, object),
    });
    this.#watch(kinds);
  }

  /** True once all initial objects are in the ledger. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Why the ledger differs from a group's object; null if it does not. */
  problemOf(group: string): string | null {
    return this.#groups.problemOf(group);
  }

  groups(): readonly GroupObject[] {
    return this.#groups.groups();
  }

  group(name: string): GroupObject | null {
    return this.#groups.group(name);
  }

  /** A workload by its `refKey`. */
  workload(key: string): WorkloadObject | null {
    return this.#workloadByKey.get(key) ?? null;
  }

  /** An existing workload by its uid. */
  workloadOf(uid: string): WorkloadObject | null {
    return this.#workloadByUid.get(uid) ?? null;
  }

  workloads(): readonly WorkloadObject[] {
    return [...this.#workloadByKey.values()];
  }

  /** Reconciles a workload again if it exists: what is charged in its place changed. */
  reconsider(uid: string): void {
    const object = this.#workloadByUid.get(uid);
    if (object !== undefined && this.#synced) this.#queue.put(object.key, 0);
  }

  /** Records that this process admitted an object. */
  admitted(uid: string): void {
    this.#admitted.add(uid);
    if (this.#admitted.size > MAX_ADMITTED)
      for (const oldest of this.#admitted) if (this.#admitted.delete(oldest)) break;
  }

  /** Calls `listener` with groups whose object or ledger changed. Returns a function that ends this. */
  onChange(listener: (group: string) => void): () => void {
    return this.#listeners.add(listener);
  }

  start(): void {
    this.#groupInformer.onChange(({ before, after }) => this.#groupChanged(before, after));
    for (const informer of this.#informers()) informer.start();
    void this.#reconcileInitially();
  }

  /**
   * Updates the set of kinds that the API server serves: new kinds are watched, and charges of removed kinds are
   * released.
   */
  serve(kinds: readonly ServedKind[]): void {
    if (this.#stopped) return;
    this.#kinds = kinds;
    for (const informer of this.#watch(kinds)) informer.start();
    for (const [path, informer] of this.#workloads) {
      if (kinds.some((kind) => kind.path === path)) continue;
      this.#workloads.delete(path);
      void informer.stop();
      for (const object of informer.values())
        if (!kinds.some(({ evaluator }) => evaluator === object.kind.evaluator)) this.#workloadChanged(object, null);
    }
  }

  /** Creates informers for new kinds. */
  #watch(kinds: readonly ServedKind[]): readonly Informer<WorkloadObject>[] {
    const { api, evaluation } = this.#options;
    return kinds
      .filter(({ path }) => !this.#workloads.has(path))
      .map((kind) => {
        const informer = api.informer({
          path: kind.path,
          labelSelector: selectorOf(kind, evaluation()),
          pageSize: WORKLOADS_PER_PAGE,
          keep: (object) => readWorkloadObject(kind, object, evaluation()),
        });
        informer.onChange(({ before, after }) => this.#workloadChanged(before, after));
        this.#workloads.set(kind.path, informer);
        return informer;
      });
  }

  #informers(): readonly Informer<unknown>[] {
    return [this.#groupInformer, this.#ledgers.informer, ...this.#workloads.values()];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ledgers.stop();
    this.#pause.end();
    await this.#reservations.stop();
    await Promise.all(this.#informers().map((informer) => informer.stop()));
    await this.#queue.stop();
  }

  /** Compares the ledger with freshly listed objects: releases charges without an object, and reconciles all others. */
  async compare(): Promise<void> {
    const { engine, log } = this.#options;
    await engine.catchUp();
    // The charges are read before the objects: a charged object that is missing in the list was therefore deleted.
    const charged = [...this.#charged()];
    const there = await this.#relist();
    const gone = charged.filter(({ key, uid }) => there.get(key) !== uid);
    for (const { key, uid, group } of gone) {
      if (this.#workloadByKey.get(key)?.uid === uid) this.#workloadByKey.delete(key);
      await this.#observeDeleted(key, uid, group);
    }
    if (gone.length > 0)
      log.warn({ workloads: gone.slice(0, 20).map(({ key }) => key) }, 'released workloads whose objects are gone');
    this.#queueGroups();
  }

  /** Compares the ledger with the first lists, which all have been reconciled: most starts need no second list. */
  async #compareInitially(): Promise<void> {
    await this.#options.engine.catchUp();
    for (const { key, uid } of this.#charged()) if (this.#workloadByKey.get(key)?.uid !== uid) return this.compare();
    this.#queueGroups();
  }

  /** Workloads with a uid that the ledger charges. */
  *#charged(): Generator<{ readonly key: string; readonly uid: string; readonly group: string }> {
    for (const { kind, key, group, value } of this.#options.engine.records())
      if (kind === 'workload' && value !== null && value.uid !== '') yield { key, uid: value.uid, group };
  }

  #queueGroups(): void {
    for (const name of new Set([...this.groups().map(({ spec }) => spec.name), ...this.#options.engine.groups()]))
      this.#queue.put(groupKey(name), 0);
  }

  /** Lists workloads of the affected kinds, and charges them as they are evaluated now. */
  async reread(isConcerned: (kind: ServedKind) => boolean = () => true): Promise<void> {
    if (this.#synced && !this.#stopped) await this.#relist(isConcerned);
  }

  /** Lists workloads, and queues each of them with its newest known state; their uids by key. */
  async #relist(isConcerned: (kind: ServedKind) => boolean = () => true): Promise<ReadonlyMap<string, string>> {
    const there = new Map<string, string>();
    for (const kind of this.#kinds.filter(isConcerned))
      for await (const object of listWorkloads(kind, this.#options)) there.set(object.key, this.#listed(object));
    for (const key of there.keys()) this.#queue.put(key, 0);
    return there;
  }

  /** Notes a listed workload; its uid. One that is known in this state stays, so that it is not in memory twice. */
  #listed(object: WorkloadObject): string {
    const { key, uid, version, charge } = object;
    const named = this.#workloadByKey.get(key);
    const same = named?.uid === uid && named.version === version && named.charge === charge ? named : object;
    if (named === undefined || named.uid !== uid || named.version <= version) this.#workloadByKey.set(key, same);
    this.#workloadByUid.set(same.uid, same);
    return same.uid;
  }

  /** Resolves when all initial objects are in the ledger. */
  whenSynced(): Promise<void> {
    return this.#whenSynced;
  }

  /** Parents come before children, and groups before workloads. */
  async #reconcileInitially(): Promise<void> {
    // Kinds may be added or removed during the wait.
    while (!this.#stopped && !this.#informers().every(({ synced }) => synced))
      await Promise.all(this.#informers().map((informer) => informer.whenSynced()));
    const early = new Map<string, string>();
    this.#early = early;
    const { engine } = this.#options;
    await this.#untilSuccess(() => engine.catchUp());
    for (const level of levelsOf(this.groups()))
      await Promise.all(level.map(({ spec }) => this.#untilSuccess(() => this.#reconcile(groupKey(spec.name)))));
    const keys = this.#workloadByKey.keys();
    const turn = new Turn();
    const work = async (): Promise<void> => {
      for (const key of keys) {
        await this.#untilSuccess(() => this.#reconcile(key));
        await turn.pass();
      }
    };
    await Promise.all(Array.from({ length: INITIAL_CONCURRENCY }, work));
    await this.#untilSuccess(() => this.#compareInitially());
    if (this.#stopped) return;
    this.#synced = true;
    this.#early = null;
    for (const [key, uid] of early) this.#enqueue(key, uid);
    this.#reservations.start();
    this.#resolveSynced();
  }

  /** Repeats one step of the initial reconciliation until it succeeds. */
  async #untilSuccess(step: () => Promise<void>): Promise<void> {
    for (let attempt = 0; !this.#stopped; attempt++) {
      try {
        return await step();
      } catch (error) {
        this.#options.log.warn({ err: error }, 'the ledger is not in sync with the API server yet; retrying');
        await this.#pause.for(Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt) * (0.5 + Math.random() / 2));
      }
    }
  }

  #groupChanged(before: GroupObject | null, after: GroupObject | null): void {
    const name = (after ?? before)?.spec.name ?? '';
    this.#groups.observe(name, after);
    this.#notify(name);
    if (
      before !== null &&
      after !== null &&
      before.generation === after.generation &&
      before.terminating === after.terminating &&
      before.force === after.force
    )
      return;
    if (!this.#synced) return;
    this.#queue.put(groupKey(name), 0);
  }

  #workloadChanged(before: WorkloadObject | null, after: WorkloadObject | null): void {
    const object = after ?? before;
    if (object === null) return;
    if (after === null) this.#workloadByUid.delete(object.uid);
    else this.#workloadByUid.set(after.uid, after);
    if (after === null) {
      // A new object may have the same name already.
      if (this.#workloadByKey.get(object.key)?.uid === object.uid) this.#workloadByKey.delete(object.key);
      this.#deleted.set(deletedKey(object.uid), object);
      this.#enqueue(deletedKey(object.uid), object.uid);
      return;
    }
    this.#workloadByKey.set(after.key, after);
    this.#enqueue(after.key, after.uid);
  }

  #enqueue(key: string, uid: string): void {
    if (!this.#synced) return void this.#early?.set(key, uid);
    const { othersMs = 800 } = this.#options;
    this.#queue.put(key, this.#admitted.has(uid) ? 0 : Math.round(othersMs * (0.5 + Math.random())));
  }

  /** Returns whether the engine should read the ledger. */
  #ledgerChanged(group: string): boolean {
    this.#notify(group);
    if (!this.#synced) return false;
    if (group !== NO_GROUP && this.group(group) === null) this.#queue.put(groupKey(group), this.#options.reservationMs);
    return true;
  }

  #notify(group: string): void {
    this.#listeners.emit(group);
  }

  async #reconcile(key: string): Promise<void> {
    const gone = this.#deleted.get(key);
    if (gone !== undefined) {
      await this.#observeDeleted(gone.key, gone.uid, gone.group);
      this.#deleted.delete(key);
      this.#admitted.delete(gone.uid);
      return;
    }
    if (key.startsWith(GROUP)) return this.#groups.reconcile(key.slice(GROUP.length));
    const object = this.#workloadByKey.get(key);
    if (object !== undefined) await this.#reconcileWorkload(object);
  }

  /** Evaluates a workload again with the objects that it references. */
  async #withReferences(seen: WorkloadObject): Promise<WorkloadObject> {
    if (!seen.refers) return seen;
    const { api, evaluation } = this.#options;
    const object = await readObject(api, seen.kind, seen.namespace, seen.name);
    if (object === null) return seen;
    const now = evaluation();
    const options = await withReferences(api, this.#kinds, object, now);
    const resolved = 'ok' in options || options === now ? null : readWorkloadObject(seen.kind, object, options);
    if (resolved?.uid !== seen.uid) return seen;
    if (this.#workloadByUid.get(seen.uid) === seen) this.#workloadByUid.set(seen.uid, resolved);
    return resolved;
  }

  /** Charges an object that was read from the API server, which the watch may not have shown. */
  async #reconcileRead(kind: ServedKind, object: KubeObject): Promise<boolean> {
    const read = readWorkloadObject(kind, object, this.#options.evaluation());
    if (read === null) {
      const uid = object.metadata?.uid ?? '';
      const known = this.#workloadByUid.get(uid);
      if (known !== undefined) await this.#observeDeleted(known.key, uid, known.group);
      return false;
    }
    const known = this.#workloadByUid.get(read.uid);
    if (known === undefined || known.version <= read.version) this.#workloadByUid.set(read.uid, read);
    const named = this.#workloadByKey.get(read.key);
    if (named === undefined || named.version <= read.version) this.#workloadByKey.set(read.key, read);
    await this.#reconcileWorkload(read);
    return true;
  }

  async #reconcileWorkload(seen: WorkloadObject): Promise<void> {
    const { engine, log } = this.#options;
    const object = await this.#withReferences(seen);
    const { key, uid, group } = object;
    if (object.problem !== null) {
      log.warn({ workload: key, group, problem: object.problem }, 'workload not charged: its requests cannot be read');
      return;
    }
    const demand = await this.#ownDemand(object);
    // It was deleted while its owner was read, and its deletion is observed by a run of its own.
    if (!this.#workloadByUid.has(uid)) return;
    if (demand === null) return this.#observeDeleted(key, uid, group);
    const decision = await engine.observe({ workload: { ...demand.workload }, group, demand });
    if (decision.code === 'Conflict') throw new Error(decision.message);
    if (!decision.allowed)
      log.warn({ workload: key, group, code: decision.code, reason: decision.message }, 'workload not charged');
  }

  /** The demand that is charged for the object itself; null for none. */
  async #ownDemand(object: WorkloadObject): Promise<Demand | null> {
    const { engine, ownership } = this.#options;
    const { owner, labels, kind, uid, demand: whole } = object;
    const demand = whole === null ? null : await ownership.beyondAdmitted(object, whole);
    if (demand === null || owner === null) return demand;
    const { namespace } = object;
    const charge = await ownership.chargeOf({ kind: kind.evaluator.kind, namespace, labels, owner, demand });
    if (charge.kind === 'covered') return null;
    // An owner that was scaled to zero covered the object until now: a terminating object is not charged again. Its
    // deletion may have begun while the owner was read.
    const isTerminating = this.#workloadByUid.get(uid)?.terminating ?? object.terminating;
    return isTerminating && !engine.isCharged(demand.workload) ? null : charge.demand;
  }

  async #observeDeleted(key: string, uid: string, group: string): Promise<void> {
    const decision = await this.#options.engine.observe({ workload: { ...refOfKey(key), uid }, group, demand: null });
    if (decision.code === 'Conflict') throw new Error(decision.message);
  }
}

const GROUP = 'group:';
const groupKey = (name: string): string => `${GROUP}${name}`;
const deletedKey = (uid: string): string => `gone:${uid}`;
