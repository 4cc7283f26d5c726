import { byName } from './rows.js';

/**
 * Rows with a `parent`, each after its parent: `{ row, depth, path }`, where the path has the names from the root on. A row
 * whose parent is missing is a root. With `root`, only that row and those below it.
 */
export function treeOf(rows, root = '') {
  const all = [...rows].sort((a, b) => byName(a.name, b.name));
  const names = new Set(all.map(({ name }) => name));
  const below = Map.groupBy(all, ({ parent }) => (names.has(parent) ? parent : ''));
  const found = [];
  const seen = new Set();
  const add = (row, depth, path) => {
    if (seen.has(row.name)) return;
    seen.add(row.name);
    const own = `${path}${row.name}`;
    found.push({ row, depth, path: own });
    for (const child of below.get(row.name) ?? []) add(child, depth + 1, `${own}/`);
  };
  const tops = root === '' ? [...(below.get('') ?? []), ...all] : all.filter(({ name }) => name === root);
  for (const row of tops) add(row, 0, '');
  return found;
}
