import type { Quantities } from '../../manifests/quantities.js';
import type { NodeSelector } from '../../manifests/node-selector.js';
import { shapedPod, type ShapedPod } from '../../cluster/shapes/shaped-pod.js';
import { readPod, type Pod } from '../../kube/pod.js';
import type { Toleration } from '../../manifests/taint.js';
import { startOf } from '../workloads/pod-object.js';

/** The fields of a pod that the arbitrator needs. */
export interface ClusterPod extends ShapedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly priority: number;
  /** When the pod was scheduled, milliseconds. */
  readonly startedAt: number | null;
  readonly createdAt: number | null;
  /** The node that is nominated for the pod; null for none. */
  readonly nominatedNode: string | null;
  /** The pod's limits; a resource without a limit is missing. */
  readonly limits: Quantities;
  readonly selector: NodeSelector;
  readonly tolerations: readonly Toleration[];
  /** An eviction would achieve nothing or do harm: the pod belongs to a DaemonSet, is a static pod, or is critical. */
  readonly isUnevictable: boolean;
}

/** Priority of system-cluster-critical; the priority of system-node-critical is higher. */
const CRITICAL_PRIORITY = 2_000_000_000;

/** Reads a pod; null for one that is not `shapedPod`, and for one without UID. */
export function readClusterPod(object: unknown): ClusterPod | null {
  const pod = readPod(object);
  const { uid, namespace, name, labels, priority, controller } = pod;
  const shaped = uid === '' ? null : shapedPod(pod);
  if (shaped === null) return null;
  return {
    ...shaped,
    uid,
    namespace,
    name,
    labels,
    priority,
    startedAt: startOf(pod),
    createdAt: pod.createdAt,
    nominatedNode: pod.nominatedNode,
    limits: limitsOf(pod),
    selector: { labels: pod.nodeSelector, terms: pod.nodeTerms },
    tolerations: pod.tolerations,
    isUnevictable:
      controller?.kind === 'DaemonSet' || controller?.kind === 'Node' || pod.isMirror || priority >= CRITICAL_PRIORITY,
  };
}

function limitsOf(pod: Pod): Quantities {
  const needs = pod.needs();
  return new Map(Object.entries(needs.ok ? needs.limits : {}).map(([resource, amount]) => [resource, Number(amount)]));
}
