import type { KubeAnswer, KubeApi } from '../kube/client.js';
import type { KubeFailureCode } from '../kube/failure.js';
import { annotatePod, bindPod, type PodName } from '../kube/pod-writes.js';
import type { WorkResult } from '../kube/work-queue.js';

export type { PodName } from '../kube/pod-writes.js';

/** The extender's writes to the API server. An implementation answers within a few seconds and never rejects. */
export interface PodWriter {
  /** Binds a pod to a node, with annotations. */
  bind(pod: PodName, node: string, annotations: Readonly<Record<string, string>>): Promise<KubeAnswer>;
  /** Merges annotations into the pod. */
  annotate(pod: PodName, annotations: Readonly<Record<string, string>>): Promise<WorkResult>;
}

/** Writes bindings and annotations of pods to the API server. */
export function podWriter(api: KubeApi): PodWriter {
  return {
    bind: (pod, node, annotations) => bindPod(api, pod, node, annotations),
    annotate: (pod, annotations) => annotatePod(api, pod, annotations),
  };
}

/** Answers that the API server would repeat. After any other failure the write may have succeeded. */
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
