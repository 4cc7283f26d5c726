import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { QuotaEngine } from '../quota/engine.js';
import { unitOfKey } from '../quota/core/key.js';
import type { AdmissionResponse } from './admission/review.js';
import type { Reconciler } from './reconciler/reconciler.js';

const HOUR_MS = 3_600_000;

/** What the quota service tells Prometheus. */
export class QuotaMetrics {
  readonly #registry = new Registry();
  readonly #decisions: Histogram;
  readonly #refused: Counter;
  readonly #drift: Gauge;
  readonly #refreshedAt: Gauge;
  readonly #amounts: Gauge;
  readonly #reservations: Gauge;
  #engine: QuotaEngine | null = null;
  #reconciler: Reconciler | null = null;

  constructor() {
    const registers = [this.#registry];
    this.#decisions = new Histogram({
      name: 'quota_review_seconds',
      help: 'Time to decide a review',
      labelNames: ['path', 'allowed'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
      registers,
    });
    this.#refused = new Counter({
      name: 'quota_refused_total',
      help: 'Reviews that were refused',
      labelNames: ['path', 'code'],
      registers,
    });
    this.#drift = new Gauge({
      name: 'quota_drift',
      help: 'Counters that were not what the workloads add up to, at the last refresh',
      registers,
    });
    this.#refreshedAt = new Gauge({
      name: 'quota_refreshed_timestamp_seconds',
      help: 'When everything was looked at last',
      registers,
    });
    this.#amounts = new Gauge({
      name: 'quota_group',
      help: 'Amounts of a group: cores, bytes, cards, hours',
      labelNames: ['group', 'key', 'what'],
      registers,
    });
    this.#reservations = new Gauge({
      name: 'quota_group_reservations',
      help: 'Workloads of a group that are admitted and not seen yet',
      labelNames: ['group'],
      registers,
    });
  }

  /** Where the amounts of groups come from. */
  watch(engine: QuotaEngine, reconciler: Reconciler): void {
    this.#engine = engine;
    this.#reconciler = reconciler;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Where other parts of the service register what they count. */
  get registry(): Registry {
    return this.#registry;
  }

  decided(path: string, { allowed, code }: AdmissionResponse, seconds: number): void {
    this.#decisions.observe({ path, allowed: String(allowed) }, seconds);
    if (!allowed) this.#refused.inc({ path, code: String(code ?? 403) });
  }

  refreshed(drift: number, nowMs: number): void {
    this.#drift.set(drift);
    this.#refreshedAt.set(nowMs / 1000);
  }

  async text(): Promise<string> {
    this.#amounts.reset();
    this.#reservations.reset();
    for (const name of this.#reconciler?.synced === true ? (this.#engine?.groups() ?? []) : []) {
      const status = this.#engine?.status(name);
      if (status === null || status === undefined) continue;
      this.#reservations.set({ group: name }, status.reservations);
      for (const [what, amounts] of [
        ['hard', status.hard],
        ['used', status.used],
        ['self_used', status.selfUsed],
        ['uncertain', status.uncertain],
      ] as const) {
        for (const [key, amount] of amounts) this.#amounts.set({ group: name, key, what }, scaled(key, amount));
      }
    }
    return this.#registry.metrics();
  }
}

function scaled(key: string, amount: bigint): number {
  return Number(amount) / 10 ** unitOfKey(key).decimals / (key.startsWith('cash/') ? HOUR_MS : 1);
}
