import type { ResourceAttributes } from '../kube/user-review.js';
import { TABLE_NAMES, type Changes, type Keyed, type TableName } from './cluster-model.js';

/** What a reader may see. */
export interface Scope {
  /** Tables of the cluster that the reader may list. Rows with a namespace depend on the namespace alone. */
  readonly tables: ReadonlySet<TableName>;
  /** Null: all namespaces. */
  readonly namespaces: ReadonlySet<string> | null;
}

/** A reader without limits, where no token is asked for. */
export const EVERYTHING: Scope = { tables: new Set(TABLE_NAMES), namespaces: null };

/** What a user must be allowed to list to see a table of the cluster; `PODS` is the same for namespaces. */
export const LISTED_RESOURCES: { readonly [name in TableName]?: Pick<ResourceAttributes, 'group' | 'resource'> } = {
  nodes: { group: '', resource: 'nodes' },
};

export const PODS: Pick<ResourceAttributes, 'group' | 'resource'> = { group: '', resource: 'pods' };

export function sees({ tables, namespaces }: Scope, table: TableName, namespace: string | null): boolean {
  return namespace === null ? tables.has(table) : namespaces === null || namespaces.has(namespace);
}

/** The rows that a reader may see. */
export function visible(scope: Scope, changes: Changes): Changes {
  return Object.fromEntries(
    TABLE_NAMES.map((table) => [
      table,
      (changes[table] as readonly Keyed<unknown>[]).filter(({ namespace }) => sees(scope, table, namespace)),
    ]),
  ) as unknown as Changes;
}

export function sameScope(a: Scope, b: Scope): boolean {
  return equal(a.tables, b.tables) && equal(a.namespaces, b.namespaces);
}

function equal(a: ReadonlySet<string> | null, b: ReadonlySet<string> | null): boolean {
  if (a === null || b === null) return a === b;
  return a.size === b.size && [...a].every((one) => b.has(one));
}
