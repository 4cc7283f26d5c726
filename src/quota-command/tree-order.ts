import type { GroupStatus } from '../quota/index.js';

/** A group and its position in a displayed tree. */
export interface TreeRow {
  readonly status: GroupStatus;
  /** Text before the name. */
  readonly indent: string;
}

/** Groups sorted by name, each followed by its descendants. A group with a missing parent counts as a root. */
export function inTreeOrder(statuses: readonly GroupStatus[]): readonly TreeRow[] {
  const names = new Set(statuses.map(({ name }) => name));
  const below = new Map<string, GroupStatus[]>();
  for (const status of statuses) {
    const parent = names.has(status.parent) ? status.parent : '';
    below.set(parent, [...(below.get(parent) ?? []), status]);
  }
  const ordered: TreeRow[] = [];
  const add = (parent: string, indent: string): void => {
    for (const status of [...(below.get(parent) ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      ordered.push({ status, indent });
      add(status.name, `${indent}  `);
    }
  };
  add('', '');
  return ordered;
}

/** A group and all its descendants. */
export function subtreeOf(statuses: readonly GroupStatus[], root: string): readonly GroupStatus[] {
  const byName = new Map(statuses.map((status) => [status.name, status]));
  const below = ({ children }: GroupStatus): readonly GroupStatus[] =>
    children.flatMap((name) => {
      const child = byName.get(name);
      return child === undefined ? [] : [child, ...below(child)];
    });
  const top = byName.get(root);
  return top === undefined ? [] : [top, ...below(top)];
}
