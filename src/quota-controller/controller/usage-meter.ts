import type { QuotaEngine } from '../../quota/engine.js';
import { refOfKey } from '../../quota/core/workload.js';
import type { CardCatalog } from '../../quota/evaluators/gpu-resources.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import type { ServedKind } from '../kinds.js';
import type { QuotaLog } from '../log.js';
import type { KubeObject } from '../object.js';
import type { WorkloadObject } from '../reconciler/workload-object.js';
import { WorkQueue } from '../reconciler/work-queue.js';
import { readPodObject, type PodObject } from './pod-object.js';

export interface UsageMeterOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly kinds: readonly ServedKind[];
  readonly workloads: () => readonly WorkloadObject[];
  /** When the status of a group was written last, milliseconds; null if never. */
  readonly reportedAt: (group: string) => number | null;
  readonly catalog?: CardCatalog;
  readonly log: QuotaLog;
  readonly now: () => number;
}

interface Link {
  readonly uid: string;
  readonly ownerUid: string;
}

/** Owners of owners of owners: Rollout, ReplicaSet, pod are three. */
const LONGEST_CHAIN = 6;

/**
 * Tells the ledger when pods of charged workloads were scheduled and when they ended, as the API server has it: hours are counted from
 * that, whenever it is told. Pods of groups without budgets are none of its business.
 */
export class UsageMeter {
  readonly #options: UsageMeterOptions;
  readonly #pods: Informer<PodObject>;
  /** By path of the kind. */
  readonly #links = new Map<string, Informer<Link>>();
  readonly #podByUid = new Map<string, PodObject>();
  readonly #ownerOf = new Map<string, string>();
  readonly #queue: WorkQueue;
  /** Pods of which the start was told and not the end. */
  readonly #running = new Set<string>();
  readonly #goneAt = new Map<string, number>();
  #begun = false;
  #stopped = false;

  constructor(options: UsageMeterOptions) {
    this.#options = options;
    const { api, kinds, catalog } = options;
    this.#queue = new WorkQueue(
      (uid) => this.#reconcile(uid),
      (uid, error) => options.log.warn({ err: error, pod: uid }, 'hours of a pod could not be booked; trying again'),
    );
    this.#pods = api.informer({ path: '/api/v1/pods', keep: (object) => readPodObject(object, catalog) });
    this.#link(kinds);
  }

  start(): void {
    this.#pods.onChange(({ before, after }) => {
      const uid = (after ?? before)?.uid ?? '';
      if (after !== null) this.#podByUid.set(uid, after);
      else {
        this.#podByUid.delete(uid);
        if (this.#running.has(uid)) this.#goneAt.set(uid, before?.endedAt ?? this.#options.now());
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
      .filter(({ resource, path }) => resource !== 'pods' && !this.#links.has(path))
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

  /** Looks at all pods again: workloads and groups may have come since. */
  again(): void {
    if (!this.#begun) return;
    for (const uid of this.#podByUid.keys()) this.#queue.put(uid, 0);
  }

  async #begin(): Promise<void> {
    // Kinds may come and go meanwhile.
    while (!this.#stopped && !this.#followed().every(({ synced }) => synced))
      await Promise.all(this.#followed().map((informer) => informer.whenSynced()));
    if (this.#stopped) return;
    const { engine, reportedAt, now } = this.#options;
    for (const change of engine.records()) {
      if (change.kind !== 'pod' || change.value === null || change.value.end !== Infinity) continue;
      this.#running.add(change.key);
      // Nobody saw it go: it counts until the group was looked at last.
      if (!this.#podByUid.has(change.key)) this.#goneAt.set(change.key, reportedAt(change.group) ?? now());
    }
    this.#begun = true;
    for (const uid of [...this.#goneAt.keys(), ...this.#podByUid.keys()]) this.#queue.put(uid, 0);
  }

  async #reconcile(uid: string): Promise<void> {
    const { engine } = this.#options;
    const goneAt = this.#goneAt.get(uid);
    if (goneAt !== undefined) {
      await engine.execute({ type: 'podStopped', pod: uid, end: goneAt });
      this.#goneAt.delete(uid);
      this.#running.delete(uid);
      return;
    }
    const pod = this.#podByUid.get(uid);
    if (pod === undefined || pod.startedAt === null) return;
    const isTold = this.#running.has(uid);
    if (!isTold && (pod.endedAt !== null || !(await this.#begins(pod)))) return;
    if (pod.endedAt === null) return;
    await engine.execute({ type: 'podStopped', pod: uid, end: pod.endedAt });
    this.#running.delete(uid);
  }

  /** False where its hours are nobody's. */
  async #begins(pod: PodObject): Promise<boolean> {
    const { engine, now } = this.#options;
    const workload = this.#workloadOf(pod);
    if (workload === null || (engine.status(workload.group)?.burnRate.size ?? 0) === 0) return false;
    const types = workload.demand?.types ?? {};
    const needs = pod.needs(types['gpu'] ?? '');
    if (needs === null) return false;
    const since = Math.min(pod.startedAt ?? now(), now());
    const decision = await engine.execute({
      type: 'podStarted',
      pod: pod.uid,
      workload: refOfKey(workload.key),
      group: workload.group,
      types,
      since,
      ...needs,
    });
    if (decision.code === 'Conflict') throw new Error(decision.message);
    if (decision.allowed) this.#running.add(pod.uid);
    return decision.allowed;
  }

  /** The charged workload at the end of the chain of controllers, followed by uid: names can be made up. */
  #workloadOf(pod: PodObject): WorkloadObject | null {
    const byUid = new Map(
      this.#options
        .workloads()
        .filter(({ demand }) => demand !== null)
        .map((workload) => [workload.uid, workload]),
    );
    let found: WorkloadObject | null = null;
    let uid = pod.ownerUid;
    for (let length = 0; length < LONGEST_CHAIN; length++) {
      // The outermost that is charged.
      found = byUid.get(uid) ?? found;
      const above = this.#ownerOf.get(uid) ?? uid;
      if (above === uid) break;
      uid = above;
    }
    return found;
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
