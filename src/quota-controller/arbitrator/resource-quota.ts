import type { Quantities } from '../../quota/arbitrator/index.js';
import type { KubeObject } from '../object.js';
import { readAmounts } from '../../kube/amounts.js';

/** What a ResourceQuota lets all pods of its namespace request. */
export interface NamespaceQuota {
  readonly namespace: string;
  readonly hard: Quantities;
}

/** Keys that mean requests without saying so. */
const BARE: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage']);
const REQUESTS = 'requests.';

/** Reads a ResourceQuota; null for one that limits some pods only. */
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
    return BARE.has(key) ? [[key, amount]] : [];
  });
  return { namespace: metadata?.namespace ?? '', hard: readAmounts(Object.fromEntries(requests), 'down').amounts };
}
