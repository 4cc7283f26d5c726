import type { Quantities } from '../../quota/arbitrator/index.js';
import { readPodObject } from '../controller/pod-object.js';
import type { KubeObject } from '../object.js';

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
  readonly isLeaving: boolean;
  /** To evict it would be in vain or do harm: a daemon set or a file on the node makes it anew there, or the cluster needs it. */
  readonly isBoundToStay: boolean;
}

/** What the quota engine derives to compare cards of several kinds; no node has it. */
const DERIVED: ReadonlySet<string> = new Set(['gpu.cards', 'gpu.memory']);
/** Of system-cluster-critical; system-node-critical has more. */
const CRITICAL_PRIORITY = 2_000_000_000;
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Reads a pod; null for one that is done, that nobody is to schedule yet or any more, or that finds no node whatever is free. */
export function readClusterPod(object: unknown): ClusterPod | null {
  const pod = readPodObject(object);
  if (pod === null) return null;
  const { metadata, spec, status } = object as KubeObject;
  const {
    nodeName,
    priority = 0,
    schedulingGates = [],
  } = (spec ?? {}) as {
    readonly nodeName?: string;
    readonly priority?: number;
    readonly schedulingGates?: readonly unknown[];
  };
  const isLeaving = metadata?.deletionTimestamp !== undefined;
  const isDone = status?.['phase'] === 'Succeeded' || status?.['phase'] === 'Failed';
  if (isDone || (nodeName === undefined && (isLeaving || schedulingGates.length > 0 || isHopeless(status))))
    return null;
  const uses = new Map(
    Object.entries(pod.needs('')?.requests ?? {}).flatMap(([resource, amount]) =>
      Number(amount) > 0 && !DERIVED.has(resource) ? [[resource, Number(amount)]] : [],
    ),
  );
  const makers =
    metadata?.ownerReferences?.filter(({ controller }) => controller === true).map(({ kind }) => kind) ?? [];
  return {
    uid: pod.uid,
    namespace: pod.namespace,
    name: pod.name,
    labels: metadata?.labels ?? {},
    node: nodeName ?? null,
    uses,
    priority,
    startedAt: pod.startedAt,
    isLeaving,
    isBoundToStay:
      makers.includes('DaemonSet') ||
      makers.includes('Node') ||
      metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined ||
      priority >= CRITICAL_PRIORITY,
  };
}

/**
 * Whether kube-scheduler says that on no node resources are what is missing: a selector that fits none, a volume that is not there. Others would
 * go for it again and again, in vain. Who schedules otherwise and says so in other words is believed to wait for resources.
 */
function isHopeless(status: KubeObject['status']): boolean {
  const { conditions = [] } = (status ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
  const { message = '' } = conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False') ?? {};
  return /^0\/\d+ nodes are available/.test(message) && !/\bInsufficient\b/.test(message);
}
