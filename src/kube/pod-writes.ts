import { bindingPath, podPath } from './api-path.js';
import { MERGE_PATCH, type KubeAnswer, type KubeApi } from './client.js';
import type { KubeFailure } from './failure.js';
import { readPod, type Pod } from './pod.js';
import type { WorkResult } from './work-queue.js';

/** Identifies a pod: another UID is another pod, even with the same name. */
export interface PodName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

type Annotations = Readonly<Record<string, string>>;

/** The API server abandons a binding that it has not carried out after this time. */
export const BINDING_LASTS_MS = 1_200;

/**
 * Creates `pods/binding`, with the pod's UID as precondition. The API server copies the binding's annotations to the
 * pod in the same write, so no reader sees the bound pod without them.
 */
export function bindPod(
  api: KubeApi,
  pod: PodName,
  node: string,
  annotations: Annotations,
  mayStillSend: () => boolean,
): Promise<KubeAnswer> {
  const { namespace, name, uid } = pod;
  const binding = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { namespace, name, uid, annotations },
    target: { apiVersion: 'v1', kind: 'Node', name: node },
  };
  return api.request({
    method: 'POST',
    path: bindingPath(namespace, name),
    query: { timeout: `${BINDING_LASTS_MS}ms` },
    body: binding,
    timeoutMs: 2 * BINDING_LASTS_MS,
    mayStillSend,
  });
}

/** Reads this pod; null if it does not exist any more, though another one may have its name. */
export async function readPodNamed(
  api: KubeApi,
  { namespace, name, uid }: PodName,
): Promise<{ readonly ok: true; readonly pod: Pod | null } | KubeFailure> {
  const answer = await api.request({ method: 'GET', path: podPath(namespace, name), timeoutMs: 2 * BINDING_LASTS_MS });
  if (!answer.ok) return answer.code === 'not-found' ? { ok: true, pod: null } : answer;
  const pod = readPod(answer.body);
  return { ok: true, pod: pod.uid === uid ? pod : null };
}

/** Merges annotations into the pod, with its UID as precondition. */
export async function annotatePod(
  api: KubeApi,
  { namespace, name, uid }: PodName,
  annotations: Annotations,
): Promise<WorkResult> {
  const path = podPath(namespace, name);
  // Another pod with the same name must not get these annotations.
  const body = { metadata: { uid, annotations } };
  const answer = await api.request({ method: 'PATCH', path, body, contentType: MERGE_PATCH });
  if (answer.ok) return 'done';
  if (answer.code === 'not-found') return 'gone';
  if (answer.code !== 'conflict' && answer.code !== 'invalid') return answer;
  // Servers report another UID with different errors, so the pod is read.
  const current = await api.request({ method: 'GET', path });
  if (!current.ok) return current.code === 'not-found' ? 'gone' : current;
  const { metadata } = (current.body ?? {}) as { readonly metadata?: { readonly uid?: unknown } };
  return metadata?.uid === uid ? answer : 'gone';
}

/** Deletes this pod, and no other pod of its name. */
export async function deletePod(api: KubeApi, { namespace, name, uid }: PodName): Promise<WorkResult> {
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } };
  const answer = await api.request({ method: 'DELETE', path: podPath(namespace, name), body });
  if (answer.ok) return 'done';
  return answer.code === 'not-found' || answer.code === 'conflict' ? 'gone' : answer;
}

/**
 * Nominates a node for a waiting pod: the scheduler then does not give the room to pods of lower or equal priority.
 * Null removes the nomination. Refused if the pod was deleted or another one has its name.
 */
export function nominateNode(
  api: KubeApi,
  { namespace, name, uid }: PodName,
  node: string | null,
): Promise<KubeAnswer> {
  return api.request({
    method: 'PATCH',
    path: `${podPath(namespace, name)}/status`,
    body: { metadata: { uid }, status: { nominatedNodeName: node } },
    contentType: MERGE_PATCH,
  });
}

/**
 * Evicts a pod: unlike a deletion, a disruption budget may forbid it (`too-many-requests`). A dry run only checks this.
 */
export function evictPod(
  api: KubeApi,
  { namespace, name, uid }: PodName,
  version: 'policy/v1' | 'policy/v1beta1',
  isDryRun = false,
): Promise<KubeAnswer> {
  const body = {
    apiVersion: version,
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid }, ...(isDryRun ? { dryRun: ['All'] } : {}) },
  };
  return api.request({
    method: 'POST',
    path: `${podPath(namespace, name)}/eviction`,
    body,
    query: isDryRun ? { dryRun: 'All' } : undefined,
  });
}
