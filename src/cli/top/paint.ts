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

/** Styles that are kept without colours, so that the selection stays visible. */
const COLORLESS: ReadonlySet<Style> = new Set(['strong', 'selected']);

/** A line with the escape sequences of a terminal. */
export function paint(line: Line, color: boolean): string {
  return line
    .map(({ text, style }) =>
      style === undefined || (!color && !COLORLESS.has(style)) ? text : `\u001b[${COLORS[style]}m${text}\u001b[0m`,
    )
    .join('');
}
