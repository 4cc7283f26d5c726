import type { Line, Style } from './text.js';

/** Select Graphic Rendition parameters (ECMA-48). */
const COLORS: Readonly<Record<Style, string>> = {
  good: '32',
  warn: '33',
  bad: '31',
  second: '35',
  quiet: '90',
  strong: '1',
  selected: '7',
};

/** What remains without colours: the selection must be seen. */
const COLORLESS: ReadonlySet<Style> = new Set(['strong', 'selected']);

/** A line as a terminal takes it. */
export function paint(line: Line, color: boolean): string {
  return line
    .map(({ text, style }) =>
      style === undefined || (!color && !COLORLESS.has(style)) ? text : `\u001b[${COLORS[style]}m${text}\u001b[0m`,
    )
    .join('');
}
