import type { QuotaEngine } from '../../quota/internal.js';
import { MERGE_PATCH } from '../../kube/client.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import { conditionOf, type Condition } from '../../kube/condition.js';
import type { EventRecorder } from '../../kube/events.js';
import type { Quantities } from '../../manifests/quantities.js';
import { GROUP_FINALIZER, type GroupObject, type GroupObjectStatus } from '../../kube/quota/group-object.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { Reconciler } from '../reconciler/reconciler.js';
import type { Clock } from '../../host/clock.js';
import { Rounds } from '../../host/rounds.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import { GROUP_KIND, API_VERSION, GROUPS_PATH, itemPath } from '../../kube/quota/names.js';
import type { KubeStore } from '../store/kube-store.js';
import type { ClusterFacts } from '../policy/cluster-facts.js';
import type { QuotaPolicy } from '../policy/policy-object.js';
import { reportPolicy } from '../policy/policy-report.js';
import { podsBeyondQuota } from './beyond-quota.js';
import { BorrowedHoursMeter } from './borrowed-hours.js';
import { PlacementAudit } from './placement-audit.js';
import { nodeLimitsOf } from './node-limits.js';
import { UsageMeter } from './usage-meter.js';
import { ReportPace } from './report-pace.js';
import { groupReport, isWorthWriting, levelOf, nextLevelOf } from './group-report.js';

export interface ControllerOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly store: KubeStore;
  readonly reconciler: Reconciler;
  readonly facts: ClusterFacts;
  /** The policy with which the engine was created. */
  readonly started: QuotaPolicy;
  /** When another replica was last the leader, milliseconds; null if none was. */
  readonly lastLedAt: number | null;
  readonly events: EventRecorder;
  readonly log: StructuredLog;
  readonly clock: Clock;
  /** Called after each refresh with the number of counters that differed from the sum of the workloads. */
  readonly refreshed: (drift: number) => void;
  readonly refreshMs?: number;
  readonly reportDelayMs?: number;
}

/** Between two writes of the status of a group that keeps changing. */
const LONGEST_REPORT_MS = 3_000;

/** The longest wait of one timer: Node's timers are limited to 2^31 ms. */
const MAX_TIMEOUT_MS = 86_400_000;

/**
 * The leader's part of the quota controller: writes group status, meters the hours of pods, keeps the finalizer of
 * groups that are still in use, and refreshes everything every few minutes. It can rebuild all its state from the API
 * server.
 */
export class Controller {
  readonly #options: Required<ControllerOptions>;
  readonly #usageMeter: UsageMeter;
  readonly #audit: PlacementAudit;
  readonly #borrowed = new BorrowedHoursMeter();
  readonly #queue: ReconcileQueue;
  readonly #pace: ReportPace;
  #unsubscribe: () => void = () => undefined;
  readonly #refreshes: Rounds;
  /**
   * By group: cancels the timer for the next level of a budget, or for a limit that follows nodes. Time alone reaches
   * both, without an event.
   */
  readonly #levels = new Map<string, () => void>();
  #endTicks: () => void = () => undefined;
  /** Groups without an object that an event has told of. */
  readonly #announced = new Set<string>();
  #stopped = false;

  constructor(options: ControllerOptions) {
    this.#options = { refreshMs: 300_000, reportDelayMs: 300, ...options };
    const { api, engine, reconciler, log, clock } = options;
    this.#pace = new ReportPace(this.#options.reportDelayMs, LONGEST_REPORT_MS);
    this.#queue = new ReconcileQueue({
      reconcile: (name) => this.#reconcile(name),
      failed: (name, error) => log.warn({ err: error, group: name }, 'writing the status of a group failed; retrying'),
      clock,
      log,
    });
    // With jitter, so that controllers of many clusters, and restarts, do not refresh at the same time.
    const betweenMs = (): number => this.#options.refreshMs * (0.9 + Math.random() * 0.2);
    this.#refreshes = new Rounds(clock, betweenMs, () => this.#refreshAll());
    const { facts } = options;
    this.#audit = new PlacementAudit({
      policy: () => facts.policy,
      labelsOf: (node) => facts.node(node)?.labels ?? null,
      limits: (group, type) => [...(engine.status(group)?.hard.keys() ?? [])].some((key) => key.endsWith(`.${type}`)),
      found: (group) => this.#putReport(group),
    });
    this.#usageMeter = new UsageMeter({
      audit: this.#audit,
      catalog: () => facts.policy.catalog,
      api,
      engine,
      log,
      clock,
      ownerOf: (uid) => reconciler.ownerOf(uid),
      workloadOf: (uid) => reconciler.workloadOf(uid),
      workload: (key) => reconciler.workload(key),
      whenReady: reconciler.whenSynced(),
      lastWatchedAt: options.lastLedAt,
    });
  }

  start(): void {
    const { reconciler, clock, engine, log } = this.#options;
    this.#unsubscribe = reconciler.onChange((name) => {
      this.#putReport(name);
      const parent = reconciler.group(name)?.spec.parent ?? '';
      if (parent !== '') this.#putReport(parent);
      this.#announceWithoutObject(name);
    });
    for (const name of reconciler.groupsWithoutObject().keys()) this.#announceWithoutObject(name);
    this.#usageMeter.start();
    for (const { spec } of reconciler.groups()) this.#queue.put(spec.name, 0);
    this.#endTicks = clock.every(
      1000,
      () =>
        void engine
          .execute({ type: 'tick' })
          .catch((error: unknown) => log.warn({ err: error }, 'advancing the time of the engine failed; retrying')),
    );
    this.#refreshes.start();
    void this.#reportPolicy();
  }

  /** Records an event for a group of the ledger that the API server does not have. */
  #announceWithoutObject(name: string): void {
    const { reconciler, events } = this.#options;
    const problem = reconciler.groupsWithoutObject().get(name);
    if (problem === undefined) return void this.#announced.delete(name);
    if (this.#announced.has(name)) return;
    this.#announced.add(name);
    const message = `the ledger has group ${name}, and the API server has no such object; it ends with its workloads: ${problem}`;
    events.record(
      { apiVersion: API_VERSION, kind: GROUP_KIND, namespace: '', name, uid: '' },
      { type: 'Warning', reason: 'GroupWithoutObject', message },
    );
  }

  /** Children of a group in the ledger that the API server does not have. */
  #childrenWithoutObject(parent: string): readonly string[] {
    const { reconciler, engine } = this.#options;
    return [...reconciler.groupsWithoutObject().keys()].filter((name) => engine.status(name)?.parent === parent);
  }

  /** Rereads workloads after a change of the policy or of cluster facts. */
  factsChanged(): void {
    this.#usageMeter.auditAgain();
    for (const { spec } of this.#options.reconciler.groups()) this.#putReport(spec.name);
    void this.#reportPolicy();
  }

  #putReport(group: string): void {
    const { reconciler, reportDelayMs, clock } = this.#options;
    // A deleted group waits for its finalizer only.
    const isEnding = reconciler.group(group)?.terminating === true;
    this.#queue.put(group, isEnding ? reportDelayMs : this.#pace.delayMs(group, clock.now()));
  }

  /** Uids of pods beyond the quota of their groups. */
  podsBeyondQuota(): ReadonlySet<string> {
    const { engine, started } = this.#options;
    return podsBeyondQuota(this.#usageMeter.groupPods(), (name) => engine.status(name), started.families);
  }

  /** The uids of the pods of each charged workload, by `refKey`. */
  podsOfWorkloads(): ReadonlyMap<string, readonly string[]> {
    return this.#usageMeter.podsOfWorkloads();
  }

  /** Hours that a group had beyond its guaranteed part, by key; undefined where the policy has no half-life. */
  borrowedHours(group: string): Quantities | undefined {
    return this.#options.facts.policy.borrowedHoursHalfLifeMs === null ? undefined : this.#borrowed.of(group);
  }

  async #reportPolicy(): Promise<void> {
    const { api, facts, started, clock, log } = this.#options;
    const { policyObject } = facts;
    if (policyObject === null) return;
    await reportPolicy(api, policyObject, started, clock.now()).catch((error: unknown) =>
      log.warn({ err: error }, 'writing the status of the quota policy failed; the next refresh tries again'),
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    this.#endTicks();
    for (const end of this.#levels.values()) end();
    await Promise.all([this.#usageMeter.stop(), this.#queue.stop(), this.#refreshes.stop()]);
  }

  async #refreshAll(): Promise<void> {
    const { engine, store, reconciler, log, clock, refreshed } = this.#options;
    try {
      if (!(await reconciler.compare(() => !this.#stopped))) return;
      const { drift, workloads } = engine.refresh();
      refreshed(drift.length);
      if (drift.length > 0)
        log.error(
          { drift: drift.map(({ group, key }) => `${group} ${key}`) },
          'counters differed from the sum of the workloads; corrected',
        );
      log.info({ workloads, drift: drift.length }, 'refresh finished');
      this.#usageMeter.requeueAll();
      await this.#reportPolicy();
      for (const { spec } of reconciler.groups()) this.#queue.put(spec.name, 0);
      await store.sweep(clock.now());
    } catch (error) {
      log.warn({ err: error }, 'refresh failed; retrying at the next period');
    }
  }

  async #reconcile(name: string): Promise<void> {
    const object = this.#options.reconciler.group(name);
    if (object === null) {
      this.#borrowed.forget(name);
      return this.#pace.forget(name);
    }
    if (object.terminating) return this.#release(object);
    if (!object.finalizers.includes(GROUP_FINALIZER)) {
      await this.#patch(itemPath(GROUPS_PATH, name), {
        metadata: { resourceVersion: object.resourceVersion, finalizers: [...object.finalizers, GROUP_FINALIZER] },
      });
    }
    await this.#report(object);
  }

  /** Removes the finalizer once the group is deleted from the ledger. */
  async #release(object: GroupObject): Promise<void> {
    const { engine } = this.#options;
    const { name } = object.spec;
    if (!object.finalizers.includes(GROUP_FINALIZER)) return;
    const decision = engine.status(name) === null ? null : await engine.deleteGroup(name, { force: object.force });
    if (decision !== null && !decision.allowed && decision.code !== 'GroupNotFound') {
      await this.#report(object, decision.message);
      return;
    }
    await this.#patch(itemPath(GROUPS_PATH, name), {
      metadata: {
        resourceVersion: object.resourceVersion,
        finalizers: object.finalizers.filter((finalizer) => finalizer !== GROUP_FINALIZER),
      },
    });
  }

  async #report(object: GroupObject, problem: string | null = null): Promise<void> {
    const { engine, reconciler, clock, refreshMs, facts } = this.#options;
    const now = clock.now();
    const { name } = object.spec;
    const known = engine.status(name);
    const { limits, nextAt } = nodeLimitsOf(object.fromNodes, facts.nodes(), object.status.nodeLimits ?? {}, now);
    const times = [nextLevelOf(known), nextAt].flatMap((at) => at ?? []);
    this.#awaitLevel(name, times.length === 0 ? null : Math.min(...times), now);
    const before = object.status;
    const report = groupReport(object, known, problem ?? reconciler.problemOf(name), now, {
      misplaced: this.#audit.misplaced(name),
      ledgerBytes: this.#options.store.sizeOf(name)?.objectBytes ?? 0,
      withoutObject: this.#childrenWithoutObject(name),
      unchargedGpus: engine.unchargedGpus(name),
    });
    const { borrowedHoursHalfLifeMs: halfLifeMs } = facts.policy;
    if (halfLifeMs === null) this.#borrowed.forget(name);
    else if (known !== null) this.#borrowed.count(known, before.borrowedHours, halfLifeMs, now);
    const borrowedHours = this.#borrowed.written(name);
    const { nodeLimits: _limits, borrowedHours: _hours, ...rest } = report;
    const after = {
      ...rest,
      ...(object.fromNodes.length === 0 ? {} : { nodeLimits: limits }),
      ...(borrowedHours === undefined ? {} : { borrowedHours }),
    };
    if (!isWorthWriting(before, after, refreshMs, now)) return;
    await this.#patch(`${itemPath(GROUPS_PATH, name)}/status`, { status: withRemovals(before, after) });
    this.#pace.reported(name, clock.now());
    this.#recordEvents(object, before, after, levelOf(known));
  }

  /** Reports a group again when time reaches the next level of a budget, or a limit shrinks. */
  #awaitLevel(name: string, at: number | null, now: number): void {
    this.#levels.get(name)?.();
    this.#levels.delete(name);
    if (at === null) return;
    const wait = (): void => {
      this.#levels.delete(name);
      this.#queue.put(name, 0);
    };
    this.#levels.set(name, this.#options.clock.after(Math.min(Math.max(at - now, 0) + 1, MAX_TIMEOUT_MS), wait));
  }

  /** Records an event for each budget level passed since the last report; the old status holds the last level. */
  #recordEvents(
    { spec: { name }, uid }: GroupObject,
    before: GroupObjectStatus,
    after: GroupObjectStatus,
    level: number,
  ): void {
    const record = (reason: string, message: string): void =>
      this.#options.events.record(
        { apiVersion: API_VERSION, kind: GROUP_KIND, namespace: '', name, uid },
        { type: 'Warning', reason, message },
      );
    const low = conditionOf(before.conditions, 'CashLow');
    const last = Number((low?.status === 'True' && /^Used(\d+)Percent$/.exec(low.reason)?.[1]) || 0);
    if (level > last)
      record(
        `Cash${level}Percent`,
        `${level}% of a budget is used: ${conditionOf(after.conditions, 'CashLow')?.message ?? ''}`,
      );
    const newlyTrue = (type: string): Condition | null => {
      const condition = conditionOf(after.conditions, type);
      const isNew = conditionOf(before.conditions, type)?.status !== 'True';
      return condition?.status === 'True' && isNew ? condition : null;
    };
    const misplaced = newlyTrue('Misplaced');
    if (misplaced !== null) record('Misplaced', misplaced.message);
    const refused = conditionOf(after.conditions, 'GrantRefused');
    if (refused?.status === 'True' && conditionOf(before.conditions, 'GrantRefused')?.message !== refused.message)
      record('GrantRefused', refused.message);
    const uncharged = newlyTrue('GpusNotCharged');
    if (uncharged !== null) record('GpusNotCharged', uncharged.message);
    const over = newlyTrue('OverQuota');
    if (over !== null) record('OverQuota', `usage exceeds the group's quota: ${over.message}`);
  }

  async #patch(path: string, body: unknown): Promise<void> {
    const answer = await this.#options.api.request({ method: 'PATCH', path, body, contentType: MERGE_PATCH });
    // After a deletion or a conflict the watch delivers the new state, and the object is reconciled again.
    if (!answer.ok && answer.code !== 'not-found' && answer.code !== 'conflict') throw new Error(answer.message);
  }
}

/** Adds nulls for removed fields: a merge patch deletes a field only if it names the field. */
function withRemovals(before: object, after: object): unknown {
  const patch: Record<string, unknown> = { ...after };
  for (const [key, old] of Object.entries(before)) {
    const next = (after as Readonly<Record<string, unknown>>)[key];
    if (next === undefined) patch[key] = null;
    else if (isMap(old) && isMap(next)) patch[key] = withRemovals(old, next);
  }
  return patch;
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
