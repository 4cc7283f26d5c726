import type { Clock } from '../../host/clock.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { versionOf } from '../../kube/object.js';
import { ReconcileQueue } from '../../kube/reconcile-queue.js';
import type { Demand, QuotaEngine } from '../../quota/index.js';
import type { WaitingWorkloads } from '../give-back/waiting-workloads.js';
import type { Reconciler } from '../reconciler/reconciler.js';
import { CheckAnswers, checkWritten, FIELD_MANAGER } from './check-answers.js';
import { isDecidable, type CheckEntry, type Workload } from '../workloads/kueue-workload.js';
import { ChargeReader, type ChargeReaderOptions } from './workload-charge.js';

export interface AdmissionCheckOptions extends ChargeReaderOptions {
  readonly engine: QuotaEngine;
  readonly reconciler: Pick<Reconciler, 'onChange' | 'admitted'>;
  /** Records Workloads that wait, and keeps room for others; null without an arbitrator. */
  readonly arbitrated: Pick<WaitingWorkloads, 'keptFrom' | 'refused' | 'admitted'> | null;
  /** How long an answer is reserved until it is observed. */
  readonly reservationMs: number;
  /** The engine's time. */
  readonly clock: Clock;
  readonly log: StructuredLog;
  /** How often the reason why a Workload waits is written anew while it changes. */
  readonly messageMs?: number;
  /** Interval at which a waiting Workload is read anew: labels of its object or its namespace may have changed. */
  readonly rereadMs?: number;
}

/** A Workload that waits for room in its group. */
interface Waiting {
  readonly demand: Demand;
  readonly podSets: readonly string[];
  /** Group and types, as the answer records them. */
  readonly labels: Readonly<Record<string, string>>;
  /** The generation that was read, and when. */
  readonly generation: number;
  readonly readAt: number;
  /** When the reason was last written. */
  toldAt: number;
}

/** The key of the pass over all waiting Workloads; no uid. */
const ROOM = 'room';
const MAX_MESSAGE = 1024;

/**
 * The quota as an AdmissionCheck of Kueue. A Workload whose group has room becomes Ready; another one stays Pending
 * with the reason, and becomes Ready when room appears. Its amounts are reserved before the answer is written, and the
 * answer is the charge: the reconciler charges a Workload as long as it has the answer. An answer is written only to
 * the version of the Workload for which it was decided, so that each reservation ends as answer or not at all.
 */
export class AdmissionCheckController {
  readonly #options: AdmissionCheckOptions;
  readonly #queue: ReconcileQueue;
  readonly #charges: ChargeReader;
  readonly #answers: CheckAnswers;
  readonly #waiting = new Map<string, Waiting>();
  readonly #attempts = new Map<string, Promise<void>>();
  readonly #unsubscribe: (() => void)[] = [];

  constructor(options: AdmissionCheckOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#charges = new ChargeReader(options);
    this.#answers = new CheckAnswers(options);
    this.#queue = new ReconcileQueue({
      reconcile: (key) => (key === ROOM ? this.#admitWaiting() : this.#decide(key)),
      failed: (key, error) => log.warn({ err: error, workload: key }, "answering Kueue's Workload failed; retrying"),
      clock,
      log,
    });
  }

  start(): void {
    const { objects, reconciler } = this.#options;
    this.#unsubscribe.push(
      objects.onChange(({ before, after }) => this.#queue.put((after ?? before)?.uid ?? '', 0)),
      objects.onChecks(() => this.#checksChanged()),
      reconciler.onChange(() => {
        if (this.#waiting.size > 0) this.#queue.put(ROOM, 0);
      }),
    );
    this.#checksChanged();
  }

  async stop(): Promise<void> {
    for (const end of this.#unsubscribe.splice(0)) end();
    await this.#queue.stop();
    this.#waiting.clear();
  }

  #checksChanged(): void {
    const { objects } = this.#options;
    for (const check of objects.checks())
      if (check.activeFor !== check.generation) this.#queue.put(`${ACTIVATE}${check.name}`, 0);
    for (const { uid } of objects.workloads()) this.#queue.put(uid, 0);
  }

  /** Decides about one Workload. */
  async #decide(key: string): Promise<void> {
    if (key.startsWith(ACTIVATE)) return this.#answers.activate(key.slice(ACTIVATE.length));
    const workload = this.#options.objects.workload(key);
    const ours = workload === null ? [] : this.#ours(workload);
    if (workload === null || ours.length === 0) return void this.#waiting.delete(key);
    // Kueue never considers a Workload again that lost its quota with this answer.
    const isStuck = !workload.isReserved && !workload.isFinished && ours.some(({ state }) => state === 'Retry');
    if (isStuck) await this.#answers.write(workload, ours, { state: 'Pending', message: 'waiting for quota of Kueue' });
    if (!isDecidable(workload) || !ours.some(({ state }) => state === 'Pending')) return void this.#waiting.delete(key);
    const { rereadMs = 30_000 } = this.#options;
    const known = this.#waiting.get(key);
    const now = performance.now();
    if (known?.generation === workload.generation && now < known.readAt + rereadMs) return this.#admit(key, known);
    const charge = await this.#charges.chargeOf(workload);
    if (charge === null) return void this.#waiting.delete(key);
    if (charge.is === 'free') {
      this.#waiting.delete(key);
      await this.#answers.write(workload, ours, { state: 'Ready', message: charge.reason });
      return;
    }
    this.#queue.put(key, rereadMs);
    if (charge.is === 'refused') {
      this.#waiting.delete(key);
      await this.#tell(workload, ours, charge.reason);
      return;
    }
    const { demand, podSets, labels } = charge;
    const { generation } = workload;
    const waiting = { demand, podSets, labels, generation, readAt: now, toldAt: known?.toldAt ?? -Infinity };
    this.#waiting.set(key, waiting);
    await this.#admit(key, waiting);
  }

  /**
   * Takes the quota of a running Workload back: Kueue stops its pods and asks again. It stays charged until Kueue
   * begins. False if Kueue stops it already, or could not be told.
   */
  async takeBack(uid: string): Promise<boolean> {
    const workload = this.#options.objects.workload(uid);
    if (workload === null || !isDecidable(workload)) return false;
    const ours = this.#ours(workload).filter(({ state }) => state === 'Ready');
    if (ours.length === 0) return false;
    const { podSets, chargedTo } = workload;
    const message = 'its quota goes back to the group that lent it';
    const charge = { podSets, labels: chargedTo };
    return (await this.#answers.tryWrite(workload, ours, { state: 'Retry', message, charge })).ok;
  }

  /** Tries every waiting Workload, by priority and then by the time of Kueue's reservation. */
  async #admitWaiting(): Promise<void> {
    const { objects } = this.#options;
    const order = [...this.#waiting.keys()]
      .flatMap((uid) => objects.workload(uid) ?? [])
      .sort((a, b) => b.priority - a.priority || compare(a.reservedAt, b.reservedAt) || compare(a.key, b.key));
    for (const { uid } of order) {
      const waiting = this.#waiting.get(uid);
      if (waiting !== undefined) await this.#admit(uid, waiting);
    }
  }

  /** One attempt at a time for each Workload. */
  async #admit(uid: string, waiting: Waiting): Promise<void> {
    const before = this.#attempts.get(uid) ?? Promise.resolve();
    const attempt = before.catch(() => undefined).then(() => this.#attempt(uid, waiting));
    this.#attempts.set(uid, attempt);
    try {
      await attempt;
    } finally {
      if (this.#attempts.get(uid) === attempt) this.#attempts.delete(uid);
    }
  }

  /** Answers Ready if the group has room, and else writes why the Workload waits. */
  async #attempt(uid: string, waiting: Waiting): Promise<void> {
    const { engine, objects, reconciler, arbitrated, reservationMs } = this.#options;
    const workload = objects.workload(uid);
    const ours = workload === null ? [] : this.#ours(workload);
    if (workload?.generation !== waiting.generation || !isDecidable(workload)) return;
    if (!ours.some(({ state }) => state === 'Pending')) return;
    const { resourceVersion } = workload;
    const demand = {
      ...waiting.demand,
      workload: { ...waiting.demand.workload, version: versionOf({ metadata: { resourceVersion } }) },
    };
    const { group } = demand;
    const kept = (await arbitrated?.keptFrom(demand)) ?? null;
    if (kept !== null) {
      arbitrated?.refused(demand, async () => workload.priority, true);
      return this.#wait(uid, waiting, workload, ours, kept);
    }
    const fit = await engine.admit(demand, { dryRun: true });
    const operation = `${uid}@${resourceVersion}`;
    const decision = fit.allowed
      ? await engine.execute({ type: 'reserve', ...demand, ttlMs: reservationMs, operation, actor: FIELD_MANAGER })
      : fit;
    if (decision.code === 'Conflict') throw new Error(decision.message);
    if (!decision.allowed) {
      if (decision.code === 'QuotaExceeded') arbitrated?.refused(demand, async () => workload.priority, true);
      return this.#wait(uid, waiting, workload, ours, decision.message);
    }
    reconciler.admitted(uid);
    const message = `charged to group ${group}`;
    const answer = await this.#answers.tryWrite(workload, ours, { state: 'Ready', message, charge: waiting });
    if (answer.ok) {
      arbitrated?.admitted(demand);
      return void this.#waiting.delete(uid);
    }
    // One that may be stored needs the reservation until it is observed; the Workload is read when that expires.
    if (await this.#answers.isNotStored(workload, answer))
      await engine.execute({ type: 'cancel', reservation: operation });
    checkWritten(workload, answer);
  }

  /** Writes why a Workload waits, but not more often than every few seconds. */
  async #wait(
    uid: string,
    waiting: Waiting,
    workload: Workload,
    ours: readonly CheckEntry[],
    reason: string,
  ): Promise<void> {
    const { messageMs = 5_000 } = this.#options;
    const nextAt = waiting.toldAt + messageMs;
    const now = performance.now();
    if (now < nextAt) return this.#queue.put(uid, Math.ceil(nextAt - now));
    waiting.toldAt = now;
    await this.#tell(workload, ours, reason);
  }

  async #tell(workload: Workload, ours: readonly CheckEntry[], reason: string): Promise<void> {
    const message = `waiting for quota: ${reason}`.slice(0, MAX_MESSAGE);
    if (ours.every((entry) => entry.message === message)) return;
    await this.#answers.write(workload, ours, { state: 'Pending', message });
  }

  #ours({ checks }: Workload): readonly CheckEntry[] {
    return checks.filter(({ name }) => this.#options.objects.check(name) !== null);
  }
}

/** Keys of AdmissionChecks in the queue. */
const ACTIVATE = 'activate:';

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
