import { h } from './dom.js';

/** A table whose lines begin with their names; a cell may be a `td` that is made already. */
export function tableOf(columns, lines) {
  const table = h(
    'table',
    { class: 'quota' },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        columns.map((name) => h('th', { scope: 'col' }, name)),
      ),
    ),
    h(
      'tbody',
      {},
      lines.map(({ class: kind, cells: [name, ...cells] }) =>
        h(
          'tr',
          { class: kind },
          h('th', { scope: 'row', class: 'limit-key' }, name),
          cells.map((cell, at) => cellOf(cell, columns[at + 1])),
        ),
      ),
    ),
  );
  table.style.setProperty('--columns', String(columns.length - 1));
  return h('div', { class: 'tree' }, table);
}

/** A text of more characters is long. */
const SHORT = 12;

function cellOf(cell, head) {
  if (cell instanceof window.HTMLTableCellElement) return cell;
  const isLong = typeof cell === 'string' && cell.length > SHORT;
  return h(
    'td',
    { class: isLong ? 'long' : null, 'data-head': isLong ? head : null },
    typeof cell === 'number' ? cell.toLocaleString('en') : cell,
  );
}
