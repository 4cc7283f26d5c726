import { readFileSync, writeFileSync } from 'node:fs';
import type { LawFigures, Table } from './law.js';

const [BEGIN, END] = ['<!-- law: begin -->', '<!-- law: end -->'];

/** Replaces what stands between the marks of a document by these figures; fails if it has no marks. */
export function writeLaw(path: string, figures: LawFigures, machine: string): void {
  const text = readFileSync(path, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${path} has no lines ${BEGIN} and ${END} for the tables`);
  writeFileSync(path, `${text.slice(0, from)}${BEGIN}\n\n${textOf(figures, machine)}\n\n${text.slice(to)}`);
}

/** The figures as Markdown. */
export function textOf({ tables, leftOut }: LawFigures, machine: string): string {
  const missing =
    leftOut.length === 0 ? [] : [`The budget left no time for:\n\n${leftOut.map((one) => `- ${one}`).join('\n')}`];
  return [machine, ...tables.map(tableText), ...missing].join('\n\n');
}

function tableText({ title, columns, rows }: Table): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '/')).join(' | ')} |`;
  const filled = rows.map((row) => [...row, ...Array.from({ length: columns.length - row.length }, () => '')]);
  return [`### ${title}`, '', line(columns), line(columns.map(() => '---')), ...filled.map(line)].join('\n');
}
