import type { Resources } from '../../quota/index.js';
import { DEFAULT_CATALOG, type CardCatalog } from '../../manifests/gpu-resources.js';
import { readPod, type Pod, type PodClaim } from '../../kube/pod.js';
import { needsOf, readPodRequest, type NeedsOf, type PodRequest } from '../../kube/pod-request.js';

/** The fields of a pod that the usage meter needs. */
export interface PodObject {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Null until the pod is bound. */
  readonly node: string | null;
  /** Uid of the pod's controller; the pod's own uid where it has none. */
  readonly ownerUid: string;
  /** When the pod was scheduled, milliseconds; null before. */
  readonly startedAt: number | null;
  /** When the last container of a finished pod ended, milliseconds; null while the pod holds its requests. */
  readonly endedAt: number | null;
  readonly claims: readonly PodClaim[];
  /**
   * The pod's requests and limits, given the GPU type that its workload declares and the amounts of its own claims;
   * null where they cannot be read.
   */
  readonly needs: (
    gpuType: string,
    claimed?: Readonly<Record<string, number>>,
  ) => { readonly requests: Resources; readonly limits: Resources } | null;
}

/** Reads a pod; null for an object without uid. */
export function readPodObject(object: unknown, catalog: () => CardCatalog = () => DEFAULT_CATALOG): PodObject | null {
  const pod = readPod(object);
  if (pod.uid === '') return null;
  const { uid, namespace, name, node, controller, isDone, endedAt, deletedAt, claims } = pod;
  const needs = sharedNeeds(readPodRequest(object));
  const startedAt = startOf(pod);
  return {
    uid,
    namespace,
    name,
    node,
    ownerUid: controller?.uid ?? uid,
    startedAt,
    endedAt: isDone ? (endedAt ?? deletedAt ?? startedAt) : null,
    claims,
    needs: (gpuType, claimed) => {
      const known = needs(gpuType, catalog(), claimed);
      return known.ok ? { requests: known.requests, limits: known.limits } : null;
    },
  };
}

/** Number of requests that are kept for sharing. */
const MOST_SHARED = 4096;

const sharedRequests = new Map<string, NeedsOf>();

/** Equal requests are kept once: most pods of a cluster have one of a few. */
function sharedNeeds(request: PodRequest): NeedsOf {
  const content = JSON.stringify(request);
  const same = sharedRequests.get(content);
  if (same !== undefined) return same;
  // Clearing the table is harmless: pods keep their requests, and equal ones are just not shared.
  if (sharedRequests.size >= MOST_SHARED) sharedRequests.clear();
  const needs = needsOf(request);
  sharedRequests.set(content, needs);
  return needs;
}

/** When a pod was scheduled, which is when its usage begins; null for a pod without a node. */
export function startOf({ scheduledAt, node, admittedAt, createdAt }: Pod): number | null {
  return scheduledAt ?? (node === null ? null : (admittedAt ?? createdAt));
}
