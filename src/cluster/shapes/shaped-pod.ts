import type { Pod } from '../../kube/pod.js';
import type { Quantities } from '../../manifests/quantities.js';
import { readGpuHolding, type GpuHolding } from './gpu-holding.js';

/** What a pod requests, and where. */
export interface ShapedPod {
  /** Null until the pod is scheduled. */
  readonly node: string | null;
  /** The pod's requests, as the scheduler counts them. */
  readonly uses: Quantities;
  readonly gpus: GpuHolding;
  readonly isLeaving: boolean;
}

/** Resources that the quota engine derives to compare GPU models; nodes do not have them. */
const DERIVED: ReadonlySet<string> = new Set(['gpu.cards', 'gpu.memory']);

/**
 * Null for a finished pod, and for a pending pod that is gated, is being deleted, or that no node would take even if it
 * were empty.
 */
export function shapedPod(pod: Pod): ShapedPod | null {
  const { node, isLeaving } = pod;
  if (pod.isDone) return null;
  if (node === null && (isLeaving || pod.isGated || isUnschedulableAnywhere(pod.unscheduled))) return null;
  const needs = pod.needs();
  const uses = new Map(
    Object.entries(needs.ok ? needs.requests : {}).flatMap(([resource, amount]) =>
      amount > 0n && !DERIVED.has(resource) ? [[resource, Number(amount)]] : [],
    ),
  );
  return { node, uses, gpus: readGpuHolding(pod), isLeaving };
}

/**
 * Whether kube-scheduler reports causes other than missing resources, such as a selector that matches no node or a
 * missing volume. Evictions would not help such a pod. A message in another form, from another scheduler, counts as a
 * lack of resources.
 */
function isUnschedulableAnywhere(unscheduled: string): boolean {
  return /^0\/\d+ nodes are available/.test(unscheduled) && !/\bInsufficient\b/.test(unscheduled);
}
