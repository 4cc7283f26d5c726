/** One figure of a benchmark. */
export interface Measurement {
  readonly name: string;
  /** Which of several it belongs to, where all do the same; null where there is only one. */
  readonly variant: string | null;
  readonly value: number;
  readonly unit: string;
  /** The value of the comparison, measured in the same run (or published); null without one. */
  readonly baseline: number | null;
  /** Value over baseline, or another ratio of the benchmark; null without a baseline. */
  readonly ratio: number | null;
  /** The least and the largest value of several runs, of which `value` is the median; absent with one run. */
  readonly spread?: readonly [least: number, most: number];
  /** The same for the ratio. */
  readonly ratioSpread?: readonly [least: number, most: number];
}

/** The arguments of every benchmark. */
export interface BenchOptions {
  /** Figures are printed as JSON, one object a line, and stdout gets nothing else. */
  readonly json: boolean;
  /** The rest of the command line. */
  readonly args: readonly string[];
  /** Prints a figure. */
  readonly report: (measurement: Measurement) => void;
  /** Begins a section: what follows is reported together, with a drawing of its own. */
  readonly section: (name: string) => void;
  /** A note for the reader: to stdout, or to stderr where stdout is JSON. */
  readonly note: (text: string) => void;
}

/** A benchmark: `bench/<name>.ts` exports it as `run`. */
export type Bench = (options: BenchOptions) => Promise<void>;

/** A measurement with its ratio. */
export function measured(
  name: string,
  value: number,
  unit: string,
  baseline: number | null = null,
  variant: string | null = null,
): Measurement {
  return { name, variant, value, unit, baseline, ratio: baseline === null || baseline === 0 ? null : value / baseline };
}

/** The median, the upper one of two; NaN without values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

/** The figures as a table, columns aligned. */
export function tableOf(measurements: readonly Measurement[]): string {
  const rows = measurements.map(({ name, variant, value, unit, baseline, ratio, spread }) => [
    variant === null ? name : `${name}: ${variant}`,
    spread === undefined ? inDigits(value) : `${inDigits(value)} (${spread.map(inDigits).join(' to ')})`,
    unit,
    baseline === null ? '' : inDigits(baseline),
    ratio === null ? '' : ratio.toFixed(3),
  ]);
  const all = [['figure', 'value', 'unit', 'baseline', 'ratio'], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const isNumber = (column: number) => column === 1 || column === 3 || column === 4;
  const cell = (text: string, column: number) =>
    isNumber(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0);
  return all.map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}

/** A figure with its significant digits. */
export function inDigits(value: number): string {
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(1) : value.toPrecision(4);
}
