import Counter from 'prom-client/lib/counter.js';
import Histogram from 'prom-client/lib/histogram.js';
import Registry from 'prom-client/lib/registry.js';

/** A metric family: a row of a program's table of metrics. */
export interface Family<L extends string = string> {
  readonly name: string;
  /** `untyped`: a gauge whose name is not valid for a gauge. */
  readonly type: 'gauge' | 'counter' | 'histogram' | 'untyped';
  /** One line, without backslashes. */
  readonly help: string;
  readonly labels: readonly L[];
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * A family whose values are read at each scrape, so that values are not stored twice and removed subjects disappear.
 */
export interface Metric<S> extends Family {
  readonly read: (source: S) => Iterable<Sample>;
}

/** A histogram family with its bucket bounds. */
export interface HistogramFamily<L extends string = string> extends Family<L> {
  readonly type: 'histogram';
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[];
}

/** A sample without labels. */
export function only(value: number): Sample[] {
  return [{ labels: {}, value }];
}

/** One sample for each entry, with its name as label. */
export function byLabel(label: string, values: Iterable<readonly [name: string, value: number]>): Sample[] {
  return [...values].map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/** Creates the counter for one row of a table. */
export function counter<L extends string>({ name, help, labels }: Family<L>): Counter<L> {
  return new Counter({ name, help, labelNames: labels, registers: [] });
}

/** Creates the histogram for one row of a table. */
export function histogram<L extends string>({ name, help, labels, buckets }: HistogramFamily<L>): Histogram<L> {
  return new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers: [] });
}

/** Returns printed families with their present samples. */
export type MetricsPart = () => string[] | Promise<string[]>;

/** Prints every row of a table from one snapshot of the source. */
export function readAt<S>(table: readonly Metric<S>[], source: () => S | Promise<S>): MetricsPart {
  return async () => {
    const moment = await source();
    const labelText = labelTexts();
    return table.map((metric) => {
      // Two subjects may have equal labels, for example while a container replaces another of its name, but a sample
      // must not appear twice.
      const samples = new Map<string, number>();
      for (const { labels, value } of metric.read(moment)) {
        const key = labelText(metric.labels, labels);
        samples.set(key, metric.type === 'counter' ? (samples.get(key) ?? 0) + value : value);
      }
      const lines = header(metric);
      for (const [key, value] of samples) lines.push(`${metric.name}${key} ${number(value)}`);
      return lines.join('\n');
    });
  };
}

/** Prints the values of counters and histograms. */
export function counted(counts: readonly (Counter | Histogram)[]): MetricsPart {
  return () =>
    Promise.all(
      counts.map(async (count) => {
        const { name, help, type, values } = await count.get();
        const labelText = labelTexts();
        const lines = header({ name, help, type: String(type) });
        for (const sample of values) {
          const labels = Object.fromEntries(
            Object.entries(sample.labels).map(([label, text]) => [label, String(text)]),
          );
          const sampleName = 'metricName' in sample ? String(sample.metricName) : name;
          lines.push(`${sampleName}${labelText(Object.keys(labels), labels)} ${number(sample.value)}`);
        }
        return lines.join('\n');
      }),
    );
}

/** The metrics of a program in Prometheus' text format 0.0.4. */
export class Metrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #parts: MetricsPart[];

  constructor(...parts: readonly MetricsPart[]) {
    this.#parts = [...parts];
  }

  /** Adds the families of another part of the program at the end. */
  include(parts: readonly MetricsPart[]): void {
    this.#parts.push(...parts);
  }

  async text(): Promise<string> {
    const families = await Promise.all(this.#parts.map(async (part) => part()));
    return `${families.flat().join('\n\n')}\n`;
  }
}

function header({ name, help, type }: Pick<Family, 'name' | 'help'> & { readonly type: string }): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

/** Prints labels in the order of their names; the text is cached per label object. */
function labelTexts(): (names: readonly string[], labels: Sample['labels']) => string {
  const printed = new WeakMap<Sample['labels'], { readonly names: readonly string[]; readonly text: string }>();
  return (names, labels) => {
    const before = printed.get(labels);
    if (before?.names === names) return before.text;
    const text =
      names.length === 0 ? '' : `{${names.map((name) => `${name}="${escaped(labels[name] ?? '')}"`).join(',')}}`;
    if (before === undefined) printed.set(labels, { names, text });
    return text;
  };
}

function number(value: number): string {
  if (Number.isFinite(value)) return `${value}`;
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

const SPECIAL = /[\\"\n]/u;

function escaped(text: string): string {
  if (!SPECIAL.test(text)) return text;
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
