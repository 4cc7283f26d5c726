import type { Quantities } from '../../manifests/quantities.js';
import type { NodeSelector } from '../../manifests/node-selector.js';
import { readPod } from '../../kube/pod.js';
import type { Toleration } from '../../manifests/taint.js';
import { startOf } from '../controller/pod-object.js';
import { readGpuHolding, type GpuHolding } from './gpu-holding.js';

/** The fields of a pod that the arbitrator needs. */
export interface ClusterPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Null until the pod is scheduled. */
  readonly node: string | null;
  /** The pod's requests, as the scheduler counts them. */
  readonly uses: Quantities;
  readonly priority: number;
  /** When the pod was scheduled, milliseconds. */
  readonly startedAt: number | null;
  readonly createdAt: number | null;
  readonly isLeaving: boolean;
  /** The node that is nominated for the pod; null for none. */
  readonly nominatedNode: string | null;
  readonly selector: NodeSelector;
  readonly tolerations: readonly Toleration[];
  readonly gpus: GpuHolding;
  /** An eviction would achieve nothing or do harm: the pod belongs to a DaemonSet, is a static pod, or is critical. */
  readonly isUnevictable: boolean;
}

/** Resources that the quota engine derives to compare GPU models; nodes do not have them. */
const DERIVED: ReadonlySet<string> = new Set(['gpu.cards', 'gpu.memory']);
/** Priority of system-cluster-critical; the priority of system-node-critical is higher. */
const CRITICAL_PRIORITY = 2_000_000_000;

/**
 * Reads a pod; null for a finished pod, and for a pending pod that is gated, is being deleted, or that no node would
 * take even if it were empty.
 */
export function readClusterPod(object: unknown): ClusterPod | null {
  const pod = readPod(object);
  const { uid, namespace, name, labels, node, priority, isLeaving, controller } = pod;
  if (uid === '' || pod.isDone) return null;
  if (node === null && (isLeaving || pod.isGated || isUnschedulableAnywhere(pod.unscheduled))) return null;
  const needs = pod.needs();
  const uses = new Map(
    Object.entries(needs.ok ? needs.requests : {}).flatMap(([resource, amount]) =>
      amount > 0n && !DERIVED.has(resource) ? [[resource, Number(amount)]] : [],
    ),
  );
  return {
    uid,
    namespace,
    name,
    labels,
    node,
    uses,
    priority,
    startedAt: startOf(pod),
    createdAt: pod.createdAt,
    isLeaving,
    nominatedNode: pod.nominatedNode,
    selector: { labels: pod.nodeSelector, terms: pod.nodeTerms },
    tolerations: pod.tolerations,
    gpus: readGpuHolding(pod),
    isUnevictable:
      controller?.kind === 'DaemonSet' || controller?.kind === 'Node' || pod.isMirror || priority >= CRITICAL_PRIORITY,
  };
}

/**
 * Whether kube-scheduler reports causes other than missing resources, such as a selector that matches no node or a
 * missing volume. Evictions would not help such a pod. A message in another form, from another scheduler, counts as a
 * lack of resources.
 */
function isUnschedulableAnywhere(unscheduled: string): boolean {
  return /^0\/\d+ nodes are available/.test(unscheduled) && !/\bInsufficient\b/.test(unscheduled);
}
