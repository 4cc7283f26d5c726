import type { Quantities } from '../../manifests/quantities.js';

/** A pod that uses resources. */
export interface RunningPod {
  /** Unique id: a uid, or namespace and name. */
  readonly id: string;
  readonly consumer: string;
  /** The pod's requests. */
  readonly uses: Quantities;
  readonly priority: number;
  /** The pod is beyond the quota of its group, and is evicted before pods within a quota. */
  readonly isBeyondQuota?: boolean | undefined;
  /** Node of the pod; required for planning with nodes. */
  readonly node?: string | undefined;
  /** The part of the node that the pod has, for `ArbitratedNode.fits`: its GPUs. */
  readonly place?: string | undefined;
  /** Start of the pod, milliseconds. Null if unknown: such pods are ordered by a hash of their ids. */
  readonly startedAt: number | null;
  /** Names of the pod's disruption budgets, as in `Situation.disruptions`. */
  readonly budgets?: readonly string[] | undefined;
  /** Never a victim, as pods of DaemonSets and system pods. */
  readonly isProtected?: boolean | undefined;
  /** Not a victim for now, because its eviction was just refused. */
  readonly isDeferred?: boolean | undefined;
  /** The pod is leaving: its resources become free without an eviction. */
  readonly isLeaving?: boolean | undefined;
}

/**
 * Compares pods by the order of eviction: pods beyond a quota first, then the lowest priority, then the youngest; the
 * order is total.
 */
export function byEvictionOrder(a: RunningPod, b: RunningPod): number {
  const [beyond, other] = [a.isBeyondQuota === true, b.isBeyondQuota === true];
  if (beyond !== other) return beyond ? -1 : 1;
  if (a.priority !== b.priority) return a.priority - b.priority;
  if (a.startedAt !== b.startedAt) {
    // A pod of unknown age comes before pods of known age.
    if (a.startedAt === null || b.startedAt === null) return a.startedAt === null ? -1 : 1;
    return b.startedAt - a.startedAt;
  }
  const [one, two] = a.startedAt === null ? [hashOf(a.id), hashOf(b.id)] : [0, 0];
  return one - two || (a.id < b.id ? -1 : 1);
}

/** FNV-1a hash, which gives ids an arbitrary but stable order. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
