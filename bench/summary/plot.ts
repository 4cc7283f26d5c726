import { inDigits, type Measurement } from '../report.js';
import { comparisonOf, type Comparison, type ComparisonRow } from './comparison.js';

const ROW = 22;
const LABEL_WIDTH = 420;
const BAR_WIDTH = 360;
const VALUE_WIDTH = 130;
const HEAD = 30;
const LEGEND_WIDTH = 150;
const STYLE =
  'text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.value{fill:#4a7fb5}.baseline{stroke:#d1495b;stroke-width:2}.rule{stroke:#ddd}';
/** Of Okabe and Ito: colours that colour-blind readers tell apart. */
const COLOURS = ['#000000', '#56b4e9', '#0072b2', '#d55e00', '#009e73', '#e69f00', '#cc79a7'];

/** A position on the horizontal scale, from a value. */
interface Scale {
  readonly at: (value: number) => number;
  readonly isLogarithmic: boolean;
}

/** The scale of positive values; over more than two powers of ten a linear one would show only the largest. */
function scaleOf(values: readonly number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const [least, most] = [Math.min(...positive), Math.max(...positive)];
  const isLogarithmic = most / least > 100;
  const at = (value: number): number => {
    if (value <= 0) return 0;
    return isLogarithmic
      ? (BAR_WIDTH * (Math.log(value / least) + 1)) / (Math.log(most / least) + 1)
      : (BAR_WIDTH * value) / most;
  };
  return { at, isLogarithmic };
}

/** Figures that fit one scale: those of the most frequent unit, each with a baseline. */
function comparable(figures: readonly Measurement[]): readonly Measurement[] {
  const compared = figures.filter(({ baseline, value }) => baseline !== null && value >= 0 && baseline >= 0);
  const counts = new Map<string, number>();
  for (const { unit } of compared) counts.set(unit, (counts.get(unit) ?? 0) + 1);
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most === undefined || most[1] < 2 ? [] : compared.filter(({ unit }) => unit === most[0]);
}

/**
 * A drawing (SVG): of each figure as a bar and its baseline as a mark on it, or of several variants as dots on one line
 * for each name; null with fewer than two figures.
 */
export function plotOf(title: string, figures: readonly Measurement[]): string | null {
  const comparison = comparisonOf(figures);
  if (comparison !== null) return dotsOf(title, comparison);
  const rows = comparable(figures);
  return rows.length === 0 ? null : barsOf(title, rows);
}

function barsOf(title: string, rows: readonly Measurement[]): string {
  const { at, isLogarithmic } = scaleOf(rows.flatMap(({ value, baseline }) => [value, baseline ?? 0]));
  const lines = rows.map(({ name, value, unit, baseline }, index) => {
    const y = HEAD + index * ROW;
    return [
      labelOf(name, y),
      `<rect x="${LABEL_WIDTH}" y="${y + 4}" width="${at(value).toFixed(1)}" height="${ROW - 8}" class="value"/>`,
      baselineMark(at(baseline ?? 0), y),
      `<text x="${LABEL_WIDTH + BAR_WIDTH + 10}" y="${y + 15}">${inDigits(value)} ${escaped(unit)}</text>`,
    ].join('');
  });
  const caption = `${title}: bars are measured, red marks the baseline${isLogarithmic ? ' (logarithmic)' : ''}`;
  return drawing(caption, HEAD + rows.length * ROW, lines);
}

function dotsOf(title: string, { variants, rows }: Comparison): string {
  const colours = new Map(variants.map((variant, at) => [variant, COLOURS[at % COLOURS.length] ?? '#000']));
  const perLine = Math.floor((LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH) / LEGEND_WIDTH);
  const legend = variants.map((variant, at) => {
    const [x, y] = [16 + (at % perLine) * LEGEND_WIDTH, HEAD + Math.floor(at / perLine) * ROW + 10];
    return `<circle cx="${x}" cy="${y}" r="4" fill="${colours.get(variant)}"/><text x="${x + 9}" y="${y + 4}">${escaped(variant)}</text>`;
  });
  const top = HEAD + Math.ceil(variants.length / perLine) * ROW;
  // Rows of one unit share a scale.
  const scales = new Map(
    [...new Set(rows.map(({ unit }) => unit))].map((unit) => [
      unit,
      scaleOf(rows.filter((row) => row.unit === unit).flatMap(valuesOf)),
    ]),
  );
  const lines = rows.map((row, index) => {
    const [y, scale] = [top + index * ROW, scales.get(row.unit)];
    const at = scale?.at ?? ((value: number) => value);
    const middle = y + ROW / 2;
    const dots = [...row.values].map(
      ([variant, value]) =>
        `<circle cx="${(LABEL_WIDTH + at(value)).toFixed(1)}" cy="${middle}" r="4" fill="${colours.get(variant)}" fill-opacity="0.85"/>`,
    );
    const most = Math.max(...row.values.values());
    return [
      labelOf(row.name, y),
      `<line x1="${LABEL_WIDTH}" x2="${LABEL_WIDTH + BAR_WIDTH}" y1="${middle}" y2="${middle}" class="rule"/>`,
      row.baseline === null ? '' : baselineMark(at(row.baseline), y),
      ...dots,
      `<text x="${LABEL_WIDTH + BAR_WIDTH + 10}" y="${y + 15}">to ${inDigits(most)} ${escaped(row.unit)}</text>`,
    ].join('');
  });
  const isLogarithmic = [...scales.values()].some((scale) => scale.isLogarithmic);
  const marks = rows.some(({ baseline }) => baseline !== null) ? ', red marks the baseline' : '';
  const caption = `${title}${marks}${isLogarithmic ? ' (logarithmic)' : ''}`;
  return drawing(caption, top + rows.length * ROW, [...legend, ...lines]);
}

const valuesOf = ({ baseline, values }: ComparisonRow): number[] => [...values.values(), baseline ?? 0];

const labelOf = (name: string, y: number): string =>
  `<text x="${LABEL_WIDTH - 8}" y="${y + 15}" text-anchor="end">${escaped(name)}</text>`;

function baselineMark(offset: number, y: number): string {
  const x = (LABEL_WIDTH + offset).toFixed(1);
  return `<line x1="${x}" x2="${x}" y1="${y + 1}" y2="${y + ROW - 1}" class="baseline"/>`;
}

function drawing(caption: string, bottom: number, parts: readonly string[]): string {
  const [width, height] = [LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH, bottom + 10];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><style>${STYLE}</style><rect width="100%" height="100%" fill="#fff"/><text x="10" y="18" class="title">${escaped(caption)}</text>${parts.join('')}</svg>\n`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
