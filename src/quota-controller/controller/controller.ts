import type { QuotaEngine } from '../../quota/engine.js';
import { CONFLICT, MERGE_PATCH, NOT_FOUND, type WatchableApi } from '../api.js';
import { Events } from '../events.js';
import { GROUP_FINALIZER, type GroupObject, type GroupObjectStatus } from '../group-object.js';
import type { ServedKind } from '../kinds.js';
import type { QuotaLog } from '../log.js';
import type { Mirror } from '../mirror/mirror.js';
import { SightingQueue } from '../mirror/sighting-queue.js';
import { GROUP_KIND, API_VERSION, GROUPS_PATH, itemPath } from '../names.js';
import type { KubeStore } from '../store/kube-store.js';
import { Cash } from './cash.js';
import { groupReport, isNews, levelOf } from './group-report.js';

export interface ControllerOptions {
  readonly api: WatchableApi;
  readonly engine: QuotaEngine;
  readonly store: KubeStore;
  readonly mirror: Mirror;
  readonly kinds: readonly ServedKind[];
  readonly log: QuotaLog;
  readonly now: () => number;
  /** Told what a refresh found: how many counters were not what the workloads add up to. */
  readonly refreshed: (drift: number) => void;
  readonly refreshMs?: number;
  readonly reportDelayMs?: number;
}

/**
 * What one replica does for all: reports the use of groups in their status, counts the hours of pods, holds groups until nothing hangs on
 * them any more, and looks at everything again every few minutes. Nothing it knows is only in memory.
 */
export class Controller {
  readonly #options: Required<ControllerOptions>;
  readonly #cash: Cash;
  readonly #events: Events;
  readonly #queue: SightingQueue;
  #ignore: () => void = () => undefined;
  #refresh: NodeJS.Timeout | null = null;
  #tick: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: ControllerOptions) {
    this.#options = { refreshMs: 300_000, reportDelayMs: 300, ...options };
    const { api, engine, kinds, mirror, log, now } = options;
    this.#events = new Events(api, log, now);
    this.#queue = new SightingQueue(
      (name) => this.#attend(name),
      (name, error) => log.warn({ err: error, group: name }, 'a group could not be reported; trying again'),
    );
    this.#cash = new Cash({
      api,
      engine,
      kinds,
      log,
      now,
      workloads: () => mirror.workloads(),
      reportedAt: (name) => {
        const at = Date.parse(mirror.group(name)?.status.lastReconcileTime ?? '');
        return Number.isFinite(at) ? at : null;
      },
    });
  }

  start(): void {
    const { mirror, reportDelayMs } = this.#options;
    this.#ignore = mirror.onChange((name) => {
      this.#queue.put(name, reportDelayMs);
      const parent = mirror.group(name)?.spec.parent ?? '';
      if (parent !== '') this.#queue.put(parent, reportDelayMs);
    });
    this.#cash.start();
    for (const { spec } of mirror.groups()) this.#queue.put(spec.name, 0);
    this.#tick = setInterval(
      () =>
        void this.#options.engine
          .execute({ type: 'tick' })
          .catch((error: unknown) => this.#options.log.warn({ err: error }, 'time could not be told')),
      1000,
    ).unref();
    this.#schedule();
  }

  /** The API server has these kinds now. */
  serve(kinds: readonly ServedKind[]): void {
    this.#cash.serve(kinds);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ignore();
    if (this.#refresh !== null) clearTimeout(this.#refresh);
    if (this.#tick !== null) clearInterval(this.#tick);
    await Promise.all([this.#cash.stop(), this.#queue.stop(), this.#working]);
  }

  #schedule(): void {
    // Apart from each other, so that controllers of many clusters, and restarts, do not beat in time.
    const afterMs = this.#options.refreshMs * (0.9 + Math.random() * 0.2);
    this.#refresh = setTimeout(() => {
      this.#working = this.#lookAgain().finally(() => {
        if (!this.#stopped) this.#schedule();
      });
    }, afterMs).unref();
  }

  async #lookAgain(): Promise<void> {
    const { engine, store, mirror, log, now, refreshed } = this.#options;
    try {
      await mirror.compare();
      const { drift, workloads } = engine.refresh();
      refreshed(drift.length);
      if (drift.length > 0)
        log.error(
          { drift: drift.map(({ group, key }) => `${group} ${key}`) },
          'counters were not what the workloads add up to',
        );
      log.info({ workloads, drift: drift.length }, 'everything was looked at again');
      this.#cash.again();
      for (const { spec } of mirror.groups()) this.#queue.put(spec.name, 0);
      await store.sweep(now());
    } catch (error) {
      log.warn({ err: error }, 'a refresh failed; the next one is tried in time');
    }
  }

  async #attend(name: string): Promise<void> {
    const object = this.#options.mirror.group(name);
    if (object === null) return;
    if (object.terminating) return this.#release(object);
    if (!object.finalizers.includes(GROUP_FINALIZER)) {
      await this.#patch(itemPath(GROUPS_PATH, name), {
        metadata: { resourceVersion: object.resourceVersion, finalizers: [...object.finalizers, GROUP_FINALIZER] },
      });
    }
    await this.#report(object);
  }

  /** Lets a group go when the books have let it go. */
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

  async #report(object: GroupObject, held: string | null = null): Promise<void> {
    const { engine, mirror, now, refreshMs } = this.#options;
    const { name } = object.spec;
    const known = engine.status(name);
    const before = object.status;
    const after = groupReport(object, known, held ?? mirror.problemOf(name), now());
    if (!isNews(before, after, refreshMs, now())) return;
    await this.#patch(`${itemPath(GROUPS_PATH, name)}/status`, { status: withRemovals(before, after) });
    await this.#announce(object, before, after, levelOf(known));
  }

  /** An event where a budget has passed a level since the last report: the status says which that was. */
  async #announce(
    { spec: { name }, uid }: GroupObject,
    before: GroupObjectStatus,
    after: GroupObjectStatus,
    level: number,
  ): Promise<void> {
    const condition = (status: GroupObjectStatus, type: string) =>
      status.conditions?.find((each) => each.type === type);
    const last = Number(
      /^Used(\d+)Percent$/.exec(
        condition(before, 'CashLow')?.status === 'True' ? (condition(before, 'CashLow')?.reason ?? '') : '',
      )?.[1] ?? 0,
    );
    if (level > last)
      await this.#event(
        name,
        uid,
        `Cash${level}Percent`,
        `${level}% of a budget is used: ${condition(after, 'CashLow')?.message ?? ''}`,
      );
    const over = condition(after, 'OverQuota');
    if (over?.status === 'True' && condition(before, 'OverQuota')?.status !== 'True')
      await this.#event(name, uid, 'OverQuota', `more is used than the group has: ${over.message}`);
  }

  #event(name: string, uid: string, reason: string, message: string): Promise<void> {
    return this.#events.write(
      { apiVersion: API_VERSION, kind: GROUP_KIND, name, uid },
      { type: 'Warning', reason, message },
    );
  }

  async #patch(path: string, body: unknown): Promise<void> {
    const answer = await this.#options.api.request({ method: 'PATCH', path, body, contentType: MERGE_PATCH });
    // Gone, or changed meanwhile: the watch tells, and it is looked at again.
    if (!answer.ok && answer.code !== NOT_FOUND && answer.code !== CONFLICT) throw new Error(answer.message);
  }
}

/** A merge patch takes away only what it names. */
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
