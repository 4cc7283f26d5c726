import { inDigits, type Measurement } from '../report.js';

const ROW = 22;
const LABEL_WIDTH = 420;
const BAR_WIDTH = 360;
const VALUE_WIDTH = 130;
const HEAD = 30;

/** Figures that fit one scale: those of the most frequent unit, each with a baseline. */
function comparable(figures: readonly Measurement[]): readonly Measurement[] {
  const compared = figures.filter(({ baseline, value }) => baseline !== null && value >= 0 && baseline >= 0);
  const counts = new Map<string, number>();
  for (const { unit } of compared) counts.set(unit, (counts.get(unit) ?? 0) + 1);
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most === undefined || most[1] < 2 ? [] : compared.filter(({ unit }) => unit === most[0]);
}

/** A drawing (SVG) of each figure as a bar and its baseline as a mark on it; null with fewer than two figures. */
export function plotOf(title: string, figures: readonly Measurement[]): string | null {
  const rows = comparable(figures);
  if (rows.length === 0) return null;
  const values = rows.flatMap(({ value, baseline }) => [value, baseline ?? 0]).filter((value) => value > 0);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  // Over more than two powers of ten, a linear scale would show only the largest figure.
  const wide = most / least > 100;
  const at = (value: number): number => {
    if (value <= 0) return 0;
    return wide
      ? (BAR_WIDTH * (Math.log(value / least) + 1)) / (Math.log(most / least) + 1)
      : (BAR_WIDTH * value) / most;
  };
  const lines = rows.map(({ name, value, unit, baseline }, index) => {
    const y = HEAD + index * ROW;
    const mark = LABEL_WIDTH + at(baseline ?? 0);
    return [
      `<text x="${LABEL_WIDTH - 8}" y="${y + 15}" text-anchor="end">${escaped(name)}</text>`,
      `<rect x="${LABEL_WIDTH}" y="${y + 4}" width="${at(value).toFixed(1)}" height="${ROW - 8}" class="value"/>`,
      `<line x1="${mark.toFixed(1)}" x2="${mark.toFixed(1)}" y1="${y + 1}" y2="${y + ROW - 1}" class="baseline"/>`,
      `<text x="${LABEL_WIDTH + BAR_WIDTH + 10}" y="${y + 15}">${inDigits(value)} ${escaped(unit)}</text>`,
    ].join('');
  });
  const [width, height] = [LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH, HEAD + rows.length * ROW + 10];
  const style =
    'text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.value{fill:#4a7fb5}.baseline{stroke:#d1495b;stroke-width:2}';
  const caption = `${title}: bars are measured, red marks the baseline${wide ? ' (logarithmic)' : ''}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><style>${style}</style><rect width="100%" height="100%" fill="#fff"/><text x="10" y="18" class="title">${escaped(caption)}</text>${lines.join('')}</svg>\n`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
