import type { Notices, PodKnowledge } from './allocator/ports.js';
import type { PodNames } from './device-plugin/holders.js';

/** All that the agent wants to know of pods. */
export interface AgentPods extends PodKnowledge, PodNames {
  /** Those of tencent.com; null for a pod that is not known. */
  annotations(podUid: string): ReadonlyMap<string, string> | null;
  /** Tells of pods that appeared, or whose annotations changed; the answer ends that. */
  onAnnotations(listener: (podUid: string) => void): () => void;
}

/** Standalone: nothing is known of pods but what the kubelet says. */
export const NO_PODS: AgentPods = {
  pending: () => null,
  heardOf: async () => undefined,
  ended: () => new Set(),
  exists: () => null,
  annotations: () => null,
  onAnnotations: () => () => undefined,
  uidOf: () => null,
  nameOf: () => null,
};

/** Standalone: only the log reports events. */
export const NO_NOTICES: Notices = {
  refused: () => undefined,
  started: () => undefined,
  freed: () => undefined,
  gpuUnhealthy: () => undefined,
};
