import { inDigits, type Measurement } from '../report.js';

/** Figures of several variants: a row for each name, a column for each variant. */
export interface Comparison {
  readonly variants: readonly string[];
  readonly rows: readonly ComparisonRow[];
}

export interface ComparisonRow {
  readonly name: string;
  readonly unit: string;
  /** What the variants are compared with, unless it is a variant itself; null where there is none. */
  readonly baseline: number | null;
  readonly values: ReadonlyMap<string, number>;
}

/** The figures that belong to variants, in their order; null without any. */
export function comparisonOf(figures: readonly Measurement[]): Comparison | null {
  const variants = new Set<string>();
  const byName = new Map<string, Measurement[]>();
  for (const figure of figures) {
    if (figure.variant === null) continue;
    variants.add(figure.variant);
    byName.set(figure.name, [...(byName.get(figure.name) ?? []), figure]);
  }
  if (variants.size === 0) return null;
  const rows = [...byName].map(([name, all]): ComparisonRow => {
    const baselines = new Set(all.flatMap(({ baseline }) => (baseline === null ? [] : [baseline])));
    const [baseline = null] = baselines;
    const isVariant = all.some(({ value }) => value === baseline);
    return {
      name,
      unit: all[0]?.unit ?? '',
      baseline: baselines.size === 1 && !isVariant ? baseline : null,
      values: new Map(all.map(({ variant, value }) => [variant ?? '', value])),
    };
  });
  return { variants: [...variants], rows };
}

/** The comparison as a Markdown table. */
export function comparisonTable({ variants, rows }: Comparison): string {
  const hasBaseline = rows.some(({ baseline }) => baseline !== null);
  const head = ['', 'unit', ...(hasBaseline ? ['baseline'] : []), ...variants];
  const cells = rows.map(({ name, unit, baseline, values }) => [
    name,
    unit,
    ...(hasBaseline ? [baseline === null ? '' : inDigits(baseline)] : []),
    ...variants.map((variant) => {
      const value = values.get(variant);
      return value === undefined ? 'none' : inDigits(value);
    }),
  ]);
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
  const rule = `|---|---|${'---:|'.repeat(head.length - 2)}`;
  return [line(head), rule, ...cells.map(line), ''].join('\n');
}
