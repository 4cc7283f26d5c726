import type { Clock } from '../host/clock.js';
import type { ClusterModel } from './cluster-model.js';
import type { Prometheus, RangeAnswer, Series } from './prometheus.js';
import { sees, type Scope } from './scope.js';

/** Number of points of a chart. */
const POINTS = 150;
/** How long an answer is reused, for all readers. */
const KEPT_MS = 15_000;
const MAX_KEPT = 256;
/** Maximum number of concurrent queries, so that readers cannot overload Prometheus. */
const MAX_QUERIES = 12;
/** Maximum number of namespaces or GPUs that a query names, because it is sent in a URL. */
const MAX_NAMES = 100;

/** Ranges that readers may choose. */
const RANGES: Readonly<Record<string, number>> = {
  '1h': 3_600_000,
  '6h': 21_600_000,
  '1d': 86_400_000,
  '7d': 604_800_000,
};

/** One line over time. */
export interface HistoryChart {
  readonly title: string;
  readonly unit: 'percent' | 'bytes' | 'gpus';
  readonly values: readonly (number | null)[];
  /** The limit now; absent without one. */
  readonly limit?: number;
}

export type HistoryAnswer =
  | { readonly ok: true; readonly charts: readonly HistoryChart[] }
  /** A sentence. */
  | { readonly ok: false; readonly reason: string };

/** The object of a history. */
export interface HistoryQuestion {
  readonly of: string;
  /** Name of a node, or UID of a pod. */
  readonly name: string;
  readonly range: string;
}

interface Line {
  readonly title: (labels: Series['labels']) => string;
  readonly unit: HistoryChart['unit'];
  readonly query: string;
  /** Factor on the values. */
  readonly factor?: number;
  /** Limits of the series with the same labels. */
  readonly limit?: string;
}

export interface HistoryOptions {
  readonly prometheus: Pick<Prometheus, 'range'>;
  readonly model: Pick<ClusterModel, 'node' | 'pod'>;
  readonly clock: Clock;
}

/**
 * History from Prometheus: fixed queries on the metrics of the agents, limited to the objects that a reader may see.
 */
export class History {
  readonly #options: HistoryOptions;
  readonly #kept = new Map<string, { readonly untilMs: number; readonly answer: Promise<RangeAnswer> }>();
  #queries = 0;

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** Null if the object does not exist, or the reader may not see it. Never rejects. */
  async read({ of, name, range }: HistoryQuestion, scope: Scope): Promise<HistoryAnswer | null> {
    const rangeMs = Object.hasOwn(RANGES, range) ? RANGES[range] : undefined;
    const lines = this.#lines(of, name, scope);
    if (rangeMs === undefined || lines === null) return null;
    const answers = await Promise.all(
      lines.map(async (line) => {
        const limit = line.limit === undefined ? null : this.#range(line.limit, rangeMs);
        return { line, found: await this.#range(line.query, rangeMs), limits: await limit };
      }),
    );
    const charts: HistoryChart[] = [];
    for (const { line, found, limits } of answers) {
      if (!found.ok) return found;
      for (const { labels, values } of found.series) {
        const limit = limits?.ok === true ? lastOf(limits.series, labels) : null;
        const { title, unit, factor = 1 } = line;
        charts.push({
          title: title(labels),
          unit,
          values: values.map((value) => (value === null ? null : value * factor)),
          ...(limit === null ? {} : { limit: limit * factor }),
        });
      }
    }
    return { ok: true, charts: charts.sort((a, b) => collator.compare(a.title, b.title)) };
  }

  #lines(of: string, name: string, scope: Scope): readonly Line[] | null {
    const { model } = this.#options;
    switch (of) {
      case 'cluster':
        return scope.tables.has('nodes') ? gpuLines('') : containerLines(scope);
      case 'node': {
        const node = scope.tables.has('nodes') ? model.node(name) : null;
        const uuids = node?.gpus.map(({ gpu }) => gpu.uuid).filter((uuid) => /^[\w-]+$/u.test(uuid)) ?? [];
        if (uuids.length === 0) return null;
        const selector = `{uuid=~"${uuids.slice(0, MAX_NAMES).join('|')}"}`;
        return [
          ...gpuLines(selector),
          {
            title: ({ gpu = '' }) => `GPU ${gpu} utilization`,
            unit: 'percent',
            factor: 100,
            query: `max by (gpu) (vgpu_gpu_utilization_ratio${selector})`,
          },
        ];
      }
      case 'pod': {
        const pod = model.pod(name);
        if (pod === null || !sees(scope, 'pods', pod.namespace)) return null;
        return podLines(`{namespace=${JSON.stringify(pod.namespace)},pod=${JSON.stringify(pod.name)}}`);
      }
      default:
        return null;
    }
  }

  #range(query: string, rangeMs: number): Promise<RangeAnswer> {
    const now = this.#options.clock.now();
    // Moments are multiples of the step, so that a chart does not flicker.
    const stepMs = rangeMs / POINTS;
    const endMs = Math.floor(now / stepMs) * stepMs;
    const key = `${rangeMs} ${query}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined && now < kept.untilMs) return kept.answer;
    if (this.#queries >= MAX_QUERIES)
      return Promise.resolve({ ok: false, reason: 'too many queries for Prometheus are under way' });
    this.#queries += 1;
    const answer = this.#options.prometheus
      .range({ query, endMs, stepMs, points: POINTS })
      .finally(() => (this.#queries -= 1));
    this.#kept.delete(key);
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(key, { untilMs: now + KEPT_MS, answer });
    return answer;
  }
}

const collator = new Intl.Collator('en', { numeric: true });

/** GPUs of a selector together. */
function gpuLines(selector: string): readonly Line[] {
  const share = (title: string, part: string, whole: string): Line => ({
    title: () => title,
    unit: 'percent',
    factor: 100,
    query: `sum(${part}${selector}) / ${whole}`,
  });
  const count = `count(vgpu_gpu_memory_bytes${selector})`;
  const memory = `sum(vgpu_gpu_memory_bytes${selector})`;
  return [
    share('Utilization', 'vgpu_gpu_utilization_ratio', count),
    share('Allocated', 'vgpu_gpu_given_ratio', count),
    share('Memory in use', 'vgpu_gpu_memory_used_bytes', memory),
  ];
}

/** Containers of all namespaces that a reader may see, for readers that may not list nodes. */
function containerLines({ tables }: Scope): readonly Line[] | null {
  const seen = tables.get('pods') ?? new Set<string>();
  const names = tables.get('pods') === null ? null : [...seen].filter((name) => /^[a-z0-9-]+$/u.test(name)).sort();
  if (names?.length === 0) return null;
  const selector = names === null ? '' : `{namespace=~"${names.slice(0, MAX_NAMES).join('|')}"}`;
  return [
    { title: () => 'GPUs in use', unit: 'gpus', query: `sum(vgpu_container_used_ratio${selector})` },
    { title: () => 'GPUs allocated', unit: 'gpus', query: `sum(vgpu_container_requested_ratio${selector})` },
    { title: () => 'Memory in use', unit: 'bytes', query: `sum(vgpu_container_memory_used_bytes${selector})` },
  ];
}

function podLines(selector: string): readonly Line[] {
  const by = 'by (container, gpu)';
  const where = ({ container = '', gpu = '' }: Series['labels']) => `${container}, GPU ${gpu}`;
  return [
    {
      title: (labels) => `${where(labels)}: cores`,
      unit: 'percent',
      factor: 100,
      query: `max ${by} (vgpu_container_used_ratio${selector})`,
      limit: `max ${by} (vgpu_container_limit_ratio${selector})`,
    },
    {
      title: (labels) => `${where(labels)}: memory`,
      unit: 'bytes',
      query: `max ${by} (vgpu_container_memory_used_bytes${selector})`,
      limit: `max ${by} (vgpu_container_memory_limit_bytes${selector})`,
    },
  ];
}

/** The last value of the series with these labels; null without one. */
function lastOf(series: readonly Series[], labels: Series['labels']): number | null {
  const same = (other: Series['labels']): boolean =>
    Object.entries(labels).every(([key, value]) => other[key] === value);
  return series.find((one) => same(one.labels))?.values.findLast((value) => value !== null) ?? null;
}
