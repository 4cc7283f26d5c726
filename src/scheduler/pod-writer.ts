import type { KubeAnswer, KubeApi } from '../kube/client.js';
import type { KubeFailureCode } from '../kube/failure.js';
import { annotatePod, bindPod, type PodName } from '../kube/pod-writes.js';
import type { WorkResult } from '../kube/work-queue.js';

export type { PodName } from '../kube/pod-writes.js';

/** What the extender writes to the API server. Whoever implements it answers within a few seconds and never rejects. */
export interface PodWriter {
  /** Puts a pod on a node, its annotations with it. */
  bind(pod: PodName, node: string, annotations: Readonly<Record<string, string>>): Promise<KubeAnswer>;
  /** Merges annotations into the pod. */
  annotate(pod: PodName, annotations: Readonly<Record<string, string>>): Promise<WorkResult>;
}

/** Bindings and annotations of pods, written to the API server. */
export function podWriter(api: KubeApi): PodWriter {
  return {
    bind: (pod, node, annotations) => bindPod(api, pod, node, annotations),
    annotate: (pod, annotations) => annotatePod(api, pod, annotations),
  };
}

/**
 * The API server answered, and would answer the same again; after anything else the write may have been done all the
 * same.
 */
const REFUSED: ReadonlySet<KubeFailureCode> = new Set<KubeFailureCode>([
  'not-found',
  'conflict',
  'forbidden',
  'invalid',
  'already-exists',
]);

export function isRefused(answer: KubeAnswer): boolean {
  return !answer.ok && REFUSED.has(answer.code);
}
