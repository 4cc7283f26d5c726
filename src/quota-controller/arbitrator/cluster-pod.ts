import type { Quantities } from '../../quota/arbitrator/index.js';
import type { NodeSelector } from '../../kube/node-selector.js';
import { readPod } from '../../kube/pod.js';
import type { Toleration } from '../../kube/taint.js';
import { startOf } from '../controller/pod-object.js';
import { readGpuHolding, type GpuHolding } from './gpu-holding.js';

/** What is kept of a pod that holds or asks for something. */
export interface ClusterPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Null until the scheduler has found one. */
  readonly node: string | null;
  /** Its requests, as the scheduler counts them. */
  readonly uses: Quantities;
  readonly priority: number;
  /** When it was scheduled, milliseconds. */
  readonly startedAt: number | null;
  readonly createdAt: number | null;
  readonly isLeaving: boolean;
  /** The node on which room is kept for it; null for none. */
  readonly nominatedNode: string | null;
  readonly selector: NodeSelector;
  readonly tolerations: readonly Toleration[];
  readonly gpus: GpuHolding;
  /**
   * To evict it would be in vain or do harm: a daemon set or a file on the node makes it anew there, or the cluster
   * needs it.
   */
  readonly isBoundToStay: boolean;
}

/** What the quota engine derives to compare GPUs of several kinds; no node has it. */
const DERIVED: ReadonlySet<string> = new Set(['gpu.cards', 'gpu.memory']);
/** Of system-cluster-critical; system-node-critical has more. */
const CRITICAL_PRIORITY = 2_000_000_000;

/**
 * Reads a pod; null for one that is done, that nobody is to schedule yet or any more, or that finds no node whatever is
 * free.
 */
export function readClusterPod(object: unknown): ClusterPod | null {
  const pod = readPod(object);
  const { uid, namespace, name, labels, node, priority, isLeaving, controller } = pod;
  if (uid === '' || pod.isDone) return null;
  if (node === null && (isLeaving || pod.isGated || isHopeless(pod.unscheduled))) return null;
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
    isBoundToStay:
      controller?.kind === 'DaemonSet' || controller?.kind === 'Node' || pod.isMirror || priority >= CRITICAL_PRIORITY,
  };
}

/**
 * Whether kube-scheduler says that on no node resources are what is missing: a selector that fits none, a volume that
 * is not there. Others would go for it again and again, in vain. Who schedules otherwise and says so in other words is
 * believed to wait for resources.
 */
function isHopeless(unscheduled: string): boolean {
  return /^0\/\d+ nodes are available/.test(unscheduled) && !/\bInsufficient\b/.test(unscheduled);
}
