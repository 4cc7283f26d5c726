import { ALL_PODS, podsPath } from '../../kube/api-path.js';
import type { KubeApi } from '../../kube/client.js';
import { readClusterPod, type ClusterPod } from './cluster-pod.js';

/** A planned start, as the watches show its pods. */
export interface ShownStart {
  readonly waiting: ClusterPod;
  readonly node: string;
  readonly victims: readonly ClusterPod[];
  /** All pods by uid. */
  readonly pods: ReadonlyMap<string, ClusterPod>;
  /** Whether a pod counts as leaving although no watch shows it. */
  readonly isLeaving: (uid: string) => boolean;
}

/**
 * Compares a planned start with the API server. Returns the reason why the start no longer applies; null if the pod is
 * still pending and the same pods use the nodes. A watch can be minutes late, and an eviction cannot be undone.
 */
export async function outdatedIn(api: KubeApi, start: ShownStart): Promise<string | null> {
  const { waiting, node, victims, pods, isLeaving } = start;
  const [found] = (await listed(api, podsPath(waiting.namespace), `metadata.name=${waiting.name}`)) ?? [];
  if (found?.uid !== waiting.uid || found.node !== null)
    return `pod ${waiting.namespace}/${waiting.name} does not wait`;
  for (const name of new Set([node, ...victims.flatMap((victim) => victim.node ?? [])])) {
    const there = await listed(api, ALL_PODS, `spec.nodeName=${name}`);
    if (there === null) return `the pods of node ${name} cannot be read`;
    const stays = (pod: ClusterPod): boolean => pod.node === name && !pod.isLeaving && !isLeaving(pod.uid);
    const shown = new Set([...pods.values()].filter(stays).map(({ uid }) => uid));
    const held = there.filter(stays);
    const differs = held.length !== shown.size || held.some(({ uid }) => !shown.has(uid));
    if (differs) return `the pods of node ${name} have changed`;
  }
  return null;
}

/**
 * Pods as the API server has them now; null if it does not answer. Lists need no right beyond that of the watch.
 */
async function listed(api: KubeApi, path: string, fieldSelector: string): Promise<readonly ClusterPod[] | null> {
  const answer = await api.request({ method: 'GET', path, query: { fieldSelector } });
  if (!answer.ok) return null;
  const { items } = answer.body as { readonly items: readonly unknown[] | null };
  return (items ?? []).flatMap((object) => readClusterPod(object) ?? []);
}
