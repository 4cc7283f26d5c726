import { isDeepStrictEqual } from 'node:util';
import { Turn } from '../../host/turn.js';
import { refOfKey, type Demand, type QuotaEngine, type EvaluationOptions } from '../../quota/internal.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { readGroup, type GroupObject } from '../../kube/quota/group-object.js';
import { readObject, type ServedKind } from '../kinds.js';
import { QUEUE_LABEL } from '../kueue/workload.js';
import { Listeners } from '../../host/listeners.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { GROUPS_PATH } from '../../kube/quota/names.js';
import type { Ownership } from '../ownership.js';
import { CoverObjects } from '../store/cover-objects.js';
import { NO_GROUP } from '../store/ledger.js';
import type { Clock } from '../../host/clock.js';
import { Pause } from '../../host/pause.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import { hashOf, readCover, type CoveredObjects } from './cover-text.js';
import { levelsOf } from './group-drift.js';
import { GroupReconciler } from './group-reconciler.js';
import { LedgerWatch } from './ledger-watch.js';
import { listWorkloads } from './list-workloads.js';
import type { KnownWorkloads } from './known-workloads.js';
import type { OwnedPods } from './owned-pods.js';
import { OwnerWatch } from './owner-watch.js';
import { ReservationCheck } from './reservation-check.js';
import {
  accountOf,
  inAccount,
  isPodKind,
  readOwnedObject,
  readWorkloadObject,
  selectorOf,
  WORKLOADS_PER_PAGE,
  type Account,
  type WorkloadObject,
} from './workload-object.js';
import { WorkloadReconciler } from './workload-reconciler.js';

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

/** A charge of the ledger. */
interface Charged extends Account {
  readonly key: string;
  readonly uid: string;
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
  readonly #known: KnownWorkloads;
  readonly #owners: OwnerWatch;
  readonly #workloadReconciler: WorkloadReconciler;
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
  #watchesUnlabelled = false;
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
    for (const [path, informer] of this.#workloads) {
      if (kinds.some((kind) => kind.path === path)) continue;
      this.#workloads.delete(path);
      void informer.stop();
      for (const object of informer.values())
        if (!kinds.some(({ evaluator }) => evaluator === object.kind.evaluator)) this.#workloadChanged(object, null);
    }
  }

  #readPod(kind: ServedKind, object: unknown): WorkloadObject | null {
    const pod = readOwnedObject(kind, object, this.#options.evaluation());
    return pod !== null && this.#owners.concerns(pod) ? pod : null;
  }

  /** Creates informers for new kinds. */
  #watch(kinds: readonly ServedKind[]): readonly Informer<unknown>[] {
    const { api, evaluation } = this.#options;
    this.#watchesUnlabelled = evaluation().defaultGroup !== undefined;
    const workloads = kinds
      .filter(({ path }) => !this.#workloads.has(path))
      .map((kind) => {
        const isPod = isPodKind(kind);
        const informer = api.informer({
          path: kind.path,
          labelSelector: isPod ? undefined : selectorOf(kind, evaluation()),
          pageSize: WORKLOADS_PER_PAGE,
          keep: (object) => (isPod ? this.#readPod(kind, object) : readWorkloadObject(kind, object, evaluation())),
        });
        informer.onChange(({ before, after }) =>
          isPod ? this.#owners.podChanged(before, after) : this.#workloadChanged(before, after),
        );
        this.#workloads.set(kind.path, informer);
        return informer;
      });
    return [...workloads, ...this.#owners.serve(kinds)];
  }

  #informers(): readonly Informer<unknown>[] {
    return [this.#groupInformer, this.#ledgers.informer, ...this.#workloads.values(), ...this.#owners.informers()];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ledgers.stop();
    this.#pause.end();
    await this.#reservations.stop();
    await Promise.all(this.#informers().map((informer) => informer.stop()));
    await this.#queue.stop();
  }

  /**
   * Compares the ledger with freshly listed objects: releases charges without an object, and reconciles all others.
   * False if `goesOn` ended it: a large cluster takes a minute, and its caller may have to stop.
   */
  async compare(goesOn: () => boolean): Promise<boolean> {
    const { engine, log } = this.#options;
    await engine.catchUp();
    // The charges are read before the objects: a charged object that is missing in the list was therefore deleted.
    const charged = [...this.#charged()];
    const there = await this.#relist(() => true, goesOn);
    if (there === null) return false;
    const gone: Charged[] = [];
    for (const entry of charged) {
      if (there.get(entry.key) === entry.uid) continue;
      if (!goesOn()) return false;
      if (await this.#owners.isLeft(entry, entry)) continue;
      const { key, uid, group } = entry;
      gone.push(entry);
      this.#known.unlisted(key, uid);
      await this.#end({ key, uid, group });
    }
    if (gone.length > 0)
      log.warn({ workloads: gone.slice(0, 20).map(({ key }) => key) }, 'released workloads whose objects are gone');
    this.#queueGroups();
    return true;
  }

  /** Compares the ledger with the first lists, which all have been reconciled: most starts need no second list. */
  async #compareInitially(): Promise<void> {
    await this.#options.engine.catchUp();
    for (const { key, uid } of this.#charged())
      if (!this.#known.has(key, uid)) return void (await this.compare(() => !this.#stopped));
    this.#queueGroups();
  }

  /** Workloads with a uid that the ledger charges. */
  *#charged(): Generator<Charged> {
    for (const { kind, key, group, value } of this.#options.engine.records())
      if (kind === 'workload' && value !== null && value.uid !== '')
        yield { key, uid: value.uid, group, types: value.podSets[0]?.shape.types ?? {} };
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
    if (defaultGroup !== undefined && !this.#watchesUnlabelled) return this.#watchUnlabelled();
    for (const { key, isLabelled, group, namespace } of this.workloads())
      if (!isLabelled && (defaultGroup?.(namespace) ?? '') !== group) this.#queue.put(key, 0);
  }

  /** Replaces the informers of labelled objects by informers of all, and charges what these show. */
  async #watchUnlabelled(): Promise<void> {
    const before = [...this.#workloads.values()];
    this.#workloads.clear();
    const informers = this.#watch(this.#kinds);
    for (const informer of informers) informer.start();
    await Promise.all(before.map((informer) => informer.stop()));
    await Promise.all(informers.map((informer) => informer.whenSynced()));
    await this.compare(() => !this.#stopped);
  }

  /** Lists workloads of the affected kinds, and charges them as they are evaluated now. */
  async reread(isConcerned: (kind: ServedKind) => boolean = () => true): Promise<void> {
    if (this.#synced && !this.#stopped) await this.#relist(isConcerned, () => !this.#stopped);
  }

  /**
   * Lists workloads, and queues each of them with its newest known state; their uids by key. Null if `goesOn` ended it.
   */
  async #relist(
    isConcerned: (kind: ServedKind) => boolean,
    goesOn: () => boolean,
  ): Promise<ReadonlyMap<string, string> | null> {
    const there = new Map<string, string>();
    for (const kind of this.#kinds.filter(isConcerned))
      for await (const object of listWorkloads(kind, this.#options)) {
        if (!goesOn()) return null;
        there.set(object.key, this.#known.listed(object));
      }
    for (const key of there.keys()) this.#queue.put(key, 0);
    return there;
  }

  /** Resolves when all initial objects are in the ledger. */
  whenSynced(): Promise<void> {
    return this.#whenSynced;
  }

  /** Parents come before children, and groups before workloads. */
  async #reconcileInitially(): Promise<void> {
    await this.#untilSuccess(() => this.#recall());
    if (this.#stopped) return;
    for (const informer of this.#informers()) informer.start();
    // Kinds may be added or removed during the wait.
    while (!this.#stopped && !this.#informers().every(({ synced }) => synced))
      await Promise.all(this.#informers().map((informer) => informer.whenSynced()));
    const early = new Map<string, string>();
    this.#early = early;
    const { engine } = this.#options;
    await this.#untilSuccess(() => engine.catchUp());
    for (const level of levelsOf(this.groups()))
      await Promise.all(level.map(({ spec }) => this.#untilSuccess(() => this.#reconcile(groupKey(spec.name)))));
    await this.#untilSuccess(() => this.#owners.settleRecalled());
    const keys = this.#known.keys();
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

  /**
   * Reads what was covered when a replica last ran, and what is charged by itself although it may have no label, before
   * the informers choose what they keep. A group that pays for a namespace pays for what is there without a label.
   */
  async #recall(): Promise<void> {
    const { defaultGroup } = this.#options.evaluation();
    const accounts = new Map<number, Account>();
    const turn = new Turn();
    for (const { key, uid, group, types } of this.#charged()) {
      if (turn.isOver()) await turn.pass();
      if ((defaultGroup?.(refOfKey(key).namespace ?? '') ?? '') === '') accounts.set(hashOf(uid), { group, types });
    }
    for (const [group, { text }] of await new CoverObjects(this.#options.api).list())
      for (const { types, hashes } of this.#coveredIn(group, text))
        for (const hash of hashes) accounts.set(hash, { group, types });
    this.#options.owned.recall(accounts);
  }

  #coveredIn(group: string, text: string): readonly CoveredObjects[] {
    try {
      return readCover(text);
    } catch (error) {
      const lost = 'what the charges of a group cover was damaged: what came loose while no replica ran is not charged';
      this.#options.log.warn({ err: error, group }, lost);
      return [];
    }
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
