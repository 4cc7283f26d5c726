import { Counter, Histogram, Registry } from 'prom-client';

/** What a metric family is: a row of a program's table of metrics. */
export interface Family<L extends string = string> {
  readonly name: string;
  /** Untyped: a gauge by nature whose name must not be that of one. */
  readonly type: 'gauge' | 'counter' | 'histogram' | 'untyped';
  /** One line, without backslashes. */
  readonly help: string;
  readonly labels: readonly L[];
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A family whose values are read at each scrape, so that nothing is counted twice and removed subjects disappear. */
export interface Metric<S> extends Family {
  readonly read: (source: S) => Iterable<Sample>;
}

/** A family that observations are counted in. */
export interface HistogramFamily<L extends string = string> extends Family<L> {
  readonly type: 'histogram';
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[];
}

/** A sample without labels. */
export function only(value: number): Sample[] {
  return [{ labels: {}, value }];
}

/** One sample for each entry, under one label. */
export function byLabel(label: string, values: Iterable<readonly [name: string, value: number]>): Sample[] {
  return [...values].map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/** Counts for one row of a table. */
export function counter<L extends string>({ name, help, labels }: Family<L>): Counter<L> {
  return new Counter({ name, help, labelNames: labels, registers: [] });
}

/** Counts observations for one row of a table. */
export function histogram<L extends string>({ name, help, labels, buckets }: HistogramFamily<L>): Histogram<L> {
  return new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers: [] });
}

/** Families with their samples of one moment, printed. */
export type MetricsPart = () => string[] | Promise<string[]>;

/** Every row of a table, read from one moment of its source. */
export function readAt<S>(table: readonly Metric<S>[], source: () => S): MetricsPart {
  return () => {
    const moment = source();
    const labelText = labelTexts();
    return table.map((metric) => {
      // Two subjects may have the same labels, as while a container takes the place of another of its name: a sample
      // may not appear twice.
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

/** What counters and histograms have counted. */
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

/** The metrics of a program as text, in Prometheus' exposition format 0.0.4. */
export class Metrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #parts: MetricsPart[];

  constructor(...parts: readonly MetricsPart[]) {
    this.#parts = [...parts];
  }

  /** Adds families of another part of the program, at the end. */
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

/** Prints labels in the order of their names; labels of one object are printed once. */
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
