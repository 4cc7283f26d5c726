import type { Quantities } from '../../manifests/quantities.js';

/** A pod without a node. */
export interface WaitingPod {
  readonly id: string;
  readonly consumer: string;
  /** The pod's requests. */
  readonly uses: Quantities;
  readonly priority: number;
  /** The pod is beyond the quota of its group: no pod within a quota is evicted for it. */
  readonly isBeyondQuota?: boolean | undefined;
  /** Only free room counts: nothing is evicted for it. */
  readonly isPatient?: boolean | undefined;
  /** Other consumers keep their fair shares: victims go only as far as their consumer stays at its share. */
  readonly leavesShares?: boolean | undefined;
  /** Pods of its own consumer with a lower priority than this are evicted for it; none without. */
  readonly takesBelow?: number | undefined;
  /** Creation of the pod, milliseconds; null if unknown. */
  readonly since: number | null;
  /** Nodes that the pod's selectors, affinity and tolerations allow; null for all. */
  readonly nodes: ReadonlySet<string> | null;
  /** The node that is nominated for the pod; null for none. */
  readonly nominated?: string | null | undefined;
}

/** Compares waiting pods by the order in which the scheduler serves them. */
export function bySchedulingOrder(a: WaitingPod, b: WaitingPod): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  const [one, other] = [a.since ?? Infinity, b.since ?? Infinity];
  if (one !== other) return one < other ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
