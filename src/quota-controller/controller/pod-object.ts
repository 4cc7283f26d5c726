import type { Resources } from '../../quota/core/demand.js';
import { DEFAULT_CATALOG, type CardCatalog } from '../../quota/evaluators/gpu-resources.js';
import { readPod, type Pod } from '../../kube/pod.js';

/** What is kept of a pod. */
export interface PodObject {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Null until it is bound to one. */
  readonly node: string | null;
  /** Uid of its controller; its own where it has none. */
  readonly ownerUid: string;
  /** When it was scheduled, milliseconds; null before. */
  readonly startedAt: number | null;
  /** When its last container ended, of a pod that is done; null of one that holds what it asked for. */
  readonly endedAt: number | null;
  /** What it asks for; of a type that its workload declares. */
  readonly needs: (gpuType: string) => { readonly requests: Resources; readonly limits: Resources } | null;
}

/** Reads a pod. */
export function readPodObject(object: unknown, catalog: () => CardCatalog = () => DEFAULT_CATALOG): PodObject | null {
  const pod = readPod(object);
  if (pod.uid === '') return null;
  const { uid, namespace, name, node, controller, isDone, endedAt, deletedAt, needs } = pod;
  const startedAt = startOf(pod);
  return {
    uid,
    namespace,
    name,
    node,
    ownerUid: controller?.uid ?? uid,
    startedAt,
    endedAt: isDone ? (endedAt ?? deletedAt ?? startedAt) : null,
    needs: (gpuType) => {
      const known = needs(gpuType, catalog());
      return known.ok ? { requests: known.requests, limits: known.limits } : null;
    },
  };
}

/** When a pod was scheduled: its node holds what it asks for from then on. Null while it has none. */
export function startOf({ scheduledAt, node, admittedAt, createdAt }: Pod): number | null {
  return scheduledAt ?? (node === null ? null : (admittedAt ?? createdAt));
}
