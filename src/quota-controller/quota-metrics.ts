import { counted, counter, histogram, Metrics, only, readAt, type Metric } from '../http/metrics.js';
import { unitOfKey } from '../manifests/key.js';
import type { GroupStatus, QuotaEngine } from '../quota/internal.js';
import { reviewHistogram } from '../kube/admission/review-histogram.js';
import type { AdmissionResponse } from '../kube/admission/review.js';
import type { EngineClock } from './clock/engine-clock.js';
import type { KubeStore, LedgerSize } from './store/kube-store.js';
import type { Reconciler } from './reconciler/reconciler.js';

const HOUR_MS = 3_600_000;

const DECISIONS = reviewHistogram('quota_review_seconds', 'Duration of admission reviews');

const REFUSED = {
  name: 'quota_refused_total',
  type: 'counter',
  help: 'Refused admission reviews',
  labels: ['path', 'code'],
} as const;

/** Result of the last refresh. */
interface Refresh {
  readonly drift: number;
  readonly at: number;
}

const REFRESH: readonly Metric<Refresh>[] = [
  {
    name: 'quota_drift',
    type: 'gauge',
    help: 'Counters that differed from the sum of the workloads at the last refresh',
    labels: [],
    read: ({ drift }) => only(drift),
  },
  {
    name: 'quota_refreshed_timestamp_seconds',
    type: 'gauge',
    help: 'Time of the last refresh',
    labels: [],
    read: ({ at }) => only(at / 1000),
  },
];

const CLOCK: readonly Metric<Pick<EngineClock, 'differenceMs'>>[] = [
  {
    name: 'quota_clock_difference_seconds',
    type: 'gauge',
    help: "The API server's time minus the engine's time",
    labels: [],
    read: ({ differenceMs }) => only(differenceMs / 1000),
  },
];

const GROUPS: readonly Metric<readonly GroupStatus[]>[] = [
  {
    name: 'quota_group',
    type: 'gauge',
    help: 'Amounts of a group: cores, bytes, GPUs, hours; granted, granted_used, left and rate of its budgets',
    labels: ['group', 'key', 'what'],
    *read(groups) {
      for (const { name: group, hard, used, selfUsed, uncertain, budgets, burnRate } of groups) {
        for (const [what, amounts] of Object.entries({ hard, used, self_used: selfUsed, uncertain }))
          for (const [key, amount] of amounts) yield { labels: { group, key, what }, value: scaled(key, amount) };
        for (const { key, granted, used: granted_used, left } of budgets)
          for (const [what, amount] of Object.entries({ granted, granted_used, left }))
            yield { labels: { group, key, what }, value: scaled(key, amount) };
        for (const [key, rate] of burnRate)
          yield { labels: { group, key, what: 'rate' }, value: scaled(key.slice('cash/'.length), rate) };
      }
    },
  },
  {
    name: 'quota_group_grant_refused',
    type: 'gauge',
    help: '1 for a grant that the budget of the parent group cannot cover',
    labels: ['group', 'grant'],
    *read(groups) {
      for (const { name: group, grants } of groups)
        for (const { name: grant, refused } of grants)
          yield { labels: { group, grant }, value: refused === '' ? 0 : 1 };
    },
  },
  {
    name: 'quota_group_reservations',
    type: 'gauge',
    help: 'Workloads of a group that were admitted and are not observed yet',
    labels: ['group'],
    *read(groups) {
      for (const { name: group, reservations } of groups) yield { labels: { group }, value: reservations };
    },
  },
];

const WITHOUT_OBJECT: readonly Metric<ReadonlyMap<string, string>>[] = [
  {
    name: 'quota_group_without_object',
    type: 'gauge',
    help: '1 for a group of the ledger that the API server does not have; it ends with its workloads and children',
    labels: ['group'],
    *read(groups) {
      for (const group of groups.keys()) yield { labels: { group }, value: 1 };
    },
  },
];

const LEDGERS: readonly Metric<ReadonlyMap<string, LedgerSize>>[] = [
  {
    name: 'quota_ledger_bytes',
    type: 'gauge',
    help: 'Characters of a ledger: of its object, which each admission writes, and with its segments',
    labels: ['group', 'part'],
    *read(sizes) {
      for (const [group, { objectBytes, totalBytes }] of sizes) {
        yield { labels: { group, part: 'object' }, value: objectBytes };
        yield { labels: { group, part: 'all' }, value: totalBytes };
      }
    },
  },
  {
    name: 'quota_ledger_segments',
    type: 'gauge',
    help: 'Segments of a ledger',
    labels: ['group'],
    *read(sizes) {
      for (const [group, { segments }] of sizes) yield { labels: { group }, value: segments };
    },
  },
];

export class QuotaMetrics {
  readonly #decisions = histogram(DECISIONS);
  readonly #refused = counter(REFUSED);
  #refresh: Refresh = { drift: 0, at: 0 };
  #engine: QuotaEngine | null = null;
  #store: Pick<KubeStore, 'sizeOf'> | null = null;
  #reconciler: Reconciler | null = null;
  #clock: Pick<EngineClock, 'differenceMs'> = { differenceMs: 0 };

  readonly page = new Metrics(
    counted([this.#decisions, this.#refused]),
    readAt(REFRESH, () => this.#refresh),
    readAt(CLOCK, () => this.#clock),
    readAt(GROUPS, () => this.#groups()),
    readAt(WITHOUT_OBJECT, () => this.#reconciler?.groupsWithoutObject() ?? new Map()),
    readAt(LEDGERS, () => this.#sizes()),
  );

  /** Sets the source of the groups' amounts. */
  watch(
    engine: QuotaEngine,
    reconciler: Reconciler,
    clock: Pick<EngineClock, 'differenceMs'>,
    store: Pick<KubeStore, 'sizeOf'>,
  ): void {
    this.#engine = engine;
    this.#store = store;
    this.#reconciler = reconciler;
    this.#clock = clock;
  }

  decided(path: string, { allowed, code }: AdmissionResponse, seconds: number): void {
    this.#decisions.observe({ path, allowed: String(allowed) }, seconds);
    if (!allowed) this.#refused.inc({ path, code: String(code ?? 403) });
  }

  refreshed(drift: number, nowMs: number): void {
    this.#refresh = { drift, at: nowMs };
  }

  #sizes(): ReadonlyMap<string, LedgerSize> {
    const sizes = (this.#engine?.groups() ?? []).map((name) => [name, this.#store?.sizeOf(name) ?? null] as const);
    return new Map(sizes.filter((one): one is [string, LedgerSize] => one[1] !== null));
  }

  #groups(): readonly GroupStatus[] {
    const engine = this.#engine;
    if (engine === null || this.#reconciler?.synced !== true) return [];
    return engine.groups().flatMap((name) => engine.status(name) ?? []);
  }
}

function scaled(key: string, amount: bigint): number {
  return Number(amount) / 10 ** unitOfKey(key).decimals / (key.startsWith('cash/') ? HOUR_MS : 1);
}
