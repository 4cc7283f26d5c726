import type { SortKey } from './sample.js';
import type { TitleTarget, TopState } from './state.js';
import { cut, cutMiddle, padEnd, padStart, type Line, type Span } from './text.js';

/** A column of a table. */
export interface Column {
  readonly title: string;
  readonly width: number;
  readonly left?: true;
  readonly sort?: SortKey;
}

/** Columns with their places: the flexible one takes the remaining width, at the left or the right end. */
export interface Table {
  readonly columns: readonly Column[];
  /** Position of the cell that is given first. */
  readonly flexible: number;
}

export function tableOf(flexible: Column, all: readonly Column[], columns: number, atEnd = false): Table {
  const takenBy = (some: readonly Column[]): number => some.reduce((sum, { width }) => sum + width + 1, 0);
  const count = all.findLastIndex((_, at) => columns - takenBy(all.slice(0, at + 1)) >= flexible.width) + 1;
  const fixed = all.slice(0, count);
  const wide: Column = { ...flexible, width: Math.max(1, columns - takenBy(fixed)) };
  return atEnd ? { columns: [...fixed, wide], flexible: count } : { columns: [wide, ...fixed], flexible: 0 };
}

/** A line of the table; the flexible cell is given first, and cells without a column are left out. */
export function lineOf({ columns, flexible }: Table, [first = '', ...rest]: readonly (string | Span)[]): Line {
  const cells = flexible === 0 ? [first, ...rest] : [...rest.slice(0, flexible), first];
  return columns.flatMap((column, at): Line => {
    const cell = cells[at] ?? '';
    const span: Span = typeof cell === 'string' ? { text: cell } : cell;
    const isName = at === flexible && flexible === 0;
    const fitting = isName ? cutMiddle(span.text, column.width) : cut(span.text, column.width);
    const text = column.left === true ? padEnd(fitting, column.width) : padStart(fitting, column.width);
    return [...(at === 0 ? [] : [{ text: ' ' }]), { ...span, text }];
  });
}

export interface Titles {
  readonly line: Line;
  readonly targets: readonly TitleTarget[];
}

/** The line of titles, and where each can be clicked to sort. */
export function titlesOf(table: Table, { sort, reversed, open }: TopState): Titles {
  const spans: Span[] = [];
  const targets: TitleTarget[] = [];
  let from = 0;
  for (const column of table.columns) {
    if (from > 0) {
      spans.push({ text: ' ' });
      from += 1;
    }
    const isSort = open === null && column.sort === sort;
    const arrow = isSort ? (reversed ? '▲' : '▼') : '';
    const title = cut(`${column.title}${arrow}`, column.width);
    const text = column.left === true ? padEnd(title, column.width) : padStart(title, column.width);
    spans.push({ text, style: isSort ? 'strong' : 'quiet' });
    if (column.sort !== undefined) targets.push({ from, to: from + column.width, sort: column.sort });
    from += column.width;
  }
  return { line: spans, targets };
}
