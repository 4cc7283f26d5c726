import type { QuotaEngine } from '../../quota/engine.js';
import type { Command } from '../../quota/core/command.js';
import type { Types } from '../../quota/core/type-family.js';
import { refOfKey } from '../../quota/core/workload.js';
import type { CardCatalog } from '../../quota/evaluators/gpu-resources.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import type { ServedKind } from '../kinds.js';
import type { QuotaLog } from '../log.js';
import type { KubeObject } from '../object.js';
import type { WorkloadObject } from '../reconciler/workload-object.js';
import type { Clock } from '../../host/clock.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import type { PlacementAudit } from './placement-audit.js';
import { readPodObject, type PodObject } from './pod-object.js';

export interface UsageMeterOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly kinds: readonly ServedKind[];
  /** The workload with that uid, null where there is none that names a group. */
  readonly workloadOf: (uid: string) => WorkloadObject | null;
  /** Resolves when all workloads are known. */
  readonly whenReady: Promise<unknown>;
  /** When somebody followed pods last before this meter began, milliseconds; null if that is not known. */
  readonly followedUntil: number | null;
  readonly catalog?: () => CardCatalog;
  /** Compares declared types with nodes. */
  readonly audit?: PlacementAudit;
  readonly log: QuotaLog;
  readonly clock: Clock;
}

interface Link {
  readonly uid: string;
  readonly ownerUid: string;
}

/** Whose hours a pod uses. */
interface Account {
  readonly workload: string;
  readonly group: string;
  readonly types: Types;
}

/** A pod that was deleted. */
interface Deleted {
  /** As it was seen last; null of one that was deleted while nobody followed. */
  readonly pod: PodObject | null;
  readonly end: number;
  /** It may have run until then. */
  readonly uncertainUntil?: number;
}

/** Owners of owners of owners: Rollout, ReplicaSet, pod are three. */
const LONGEST_CHAIN = 8;
/** The objects of an owner may be seen later than the pod. */
const OWNER_RETRIES_MS = [500, 2_000, 10_000, 60_000];

/**
 * Charges the hours of pods from what the API server holds: from their scheduling to their end, whenever that is seen.
 * A pod that ended is remembered in the ledger as long as its object exists, so that a new leader charges exactly the
 * pods that its predecessor missed. Pods of groups without budgets are not followed.
 */
export class UsageMeter {
  readonly #options: UsageMeterOptions;
  readonly #pods: Informer<PodObject>;
  /** By path of the kind. */
  readonly #links = new Map<string, Informer<Link>>();
  readonly #podByUid = new Map<string, PodObject>();
  readonly #ownerOf = new Map<string, string>();
  /** By uid of the pod; kept while its object exists, since its owners may be deleted before it. */
  readonly #accounts = new Map<string, Account>();
  readonly #ownerRetries = new Map<string, number>();
  readonly #queue: ReconcileQueue;
  /** Pods of which the ledger has the start and not the end. */
  readonly #running = new Set<string>();
  /** Pods of which the ledger has both, and whose object exists. */
  readonly #ended = new Set<string>();
  readonly #deleted = new Map<string, Deleted>();
  #begun = false;
  #stopped = false;

  constructor(options: UsageMeterOptions) {
    this.#options = options;
    const { api, kinds, catalog } = options;
    this.#queue = new ReconcileQueue({
      reconcile: (uid) => this.#reconcile(uid),
      failed: (uid, error) =>
        options.log.warn({ err: error, pod: uid }, 'charging the hours of a pod failed; retrying'),
      clock: options.clock,
      log: options.log,
    });
    this.#pods = api.informer({ path: '/api/v1/pods', keep: (object) => readPodObject(object, catalog) });
    this.#link(kinds);
  }

  start(): void {
    this.#pods.onChange(({ before, after }) => {
      const uid = (after ?? before)?.uid ?? '';
      if (after !== null) {
        this.#podByUid.set(uid, after);
        if (this.#begun) this.#judge(after);
      } else {
        this.#options.audit?.forget(uid);
        this.#podByUid.delete(uid);
        this.#deleted.set(uid, { pod: before, end: before?.endedAt ?? this.#options.clock.now() });
      }
      if (this.#begun) this.#queue.put(uid, 0);
    });
    for (const followed of this.#followed()) followed.start();
    void this.#begin();
  }

  /** The API server has these kinds now. */
  serve(kinds: readonly ServedKind[]): void {
    if (this.#stopped) return;
    for (const links of this.#link(kinds)) links.start();
    for (const [path, links] of this.#links) {
      if (kinds.some((kind) => kind.path === path)) continue;
      this.#links.delete(path);
      for (const { uid } of links.values()) this.#ownerOf.delete(uid);
      void links.stop();
    }
  }

  /** Prepares to follow the owners of kinds that are not followed yet. */
  #link(kinds: readonly ServedKind[]): readonly Informer<Link>[] {
    return kinds
      .filter(
        ({ resource, path, evaluator }) =>
          resource !== 'pods' && evaluator.amounts === undefined && !this.#links.has(path),
      )
      .map(({ path }) => {
        const links = this.#options.api.informer({ path, keep: readLink });
        links.onChange(({ before, after }) => {
          if (after !== null) this.#ownerOf.set(after.uid, after.ownerUid);
          else if (before !== null) this.#ownerOf.delete(before.uid);
        });
        this.#links.set(path, links);
        return links;
      });
  }

  #followed(): readonly Informer<unknown>[] {
    return [this.#pods, ...this.#links.values()];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#followed().map((followed) => followed.stop()));
    await this.#queue.stop();
  }

  /** Reconciles all pods again: workloads and groups may have come since. */
  again(): void {
    if (!this.#begun) return;
    for (const uid of this.#podByUid.keys()) this.#queue.put(uid, 0);
  }

  /** Workloads are read differently now: the types of running pods are compared with their nodes anew. */
  rejudge(): void {
    if (!this.#begun) return;
    for (const pod of this.#podByUid.values()) {
      const before = this.#accounts.get(pod.uid);
      this.#accounts.delete(pod.uid);
      if (this.#accountOf(pod) === null && before !== undefined) this.#accounts.set(pod.uid, before);
      this.#judge(pod);
    }
  }

  #judge(pod: PodObject): void {
    const account = this.#accountOf(pod);
    if (account !== null) this.#options.audit?.judge(pod, account);
  }

  async #begin(): Promise<void> {
    const { engine, followedUntil, whenReady, clock } = this.#options;
    await whenReady;
    // Kinds may come and go meanwhile.
    while (!this.#stopped && !this.#followed().every(({ synced }) => synced))
      await Promise.all(this.#followed().map((informer) => informer.whenSynced()));
    if (this.#stopped) return;
    for (const change of engine.records()) {
      if (change.kind !== 'pod' || change.value === null) continue;
      const { end, isRetained } = change.value;
      if (end === Infinity) this.#running.add(change.key);
      else if (isRetained === true) this.#ended.add(change.key);
      else continue;
      if (this.#podByUid.has(change.key) || this.#deleted.has(change.key)) continue;
      // It was deleted while nobody followed: it counts until somebody did last, and what it may have used since is
      // reported.
      const uncertainUntil = clock.now();
      const until = Math.min(followedUntil ?? uncertainUntil, uncertainUntil);
      this.#deleted.set(change.key, { pod: null, end: until, uncertainUntil });
    }
    this.#begun = true;
    for (const pod of this.#podByUid.values()) this.#judge(pod);
    for (const uid of [...this.#deleted.keys(), ...this.#podByUid.keys()]) this.#queue.put(uid, 0);
  }

  async #reconcile(uid: string): Promise<void> {
    const deleted = this.#deleted.get(uid);
    if (deleted !== undefined) return this.#close(uid, deleted);
    const pod = this.#podByUid.get(uid);
    if (pod === undefined || pod.startedAt === null || this.#ended.has(uid)) return;
    if (!this.#running.has(uid) && !(await this.#charge(pod))) return;
    if (pod.endedAt === null) return;
    await this.#tell({ type: 'podStopped', pod: uid, end: pod.endedAt, retain: true });
    this.#running.delete(uid);
    this.#ended.add(uid);
  }

  /** Ends the account of a pod whose object is gone; of one that was never charged, after charging it. */
  async #close(uid: string, { pod, end, uncertainUntil }: Deleted): Promise<void> {
    if (this.#ended.has(uid)) await this.#tell({ type: 'podForgotten', pod: uid });
    else if (this.#running.has(uid) || (pod !== null && pod.startedAt !== null && (await this.#charge(pod))))
      await this.#tell({
        type: 'podStopped',
        pod: uid,
        end,
        ...(uncertainUntil === undefined ? {} : { uncertainUntil }),
      });
    this.#running.delete(uid);
    this.#ended.delete(uid);
    this.#accounts.delete(uid);
    this.#ownerRetries.delete(uid);
    this.#deleted.delete(uid);
  }

  /** Starts to charge a pod. False where its hours are on no budget. */
  async #charge(pod: PodObject): Promise<boolean> {
    const { engine, clock } = this.#options;
    const account = this.#accountOf(pod);
    if (account === null) {
      this.#waitForOwner(pod);
      return false;
    }
    // One that is closed is gone already.
    if (this.#podByUid.has(pod.uid)) this.#options.audit?.judge(pod, account);
    if ((engine.status(account.group)?.burnRate.size ?? 0) === 0) return false;
    const needs = pod.needs(account.types['gpu'] ?? '');
    if (needs === null) return false;
    const isCharged = await this.#tell({
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

  async #tell(command: Command): Promise<boolean> {
    const decision = await this.#options.engine.execute(command);
    if (decision.code === 'Conflict') throw new Error(decision.message);
    return decision.allowed;
  }

  #waitForOwner({ uid }: PodObject): void {
    const attempt = this.#ownerRetries.get(uid) ?? 0;
    const waitMs = OWNER_RETRIES_MS[attempt];
    if (waitMs === undefined || this.#deleted.has(uid)) return;
    this.#ownerRetries.set(uid, attempt + 1);
    this.#options.clock.after(waitMs, () => this.#queue.put(uid, 0));
  }

  /** The charged workload at the end of the chain of controllers, followed by uid: names can be made up. */
  #accountOf(pod: PodObject): Account | null {
    const known = this.#accounts.get(pod.uid);
    if (known !== undefined) return known;
    let found: WorkloadObject | null = null;
    let uid = pod.ownerUid;
    for (let length = 0; length < LONGEST_CHAIN; length++) {
      // The outermost that is charged.
      const workload = this.#options.workloadOf(uid);
      if (workload !== null && workload.demand !== null) found = workload;
      // Pods own what their controllers made for them: the workers of a LeaderWorkerSet, the executors of a Spark
      // driver.
      const above = this.#ownerOf.get(uid) ?? this.#podByUid.get(uid)?.ownerUid ?? uid;
      if (above === uid) break;
      uid = above;
    }
    if (found === null) return null;
    const account = { workload: found.key, group: found.group, types: found.demand?.types ?? {} };
    this.#accounts.set(pod.uid, account);
    return account;
  }
}

function readLink(object: unknown): Link | null {
  const { metadata } = object as KubeObject;
  if (metadata?.uid === undefined) return null;
  return {
    uid: metadata.uid,
    ownerUid: metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? metadata.uid,
  };
}
