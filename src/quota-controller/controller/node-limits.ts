import { timestamp } from '../../kube/json.js';
import type { Node } from '../../kube/node.js';
import type { ComputedLimit, ComputedLimits, NodeLimit } from '../../kube/quota/node-limit.js';
import type { Key } from '../../manifests/key.js';
import { selectsLabels } from '../../manifests/label-selector.js';
import { formatQuantity, readQuantity, type Quantity } from '../../manifests/quantity.js';

/** Limits from nodes, and when one of them shrinks next. */
export interface NodeLimits {
  readonly limits: ComputedLimits;
  /** Milliseconds; null if no limit is about to shrink. */
  readonly nextAt: number | null;
}

/**
 * Computes limits from the nodes that take pods. A limit grows with its nodes at once. It shrinks only after nodes have
 * been missing for its `shrinkAfterSeconds`, so that a restart of nodes changes nothing; `before` keeps since when.
 */
export function nodeLimitsOf(
  limits: readonly NodeLimit[],
  nodes: readonly Node[],
  before: ComputedLimits,
  now: number,
): NodeLimits {
  const taking = nodes.filter(({ takesPods }) => takesPods);
  const computed = limits.map((limit) => [limit.key, next(limit, taking, before[limit.key] ?? null, now)] as const);
  const times = computed.flatMap(([, { shrinksAt }]) => (shrinksAt === undefined ? [] : [Date.parse(shrinksAt)]));
  return { limits: Object.fromEntries(computed), nextAt: times.length === 0 ? null : Math.min(...times) };
}

function next(limit: NodeLimit, nodes: readonly Node[], before: ComputedLimit | null, now: number): ComputedLimit {
  const { key, percent, nodeSelector, shrinkAfterSeconds } = limit;
  const counted = nodes.filter(({ labels }) => nodeSelector === null || selectsLabels(nodeSelector, labels));
  const total = counted.reduce((sum, node) => sum + amountOn(node, key), 0);
  const wanted = bounded(limit, Math.floor((total * percent) / 100));
  const after: ComputedLimit = {
    limit: formatQuantity(key, wanted),
    total: formatQuantity(key, total),
    nodes: counted.length,
  };
  if (before === null) return after;
  const [had, hadTotal] = [bounded(limit, amountOf(key, before.limit)), amountOf(key, before.total)];
  // A limit that shrinks without nodes that went was lowered by its author.
  if (wanted >= had || total >= hadTotal) return after;
  const shrinksAt = Date.parse(before.shrinksAt ?? '') || now + shrinkAfterSeconds * 1000;
  if (now >= shrinksAt) return after;
  return {
    ...before,
    limit: formatQuantity(key, had),
    shrinksTo: after.limit,
    shrinksAt: timestamp(shrinksAt),
  };
}

/** What a node has of the resource of a key; a typed key, such as `requests.nvidia.com/gpu.A100`, has no type there. */
function amountOn({ allocatable, podSlots }: Node, key: Key): number {
  if (key === 'pods') return podSlots;
  const resource = key.replace(/^(?:requests|limits)\./u, '');
  for (let end = resource.length; end > 0; end = resource.lastIndexOf('.', end - 1)) {
    const amount = allocatable.get(resource.slice(0, end));
    if (amount !== undefined) return amount;
  }
  return 0;
}

function bounded({ key, min, max }: NodeLimit, amount: number): number {
  const least = min === null ? 0 : amountOf(key, min);
  return Math.max(least, max === null ? amount : Math.min(amount, amountOf(key, max)));
}

function amountOf(key: Key, quantity: Quantity): number {
  const read = readQuantity(key, quantity, 'down');
  return read.ok ? Number(read.amount) : 0;
}
