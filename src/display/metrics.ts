import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { CARD_METRICS } from './card-metrics.js';
import { CONTAINER_METRICS } from './container-metrics.js';
import type { Metric, Scrape } from './metric.js';
import { NODE_METRICS } from './node-metrics.js';
import { MISNAMED_GAUGE, ORIGINAL_METRICS } from './original-metrics.js';
import type { NodeView } from './view.js';

/** Every family that is read from the node at a scrape. */
export const METRICS: readonly Metric[] = [...NODE_METRICS, ...CARD_METRICS, ...CONTAINER_METRICS, ...ORIGINAL_METRICS];

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

/** The metrics of the node as text. Read from the view at each scrape: nothing is counted twice, and what is gone is gone. */
export class NodeMetrics {
  readonly #view: NodeView;
  readonly #registry = new Registry();
  #scrape: Scrape | null = null;

  constructor(view: NodeView, times: CallTimes) {
    this.#view = view;
    for (const metric of METRICS) this.#register(metric);
    times.register(this.#registry);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    this.#scrape = { snapshot: this.#view.snapshot(), counts: this.#view.counts() };
    const text = await this.#registry.metrics();
    // The original calls a gauge a total. Its name has to stay; promtool lets it pass where no type contradicts it.
    return text.replace(`# TYPE ${MISNAMED_GAUGE} gauge`, `# TYPE ${MISNAMED_GAUGE} untyped`);
  }

  #register({ name, type, help, labels, read }: Metric): void {
    const scrape = (): Scrape => this.#scrape ?? { snapshot: this.#view.snapshot(), counts: this.#view.counts() };
    const options = { name, help, labelNames: [...labels], registers: [this.#registry] };
    if (type === 'gauge') {
      new Gauge({
        ...options,
        collect() {
          this.reset();
          for (const sample of read(scrape())) this.set(sample.labels, sample.value);
        },
      });
      return;
    }
    new Counter({
      ...options,
      collect() {
        this.reset();
        for (const sample of read(scrape())) this.inc(sample.labels, sample.value);
      },
    });
  }
}
