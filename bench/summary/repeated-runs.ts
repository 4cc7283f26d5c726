import { median, type Measurement } from '../report.js';
import type { BenchResult } from './bench-result.js';

/**
 * Several runs of one benchmark as one: of each figure the median with its spread, the baseline and the ratio the
 * medians of their own; the notes are those of the last run. A figure that a run lacks counts in the others, and one
 * that a run reports several times counts as often.
 */
export function combined(runs: readonly (readonly BenchResult[])[]): BenchResult[] {
  const all = runs.flat();
  const titles = [...new Set(all.map(({ bench }) => bench))];
  return titles.map((bench) => {
    const own = all.filter((result) => result.bench === bench);
    const figures = own.flatMap((result) => result.figures);
    const once = figures.filter((figure, at) => figures.findIndex((other) => isSame(figure, other)) === at);
    return {
      bench,
      notes: own.at(-1)?.notes ?? [],
      figures: once.map((figure) => ofRuns(figures.filter((other) => isSame(figure, other)))),
    };
  });
}

const isSame = (one: Measurement, other: Measurement): boolean =>
  one.name === other.name && one.variant === other.variant;

function ofRuns(figures: readonly Measurement[]): Measurement {
  const [first] = figures;
  if (first === undefined) throw new RangeError('a figure of no run');
  const values = figures.map(({ value }) => value);
  const numbers = (all: readonly (number | null)[]): number[] => all.filter((value) => value !== null);
  const medianOrNull = (all: readonly number[]): number | null => (all.length === 0 ? null : median(all));
  const ratios = numbers(figures.map(({ ratio }) => ratio));
  return {
    name: first.name,
    variant: first.variant,
    unit: first.unit,
    value: median(values),
    baseline: medianOrNull(numbers(figures.map(({ baseline }) => baseline))),
    ratio: medianOrNull(ratios),
    ...(values.length > 1 ? { spread: spreadOf(values) } : {}),
    ...(ratios.length > 1 ? { ratioSpread: spreadOf(ratios) } : {}),
  };
}

const spreadOf = (values: readonly number[]): readonly [number, number] => [Math.min(...values), Math.max(...values)];
