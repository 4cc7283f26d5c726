import stringWidth from 'string-width';

/** Style of a part of a line; `paint.ts` maps it to codes of the terminal. */
export type Style = 'good' | 'warn' | 'bad' | 'second' | 'quiet' | 'strong' | 'selected';

/** A part of a line, without control characters. */
export interface Span {
  readonly text: string;
  readonly style?: Style;
}

/** One line of the screen. */
export type Line = readonly Span[];

const ASCII = /^[\x20-\x7e]*$/u;
const CHARACTERS = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Columns that the text takes on a terminal. */
export function columnsOf(text: string): number {
  return ASCII.test(text) ? text.length : stringWidth(text);
}

export function columnsOfLine(line: Line): number {
  return line.reduce((sum, { text }) => sum + columnsOf(text), 0);
}

/** The longest beginning of the text that takes at most `columns`. */
function head(text: string, columns: number): string {
  if (ASCII.test(text)) return text.slice(0, Math.max(0, columns));
  let end = 0;
  for (const { segment, index } of CHARACTERS.segment(text)) {
    // The width of a text can differ from the sum of its characters' widths, so the whole text is measured.
    if (columnsOf(text.slice(0, index + segment.length)) > columns) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}

/** The longest end of the text that takes at most `columns`. */
function tail(text: string, columns: number): string {
  if (ASCII.test(text)) return columns <= 0 ? '' : text.slice(-columns);
  const starts = [...CHARACTERS.segment(text)].map(({ index }) => index).reverse();
  let from = text.length;
  for (const start of starts) {
    if (columnsOf(text.slice(start)) > columns) break;
    from = start;
  }
  return text.slice(from);
}

/** Shortens a text at its end. */
export function cut(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  return columns <= 0 ? '' : `${head(text, columns - 1)}…`;
}

/** Shortens a name in its middle: pods of one workload differ at their end. */
export function cutMiddle(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  if (columns <= 0) return '';
  const end = Math.floor((columns - 1) / 2);
  return `${head(text, columns - 1 - end)}…${tail(text, end)}`;
}

/** Fills a text up with spaces behind it. */
export function padEnd(text: string, columns: number): string {
  return `${text}${' '.repeat(Math.max(0, columns - columnsOf(text)))}`;
}

/** Fills a text up with spaces before it. */
export function padStart(text: string, columns: number): string {
  return `${' '.repeat(Math.max(0, columns - columnsOf(text)))}${text}`;
}

/** A line that takes at most `columns`. */
export function cutLine(line: Line, columns: number): Line {
  const kept: Span[] = [];
  let left = columns;
  for (const span of line) {
    const text = cut(span.text, left);
    if (text !== '') kept.push({ ...span, text });
    left -= columnsOf(text);
    if (text !== span.text) break;
  }
  return kept;
}

/** A line that takes exactly `columns`. */
export function fillLine(line: Line, columns: number): Line {
  const kept = cutLine(line, columns);
  const rest = columns - columnsOfLine(kept);
  return rest > 0 ? [...kept, { text: ' '.repeat(rest) }] : kept;
}

/** The lines of a text that is too long for one; at most `lines`, the last one cut. */
export function wrap(text: string, columns: number, lines: number): string[] {
  const wrapped: string[] = [];
  let rest = text;
  while (rest !== '' && wrapped.length < lines) {
    const isLast = wrapped.length === lines - 1;
    const line = isLast ? cut(rest, columns) : head(rest, columns);
    wrapped.push(line);
    if (isLast || line === '') break;
    rest = rest.slice(line.length);
  }
  return wrapped;
}

export function plainText(line: Line): string {
  return line.map(({ text }) => text).join('');
}
