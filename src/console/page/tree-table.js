import { h, setWidth } from './dom.js';
import { paged } from './paged.js';
import { matches } from './rows.js';
import { treeOf } from './tree.js';

/**
 * Rows with a parent as a table: each has a line for its name, then one for each of `linesOf(row)`. `first` is
 * the heading of the names, `columns` are the others; `titleOf(row)` is what stands beside the name.
 */
export function treeTable({ rows, root, words, view, first, columns, titleOf, linesOf, nothing }) {
  const tree = treeOf(rows, root).filter(({ path }) => matches(words, path.toLowerCase()));
  if (tree.length === 0) return h('p', { class: 'quiet' }, words.length > 0 ? 'Nothing matches the filter.' : nothing);
  const width = columns.length + 1;
  const body = h('tbody', {});
  const lines = tree.flatMap((entry) => [
    () => head(entry, view, width, titleOf(entry.row)),
    ...linesOf(entry.row).map((line) => () => h('tr', { class: line.class ?? null }, line.cells)),
  ]);
  const more = paged(body, lines, (line) => line());
  const table = h(
    'table',
    { class: 'quota' },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        [first, ...columns].map((name) => h('th', { scope: 'col' }, name)),
      ),
    ),
    body,
  );
  table.style.setProperty('--columns', String(columns.length));
  return h('div', { class: 'tree' }, table, more);
}

function head({ row, depth }, view, width, title) {
  return h(
    'tr',
    { class: 'head' },
    h(
      'th',
      { scope: 'row', colspan: width, class: `depth-${Math.min(depth, 6)}` },
      h(
        'a',
        { class: 'branch', href: `#/${view}/${encodeURIComponent(row.name)}`, 'data-key': `${view}/${row.name}` },
        row.name,
      ),
      title === '' ? null : h('span', { class: 'quiet' }, ` ${title}`),
      ...row.notes.map((note) => h('span', { class: 'remark' }, note)),
    ),
  );
}

/** A meter with its percentage; `part` is undefined where there is no limit. */
export function meter(part, isBad) {
  if (part === undefined) return h('td', { class: 'part' }, '–');
  const fill = h('span', { class: `fill${isBad ? ' full' : ''}` });
  setWidth(fill, part * 100);
  return h(
    'td',
    { class: 'part' },
    h('span', { class: 'meter', 'aria-hidden': true }, fill),
    ` ${Math.round(part * 100)} %`,
  );
}
