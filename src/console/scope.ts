import { API_GROUP } from '../kube/quota/names.js';
import type { ResourceAttributes } from '../kube/user-review.js';
import { TABLE_NAMES, type Changes, type Keyed, type TableName } from './cluster-model.js';

/** Namespaces whose rows of a table a reader may see; null: all rows. */
export type SeenNamespaces = ReadonlySet<string> | null;

/** The tables that a reader may list, each with its namespaces. */
export interface Scope {
  readonly tables: ReadonlyMap<TableName, SeenNamespaces>;
}

/** A reader without limits, where no token is required. */
export const EVERYTHING: Scope = { tables: new Map(TABLE_NAMES.map((name) => [name, null])) };

type ListedResource = Pick<ResourceAttributes, 'group' | 'resource'>;

/** The objects that rows of a table are made from. A user who may list them sees the rows. */
export const LISTED_RESOURCES: {
  readonly [name in TableName]: { readonly isNamespaced: boolean; readonly resources: readonly ListedResource[] };
} = {
  nodes: { isNamespaced: false, resources: [{ group: '', resource: 'nodes' }] },
  pods: { isNamespaced: true, resources: [{ group: '', resource: 'pods' }] },
  groups: { isNamespaced: false, resources: [{ group: API_GROUP, resource: 'bizgroupresourcequotas' }] },
  shares: {
    isNamespaced: false,
    resources: [
      { group: API_GROUP, resource: 'consumers' },
      { group: API_GROUP, resource: 'allocations' },
    ],
  },
  events: { isNamespaced: true, resources: [{ group: '', resource: 'events' }] },
  claims: { isNamespaced: true, resources: [{ group: 'resource.k8s.io', resource: 'resourceclaims' }] },
};

/** Whether a scope shows nothing at all. */
export function isBlind({ tables }: Scope): boolean {
  return [...tables.values()].every((seen) => seen?.size === 0);
}

export function sees({ tables }: Scope, table: TableName, namespace: string | null): boolean {
  const seen = tables.get(table);
  return seen === null || (seen !== undefined && namespace !== null && seen.has(namespace));
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

/** A text that is equal for scopes that show the same. */
export function scopeKey({ tables }: Scope): string {
  return JSON.stringify([...tables].sort().map(([table, seen]) => [table, seen === null ? null : [...seen].sort()]));
}

export function sameScope({ tables: a }: Scope, { tables: b }: Scope): boolean {
  return a.size === b.size && [...a].every(([table, seen]) => b.has(table) && equal(seen, b.get(table) ?? null));
}

function equal(a: SeenNamespaces, b: SeenNamespaces): boolean {
  if (a === null || b === null) return a === b;
  return a.size === b.size && [...a].every((one) => b.has(one));
}
