import { isDeepStrictEqual } from 'node:util';
import { Turn } from '../../host/turn.js';
import type { Demand, EvaluationOptions, QuotaEngine } from '../../quota/internal.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { readGroup, type GroupObject } from '../../kube/quota/group-object.js';
import { readObject, type ServedKind } from '../workloads/kinds.js';
import { QUEUE_LABEL } from '../workloads/kueue-workload.js';
import { Listeners } from '../../host/listeners.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { GROUPS_PATH } from '../../kube/quota/names.js';
import type { Ownership } from '../workloads/ownership.js';
import { NO_GROUP } from '../store/ledger.js';
import type { Clock } from '../../host/clock.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import { levelsOf } from './group-drift.js';
import { GroupReconciler } from './group-reconciler.js';
import { LedgerWatch } from './ledger-watch.js';
import { LedgerComparison } from './ledger-comparison.js';
import type { KnownWorkloads } from '../workloads/known-workloads.js';
import type { OwnedPods } from '../workloads/owned-pods.js';
import { OwnerWatch } from './owner-watch.js';
import { recalledAccounts } from './recalled-accounts.js';
import { RepeatedStep } from './repeated-step.js';
import { ReservationCheck } from './reservation-check.js';
import { accountOf, inAccount, type WorkloadObject } from '../workloads/workload-object.js';
import { WorkloadReconciler } from './workload-reconciler.js';
import { WorkloadWatch } from '../workloads/workload-watch.js';

export interface ReconcilerOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly kinds: readonly ServedKind[];
  /** The current options for evaluating workloads. */
  readonly evaluation: () => EvaluationOptions;
  /** Computes the charges of objects with owners. */
  readonly ownership: Ownership;
  /** The workloads that are charged, and what they own; `ownership` reads them. */
  readonly known: KnownWorkloads;
  readonly owned: OwnedPods;
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

/**
 * Reconciles the ledger with groups and workloads at the API server. Every replica reconciles all objects: the replica
 * that admitted an object at once, the others after a delay. Reconciling an object twice changes nothing.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #groupInformer: Informer<GroupObject>;
  readonly #groups: GroupReconciler;
  readonly #workloads: WorkloadWatch;
  #kinds: readonly ServedKind[];
  readonly #ledgers: LedgerWatch;
  readonly #known: KnownWorkloads;
  readonly #owners: OwnerWatch;
  readonly #workloadReconciler: WorkloadReconciler;
  /** Deleted objects that the ledger still has to release, with their last group. */
  readonly #deleted = new Map<string, WorkloadObject>();
  readonly #admitted = new Set<string>();
  readonly #queue: ReconcileQueue;
  readonly #reservations: ReservationCheck;
  readonly #comparison: LedgerComparison;
  readonly #initially: RepeatedStep;
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
    this.#initially = new RepeatedStep(clock, (error) =>
      log.warn({ err: error }, 'the ledger is not in sync with the API server yet; retrying'),
    );
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
    const { evaluation, ownership, known, owned } = options;
    this.#known = known;
    this.#workloadReconciler = new WorkloadReconciler({
      ...{ api, engine, evaluation, ownership, log, known, owned },
      kinds: () => this.#kinds,
    });
    this.#owners = new OwnerWatch({
      ...{ api, known, owned, evaluation },
      kinds: () => this.#kinds,
      read: (kind, object) => this.#workloadReconciler.read(kind, object),
      changed: (before, after) => this.#workloadChanged(before, after),
      reconsider: (uid) => this.reconsider(uid),
      loosened: (uid) => this.#enqueue(looseKey(uid), uid),
    });
    this.#reservations = new ReservationCheck({
      api,
      engine,
      kinds: () => this.#kinds,
      clock,
      log,
      reservationMs: options.reservationMs,
      isOurs: (uid) => this.#admitted.has(uid),
      found: (kind, object) => this.#workloadReconciler.reconcileRead(kind, object),
    });
    this.#comparison = new LedgerComparison({
      ...{ api, engine, known, evaluation, log, clock },
      kinds: () => this.#kinds,
      isLeft: (charged) => this.#owners.isLeft(charged, charged),
      release: (charged) => this.#end(charged),
      enqueue: (key) => this.#queue.put(key, 0),
    });
    this.#workloads = new WorkloadWatch({
      ...{ api, evaluation },
      concerns: (pod) => this.#owners.concerns(pod),
      podChanged: (before, after) => this.#owners.podChanged(before, after),
      changed: (before, after) => this.#workloadChanged(before, after),
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

  /** Follows the changed limits of a group that this process admitted, until the object is seen or cannot come. */
  awaitLimits(group: string): void {
    this.#groups.awaitReservation(group);
  }

  /** Takes over the limits of a group if its object was stored with them; rejects if the API server fails. */
  settleLimits(group: string): Promise<void> {
    return this.#groups.settleLimits(group);
  }

  /** Groups of the ledger that the API server does not have, and why they have not ended yet. */
  groupsWithoutObject(): ReadonlyMap<string, string> {
    return this.#groups.withoutObject();
  }

  groups(): readonly GroupObject[] {
    return this.#groups.groups();
  }

  group(name: string): GroupObject | null {
    return this.#groups.group(name);
  }

  /** A workload by its `refKey`. */
  workload(key: string): WorkloadObject | null {
    return this.#known.named(key);
  }

  /** An existing workload by its uid. */
  workloadOf(uid: string): WorkloadObject | null {
    return this.#known.withUid(uid);
  }

  /** Uid of the controller of an object; null where it has none, or is not known. */
  ownerOf(uid: string): string | null {
    return this.#options.owned.ownerOf(uid);
  }

  workloads(): readonly WorkloadObject[] {
    return this.#known.values();
  }

  /** Reconciles a workload again if it exists: what is charged in its place changed. */
  reconsider(uid: string): void {
    const object = this.#known.withUid(uid);
    if (object !== null && this.#synced) this.#queue.put(object.key, 0);
  }

  /**
   * Ends an earlier object of the same name before a new one is decided about: what it left is charged by itself. The
   * watch may not have shown its end. Rejects if the API server fails.
   */
  async endEarlier(key: string, uid: string): Promise<void> {
    const earlier = this.#known.named(key);
    if (earlier !== null && earlier.uid !== uid) {
      const { api } = this.#options;
      const object = await readObject(api, earlier.kind, earlier.namespace, earlier.name);
      if (object?.metadata?.uid !== earlier.uid) this.#workloadChanged(earlier, null);
    }
    const ended = [...this.#deleted].filter(([, gone]) => gone.key === key && gone.uid !== uid);
    for (const [at] of ended) await this.#reconcile(at);
  }

  /**
   * The demand of an object that grows, together with the pods that run below it and that it does not cover: the pods
   * that it asks for start beside them.
   */
  withRunning(demand: Demand): Demand {
    const object = this.#known.withUid(demand.workload.uid ?? '');
    const now = object?.demand ?? null;
    // Kueue holds an object back until its earlier pods are gone.
    if (object === null || now === null || object.labels[QUEUE_LABEL] !== undefined) return demand;
    const beside = this.#workloadReconciler.withRunning(object, now, null).podSets.slice(now.podSets.length);
    return beside.length === 0 ? demand : { ...demand, podSets: [...demand.podSets, ...beside] };
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
    this.#workloads.keepOnly(kinds);
  }

  /** Creates informers for new kinds. */
  #watch(kinds: readonly ServedKind[]): readonly Informer<unknown>[] {
    return [...this.#workloads.add(kinds), ...this.#owners.serve(kinds)];
  }

  #informers(): readonly Informer<unknown>[] {
    return [this.#groupInformer, this.#ledgers.informer, ...this.#workloads.informers(), ...this.#owners.informers()];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ledgers.stop();
    this.#initially.stop();
    await this.#reservations.stop();
    await Promise.all(this.#informers().map((informer) => informer.stop()));
    await this.#queue.stop();
  }

  /**
   * Compares the ledger with freshly listed objects: releases charges without an object, and reconciles all others.
   * False if `goesOn` ended it: a large cluster takes a minute, and its caller may have to stop.
   */
  async compare(goesOn: () => boolean): Promise<boolean> {
    const isWhole = await this.#comparison.compare(goesOn);
    if (isWhole) this.#queueGroups();
    return isWhole;
  }

  #queueGroups(): void {
    for (const name of new Set([...this.groups().map(({ spec }) => spec.name), ...this.#options.engine.groups()]))
      this.#queue.put(groupKey(name), 0);
  }

  /**
   * Charges objects that name no group to the groups that pay for their namespaces now. Objects without the label are
   * watched from the first group on that names namespaces.
   */
  async defaultGroupsChanged(): Promise<void> {
    if (this.#stopped || !this.#synced) return;
    const { evaluation } = this.#options;
    const { defaultGroup } = evaluation();
    if (defaultGroup !== undefined && !this.#workloads.showsUnlabelled) {
      await this.#workloads.renew(this.#kinds);
      await this.compare(() => !this.#stopped);
      return;
    }
    for (const { key, isLabelled, group, namespace } of this.workloads())
      if (!isLabelled && (defaultGroup?.(namespace) ?? '') !== group) this.#queue.put(key, 0);
  }

  /** Lists workloads of the affected kinds, and charges them as they are evaluated now. */
  async reread(isConcerned: (kind: ServedKind) => boolean = () => true): Promise<void> {
    if (this.#synced && !this.#stopped) await this.#comparison.list(isConcerned, () => !this.#stopped);
  }

  /** Resolves when all initial objects are in the ledger. */
  whenSynced(): Promise<void> {
    return this.#whenSynced;
  }

  /** Parents come before children, and groups before workloads. */
  async #reconcileInitially(): Promise<void> {
    const { engine, owned } = this.#options;
    const initially = this.#initially;
    await initially.untilSuccess(async () => owned.recall(await recalledAccounts(this.#options)));
    if (this.#stopped) return;
    for (const informer of this.#informers()) informer.start();
    // Kinds may be added or removed during the wait.
    while (!this.#stopped && !this.#informers().every(({ synced }) => synced))
      await Promise.all(this.#informers().map((informer) => informer.whenSynced()));
    const early = new Map<string, string>();
    this.#early = early;
    await initially.untilSuccess(() => engine.catchUp());
    for (const level of levelsOf(this.groups()))
      await Promise.all(level.map(({ spec }) => initially.untilSuccess(() => this.#reconcile(groupKey(spec.name)))));
    await initially.untilSuccess(() => this.#owners.settleRecalled());
    const keys = this.#known.keys();
    const turn = new Turn();
    const work = async (): Promise<void> => {
      for (const key of keys) {
        await initially.untilSuccess(() => this.#reconcile(key));
        await turn.pass();
      }
    };
    await Promise.all(Array.from({ length: INITIAL_CONCURRENCY }, work));
    await initially.untilSuccess(() => this.#comparison.compareInitially(() => !this.#stopped));
    this.#queueGroups();
    if (this.#stopped) return;
    this.#synced = true;
    this.#early = null;
    for (const [key, uid] of early) this.#enqueue(key, uid);
    this.#reservations.start();
    this.#resolveSynced();
  }

  #groupChanged(before: GroupObject | null, after: GroupObject | null): void {
    const name = (after ?? before)?.spec.name ?? '';
    this.#groups.observe(name, after);
    this.#notify(name);
    if (
      before !== null &&
      after !== null &&
      before.generation === after.generation &&
      isDeepStrictEqual(before.spec.hard, after.spec.hard) &&
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
    // The known state may be newer: it says which group pays for an object without a label.
    const last = this.#known.withUid(object.uid) ?? object;
    if (after === null) {
      this.#known.ended(object);
      if (last.group === '') return;
      this.#owners.ended(last);
      this.#deleted.set(deletedKey(object.uid), last);
      this.#enqueue(deletedKey(object.uid), object.uid);
      return;
    }
    const loose = after.isLabelled ? null : this.#options.owned.looseAccount(after.uid);
    const account = loose ?? (after.isHeld && last !== object ? accountOf(last) : null);
    this.#known.watched(account === null ? after : inAccount(after, account));
    if (last.group !== '' || after.group !== '' || account !== null) this.#enqueue(after.key, after.uid);
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

  /** Releases a workload that ended, after what it left behind is charged. */
  async #end({ key, uid, group }: Pick<WorkloadObject, 'key' | 'uid' | 'group'>): Promise<void> {
    for (const left of await this.#owners.leftFrom(uid)) await this.#workloadReconciler.reconcile(left);
    await this.#workloadReconciler.end(key, uid, group);
    this.#owners.released(uid);
  }

  async #reconcile(key: string): Promise<void> {
    const gone = this.#deleted.get(key);
    if (gone !== undefined) {
      await this.#end(gone);
      this.#deleted.delete(key);
      this.#admitted.delete(gone.uid);
      return;
    }
    if (key.startsWith(LOOSE)) return this.#owners.look(key.slice(LOOSE.length));
    if (key.startsWith(GROUP)) return this.#groups.reconcile(key.slice(GROUP.length));
    const object = this.#known.named(key);
    if (object !== null) await this.#workloadReconciler.reconcile(object);
  }
}

const GROUP = 'group:';
const groupKey = (name: string): string => `${GROUP}${name}`;
const LOOSE = 'loose:';
const looseKey = (uid: string): string => `${LOOSE}${uid}`;
const deletedKey = (uid: string): string => `gone:${uid}`;
