import { type QuotaEngine, type Command, type Types, refOfKey } from '../../quota/internal.js';
import { DEFAULT_CATALOG, type CardCatalog } from '../../manifests/gpu-resources.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { MAX_OWNERS } from '../workloads/owned-pods.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { WORKLOADS_PER_PAGE, type WorkloadObject } from '../workloads/workload-object.js';
import type { Clock } from '../../host/clock.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import type { GroupPod } from './beyond-quota.js';
import { ClaimMeter } from './claim-meter.js';
import { claimedBy } from './claimed-amounts.js';
import type { PlacementAudit } from './placement-audit.js';
import { readPodObject, type PodObject } from '../workloads/pod-object.js';

export interface UsageMeterOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  /** Uid of the controller of an object; null where it has none, or is not known. */
  readonly ownerOf: (uid: string) => string | null;
  /** The workload with this uid; null where there is none that names a group. */
  readonly workloadOf: (uid: string) => WorkloadObject | null;
  /** The same by `refKey`. */
  readonly workload: (key: string) => WorkloadObject | null;
  /** Resolves when all workloads are known. */
  readonly whenReady: Promise<unknown>;
  /** When a meter last watched pods before this one, milliseconds; null if unknown. */
  readonly lastWatchedAt: number | null;
  readonly catalog?: () => CardCatalog;
  readonly audit?: PlacementAudit;
  readonly log: StructuredLog;
  readonly clock: Clock;
}

/** The workload and group that are charged for a pod. */
interface Account {
  readonly workload: string;
  readonly group: string;
  readonly types: Types;
}

interface Deleted {
  /** Its last observed state; null for a pod that was deleted while no meter watched. */
  readonly pod: PodObject | null;
  readonly end: number;
  /** The pod may have run until this time. */
  readonly uncertainUntil?: number;
}

/** The informer of an owner may be later than the informer of pods. */
const OWNER_RETRIES_MS = [500, 2_000, 10_000, 60_000];

/**
 * Charges the hours of pods from their scheduling to their end, from the state in the API server. The ledger keeps an
 * ended pod as long as its object exists, so that a new leader charges exactly the pods that its predecessor missed.
 * Pods of groups without budgets are not charged.
 */
export class UsageMeter {
  readonly #options: UsageMeterOptions;
  readonly #pods: Informer<PodObject>;
  readonly #podByUid = new Map<string, PodObject>();
  /** By pod uid; kept while the pod exists, because its owners may be deleted before it. */
  readonly #accounts = new Map<string, Account>();
  readonly #ownerRetries = new Map<string, number>();
  readonly #queue: ReconcileQueue;
  /** Pods whose start is in the ledger, and whose end is not. */
  readonly #running = new Set<string>();
  /** Pods whose start and end are in the ledger, and whose object exists. */
  readonly #ended = new Set<string>();
  readonly #deleted = new Map<string, Deleted>();
  readonly #claims: ClaimMeter;
  #isCharging = false;
  #stopped = false;

  constructor(options: UsageMeterOptions) {
    this.#options = options;
    const { api, catalog } = options;
    this.#queue = new ReconcileQueue({
      reconcile: (uid) => this.#reconcile(uid),
      failed: (uid, error) =>
        options.log.warn({ err: error, pod: uid }, 'charging the hours of a pod failed; retrying'),
      clock: options.clock,
      log: options.log,
    });
    this.#pods = api.informer({
      path: '/api/v1/pods',
      pageSize: WORKLOADS_PER_PAGE,
      keep: (object) => readPodObject(object, catalog),
    });
    const { engine, workload, lastWatchedAt, clock } = options;
    this.#claims = new ClaimMeter({
      engine,
      workload,
      lastWatchedAt,
      clock,
      execute: (command) => this.#execute(command),
    });
  }

  start(): void {
    this.#pods.onChange(({ before, after }) => {
      const uid = (after ?? before)?.uid ?? '';
      if (after !== null) {
        this.#podByUid.set(uid, after);
        this.#requeueClaims(this.#claims.note(after));
        if (this.#isCharging) this.#audit(after);
      } else {
        this.#options.audit?.forget(uid);
        this.#podByUid.delete(uid);
        const end = before?.endedAt ?? this.#options.clock.now();
        this.#deleted.set(uid, { pod: before, end });
        if (before !== null) this.#requeueClaims(this.#claims.noteDeleted(before, end));
      }
      if (this.#isCharging) this.#queue.put(uid, 0);
    });
    this.#pods.start();
    void this.#startCharging();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#pods.stop();
    await this.#queue.stop();
  }

  /** Reconciles all pods again: their workloads and groups may exist by now. */
  requeueAll(): void {
    if (!this.#isCharging) return;
    for (const uid of this.#podByUid.keys()) this.#queue.put(uid, 0);
    this.#requeueClaims(this.#claims.claims());
  }

  #requeueClaims(claims: Iterable<string>): void {
    if (this.#isCharging) for (const claim of claims) this.#queue.put(claim, 0);
  }

  /** Returns the pods that count for groups now. */
  groupPods(): readonly GroupPod[] {
    return [...this.#podByUid.values()].flatMap((pod): readonly GroupPod[] => {
      const account = pod.endedAt === null ? this.#accountOf(pod) : null;
      if (account === null) return [];
      const { group, types } = account;
      const needs = (): ReturnType<GroupPod['needs']> => pod.needs(types['gpu'] ?? '');
      return [{ uid: pod.uid, group, types, startedAt: pod.startedAt, needs }];
    });
  }

  /** The uids of the pods of each charged workload, by `refKey`, without finished pods. */
  podsOfWorkloads(): ReadonlyMap<string, readonly string[]> {
    const uids = new Map<string, string[]>();
    for (const pod of this.#podByUid.values()) {
      const account = pod.endedAt === null ? this.#accountOf(pod) : null;
      if (account === null) continue;
      const known = uids.get(account.workload);
      if (known === undefined) uids.set(account.workload, [pod.uid]);
      else known.push(pod.uid);
    }
    return uids;
  }

  /** Audits all pods again, after workloads are read with new types. */
  auditAgain(): void {
    if (!this.#isCharging) return;
    for (const pod of this.#podByUid.values()) {
      const before = this.#accounts.get(pod.uid);
      this.#accounts.delete(pod.uid);
      if (this.#accountOf(pod) === null && before !== undefined) this.#accounts.set(pod.uid, before);
      this.#audit(pod);
    }
  }

  #audit(pod: PodObject): void {
    const account = this.#accountOf(pod);
    if (account !== null) this.#options.audit?.audit(pod, account);
  }

  async #startCharging(): Promise<void> {
    const { engine, lastWatchedAt, whenReady, clock } = this.#options;
    await Promise.all([whenReady, this.#pods.whenSynced()]);
    if (this.#stopped) return;
    for (const change of engine.records()) {
      if (change.kind !== 'pod' || change.value === null) continue;
      const { end, isRetained, spans } = change.value;
      if (ClaimMeter.isAbout(change.key)) {
        const start = spans[0]?.at ?? end;
        if (end === Infinity || isRetained === true) this.#claims.load(change.key, { start, end });
        continue;
      }
      if (end === Infinity) this.#running.add(change.key);
      else if (isRetained === true) this.#ended.add(change.key);
      else continue;
      if (this.#podByUid.has(change.key) || this.#deleted.has(change.key)) continue;
      // The pod was deleted while no meter watched: it is charged until the last time a meter watched, and the possible
      // usage since then is reported.
      const uncertainUntil = clock.now();
      const until = Math.min(lastWatchedAt ?? uncertainUntil, uncertainUntil);
      this.#deleted.set(change.key, { pod: null, end: until, uncertainUntil });
    }
    this.#isCharging = true;
    for (const pod of this.#podByUid.values()) this.#audit(pod);
    for (const uid of [...this.#deleted.keys(), ...this.#podByUid.keys()]) this.#queue.put(uid, 0);
    this.#requeueClaims(this.#claims.claims());
  }

  async #reconcile(uid: string): Promise<void> {
    if (ClaimMeter.isAbout(uid)) {
      if (!this.#claims.isKnown(uid)) this.#retryLater(uid);
      return this.#claims.reconcile(uid);
    }
    const deleted = this.#deleted.get(uid);
    if (deleted !== undefined) return this.#close(uid, deleted);
    const pod = this.#podByUid.get(uid);
    if (pod === undefined || pod.startedAt === null || this.#ended.has(uid)) return;
    if (!this.#running.has(uid) && !(await this.#charge(pod))) return;
    if (pod.endedAt === null) return;
    await this.#execute({ type: 'podStopped', pod: uid, end: pod.endedAt, retain: true });
    this.#running.delete(uid);
    this.#ended.add(uid);
  }

  /** Ends the charge of a deleted pod; a pod that was never charged is charged first. */
  async #close(uid: string, { pod, end, uncertainUntil }: Deleted): Promise<void> {
    if (this.#ended.has(uid)) await this.#execute({ type: 'podForgotten', pod: uid });
    else if (this.#running.has(uid) || (pod !== null && pod.startedAt !== null && (await this.#charge(pod))))
      await this.#execute({
        type: 'podStopped',
        pod: uid,
        end,
        uncertainUntil,
      });
    this.#running.delete(uid);
    this.#ended.delete(uid);
    this.#accounts.delete(uid);
    this.#ownerRetries.delete(uid);
    this.#deleted.delete(uid);
  }

  /** Starts to charge a pod; false where no budget counts its hours. */
  async #charge(pod: PodObject): Promise<boolean> {
    const { engine, clock } = this.#options;
    const account = this.#accountOf(pod);
    if (account === null) {
      this.#retryLater(pod.uid);
      return false;
    }
    // A deleted pod is not audited.
    if (this.#podByUid.has(pod.uid)) this.#options.audit?.audit(pod, account);
    if ((engine.status(account.group)?.burnRate.size ?? 0) === 0) return false;
    const gpuType = account.types['gpu'] ?? '';
    const claimed = await claimedBy(this.#options.api, pod, {
      type: gpuType,
      catalog: this.#options.catalog?.() ?? DEFAULT_CATALOG,
    });
    if (!claimed.isComplete && this.#retryLater(pod.uid)) return false;
    if (!claimed.isComplete)
      this.#options.log.warn(
        { namespace: pod.namespace, pod: pod.name },
        'hours of a pod are charged without a claim: neither the claim nor its template is there',
      );
    const needs = pod.needs(gpuType, claimed.amounts);
    if (needs === null) return false;
    const isCharged = await this.#execute({
      type: 'podStarted',
      pod: pod.uid,
      workload: refOfKey(account.workload),
      group: account.group,
      types: account.types,
      since: Math.min(pod.startedAt ?? clock.now(), clock.now()),
      ...needs,
    });
    if (isCharged) this.#running.add(pod.uid);
    return isCharged;
  }

  async #execute(command: Command): Promise<boolean> {
    const decision = await this.#options.engine.execute(command);
    if (decision.code === 'Conflict') throw new Error(decision.message);
    return decision.allowed;
  }

  /**
   * Tries again when the objects that a pod or a claim depends on may have been observed; false after the last attempt.
   */
  #retryLater(uid: string): boolean {
    const attempt = this.#ownerRetries.get(uid) ?? 0;
    const waitMs = OWNER_RETRIES_MS[attempt];
    if (waitMs === undefined || this.#deleted.has(uid)) return false;
    this.#ownerRetries.set(uid, attempt + 1);
    this.#options.clock.after(waitMs, () => this.#queue.put(uid, 0));
    return true;
  }

  /**
   * Finds the charged workload at the end of the chain of controllers. The chain is followed by uid, because a pod can
   * name any owner.
   */
  #accountOf(pod: PodObject): Account | null {
    const known = this.#accounts.get(pod.uid);
    if (known !== undefined) return known;
    let found: WorkloadObject | null = null;
    let uid = pod.ownerUid;
    for (let length = 0; length < MAX_OWNERS; length++) {
      // The outermost charged workload counts.
      const workload = this.#options.workloadOf(uid);
      if (workload !== null && workload.demand !== null) found = workload;
      // Pods own objects that their controllers created: the workers of a LeaderWorkerSet, the executors of a Spark
      // driver.
      const parent = this.#options.ownerOf(uid) ?? this.#podByUid.get(uid)?.ownerUid ?? uid;
      if (parent === uid) break;
      uid = parent;
    }
    if (found === null) return null;
    const account = { workload: found.key, group: found.group, types: found.demand?.types ?? {} };
    this.#accounts.set(pod.uid, account);
    return account;
  }
}
