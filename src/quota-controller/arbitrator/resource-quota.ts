import { isStorage, limitedResource } from '../../quota/index.js';
import type { Quantities } from '../../manifests/quantities.js';
import type { KubeObject } from '../../kube/object.js';
import { readAmounts } from '../../kube/amounts.js';

/** The total requests, and limits, that a ResourceQuota allows in its namespace. */
export interface NamespaceQuota {
  readonly namespace: string;
  readonly hard: Quantities;
}

/** Keys without a prefix that limit requests. */
const BARE: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage']);
const REQUESTS = 'requests.';

/** Reads a ResourceQuota; null for one with scopes, which limits only some pods. */
export function readResourceQuota(object: unknown): NamespaceQuota | null {
  const { metadata, spec } = object as KubeObject;
  const {
    hard = {},
    scopes = [],
    scopeSelector,
  } = (spec ?? {}) as {
    readonly hard?: Readonly<Record<string, string>>;
    readonly scopes?: readonly string[];
    readonly scopeSelector?: unknown;
  };
  if (scopes.length > 0 || scopeSelector !== undefined) return null;
  const requests = Object.entries(hard).flatMap(([key, amount]) => {
    if (key.startsWith(REQUESTS)) return [[key.slice(REQUESTS.length), amount]];
    return BARE.has(key) || isStorage(key) || limitedResource(key) !== null ? [[key, amount]] : [];
  });
  return { namespace: metadata?.namespace ?? '', hard: readAmounts(Object.fromEntries(requests), 'down').amounts };
}
