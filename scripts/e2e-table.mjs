// node scripts/e2e-table.mjs RUN [DOCUMENT]: writes what a run of the end-to-end tests printed (.ci/run keeps it as
// build/e2e.tap) into the table of docs/reference/comparison.md: the column of its Kubernetes version.
import { readFileSync, writeFileSync } from 'node:fs';

const HEADER = '| file of test/e2e |';
const [, , run, document = 'docs/reference/comparison.md'] = process.argv;

/** What each file of a run printed, by Kubernetes version: `of('1.37').get('agent')` is `26 of 26`. */
function results(text) {
  const columns = new Map();
  const [, ...parts] = text.split(/^# (\S+)\.e2e\.js on Kubernetes (\S+)$/mu);
  for (let at = 0; at < parts.length; at += 3) {
    const [file, version, output] = parts.slice(at, at + 3);
    if (!columns.has(version)) columns.set(version, new Map());
    columns.get(version).set(file, cellOf(output));
  }
  return columns;
}

/** The last line of a TAP run has the counts of its assertions. */
function cellOf(output) {
  const counts = /^# \{ total: (\d+)(.*) \}$/gmu;
  const [, total, rest] = [...output.matchAll(counts)].at(-1) ?? [];
  if (total === undefined) return '**did not end**';
  const count = (name) => Number(new RegExp(`${name}: (\\d+)`, 'u').exec(rest)?.[1] ?? 0);
  const of = `${count('pass')} of ${total - count('skip')}`;
  return `${count('fail') > 0 ? `**${of}**` : of}${count('skip') > 0 ? `, ${count('skip')} skipped` : ''}`;
}

/** The lines of a table with the cells of a run; a file without a row gets one at the end. */
function updated(lines, version, cells) {
  const rows = lines.map((line) => line.slice(2, -2).split(' | '));
  const [header] = rows;
  let column = header.findIndex((cell, at) => at > 0 && (cell === version || cell.startsWith(`${version}.`)));
  if (column < 0) {
    column = header.length;
    for (const [at, row] of rows.entries()) row.push(at === 0 ? version : '-');
  }
  const body = rows.slice(2);
  for (const [file, cell] of cells) {
    let row = body.find(([name]) => name.split(',')[0] === file);
    if (row === undefined) body.push((row = [file, ...header.slice(1).map(() => '-')]));
    row[column] = cell;
  }
  const rule = `|${'---|'.repeat(header.length)}`;
  return [header, null, ...body].map((row) => (row === null ? rule : `| ${row.join(' | ')} |`));
}

if (run === undefined) throw new Error('expected the output of a run, such as build/e2e.tap');
const lines = readFileSync(document, 'utf8').split('\n');
const begin = lines.findIndex((line) => line.startsWith(HEADER));
if (begin < 0) throw new Error(`${document} has no table that begins with ${HEADER}`);
let end = begin;
while (lines[end]?.startsWith('|') === true) end += 1;
let table = lines.slice(begin, end);
for (const [version, cells] of results(readFileSync(run, 'utf8'))) table = updated(table, version, cells);
writeFileSync(document, [...lines.slice(0, begin), ...table, ...lines.slice(end)].join('\n'));
