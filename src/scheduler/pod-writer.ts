import type { KubeAnswer, KubeApi } from '../kube/client.js';
import type { KubeFailure } from '../kube/failure.js';
import type { Pod } from '../kube/pod.js';
import { annotatePod, bindPod, readPodNamed, type PodName } from '../kube/pod-writes.js';
import type { WorkResult } from '../kube/work-queue.js';

export type { PodName } from '../kube/pod-writes.js';

/** The extender's writes to the API server. An implementation answers within a few seconds and never rejects. */
export interface PodWriter {
  /** Binds a pod to a node, with annotations, unless `mayStillSend` is false when the binding could be sent. */
  bind(
    pod: PodName,
    node: string,
    annotations: Readonly<Record<string, string>>,
    mayStillSend: () => boolean,
  ): Promise<KubeAnswer>;
  /** Reads a pod as the API server has it now; null if it does not exist any more. */
  read(pod: PodName): Promise<{ readonly ok: true; readonly pod: Pod | null } | KubeFailure>;
  /** Merges annotations into the pod. */
  annotate(pod: PodName, annotations: Readonly<Record<string, string>>): Promise<WorkResult>;
}

/** Writes bindings and annotations of pods to the API server. */
export function podWriter(api: KubeApi): PodWriter {
  return {
    bind: (...binding) => bindPod(api, ...binding),
    read: (pod) => readPodNamed(api, pod),
    annotate: (pod, annotations) => annotatePod(api, pod, annotations),
  };
}
