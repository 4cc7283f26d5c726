import { Histogram, Registry } from 'prom-client';
import { GPU_METRICS } from './gpu-metrics.js';
import { CONTAINER_METRICS } from './container-metrics.js';
import type { Metric, Sample, Scrape } from './metric.js';
import { NODE_METRICS } from './node-metrics.js';
import { ORIGINAL_METRICS } from './original-metrics.js';
import type { NodeView } from './view.js';

/** Every family that is read from the node at a scrape. */
export const METRICS: readonly Metric[] = [...NODE_METRICS, ...GPU_METRICS, ...CONTAINER_METRICS, ...ORIGINAL_METRICS];

/** What the kubelet calls. */
export type KubeletCall = 'preferred' | 'allocate' | 'prestart';

export const CALL_DURATION = {
  name: 'vgpu_kubelet_call_duration_seconds',
  type: 'histogram',
  help: 'Time from a call of the kubelet to its answer, by call, resource (core, memory) and result (ok, refused, error)',
  labels: ['call', 'resource', 'result'],
} as const;

/** How long the kubelet waited for answers. */
export class CallTimes {
  readonly #histogram = new Histogram({
    name: CALL_DURATION.name,
    help: CALL_DURATION.help,
    labelNames: CALL_DURATION.labels,
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [],
  });

  observe(call: KubeletCall, resource: string, result: 'ok' | 'refused' | 'error', seconds: number): void {
    this.#histogram.observe({ call, resource, result }, seconds);
  }

  register(registry: Registry): void {
    registry.registerMetric(this.#histogram);
  }
}

/**
 * The metrics of the node as text, in Prometheus' exposition format 0.0.4. Values are read at each scrape, so that
 * nothing is counted twice and removed subjects disappear.
 */
export class NodeMetrics {
  readonly #view: NodeView;
  readonly #counted = new Registry();

  constructor(view: NodeView, times: CallTimes) {
    this.#view = view;
    times.register(this.#counted);
  }

  get contentType(): string {
    return this.#counted.contentType;
  }

  async text(): Promise<string> {
    const scrape: Scrape = { snapshot: this.#view.snapshot(), counts: this.#view.counts() };
    const printed: Printed = new WeakMap();
    return METRICS.map((metric) => family(metric, scrape, printed)).join('') + (await this.#counted.metrics());
  }
}

/** Labels that are printed already, and in which order. */
type Printed = WeakMap<Sample['labels'], { readonly labels: readonly string[]; readonly text: string }>;

function family({ name, type, help, labels, read }: Metric, scrape: Scrape, printed: Printed): string {
  // Two allocations may be of containers of the same name, while one takes the place of the other: a sample may not
  // appear twice.
  const samples = new Map<string, number>();
  for (const { labels: values, value } of read(scrape)) {
    const before = printed.get(values);
    const key = before?.labels === labels ? before.text : labelText(labels, values);
    if (before === undefined) printed.set(values, { labels, text: key });
    samples.set(key, type === 'counter' ? (samples.get(key) ?? 0) + value : value);
  }
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  for (const [key, value] of samples) lines.push(`${name}${key} ${value}`);
  return `${lines.join('\n')}\n`;
}

function labelText(labels: readonly string[], values: Sample['labels']): string {
  return labels.length === 0
    ? ''
    : `{${labels.map((label) => `${label}="${escaped(values[label] ?? '')}"`).join(',')}}`;
}

const SPECIAL = /[\\"\n]/u;

function escaped(text: string): string {
  if (!SPECIAL.test(text)) return text;
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
