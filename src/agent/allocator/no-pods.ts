import type { Notices, PodKnowledge } from './ports.js';
import type { PodNames } from '../device-plugin/index.js';

/** All queries of the agent about pods. */
export interface AgentPods extends PodKnowledge, PodNames {
  /** Annotations with a key of tencent.com; null for an unknown pod. */
  annotations(podUid: string): ReadonlyMap<string, string> | null;
  /** When the containers of a pod are killed at last; null while it is not being deleted. Absent: unknown. */
  killedAtMs?(podUid: string): number | null;
  /** Calls `listener` for pods that appear, go or change their annotations; the returned function unsubscribes. */
  onAnnotations(listener: (podUid: string) => void): () => void;
}

/** Standalone: pods are known only from the kubelet. */
export const NO_PODS: AgentPods = {
  pending: () => null,
  untilPending: async () => undefined,
  ended: () => new Set(),
  isSuspendable: () => null,
  exists: () => null,
  ask: async () => undefined,
  annotations: () => null,
  onAnnotations: () => () => undefined,
  uidOf: () => null,
  nameOf: () => null,
};

/** Standalone: only the log reports events. */
export const NO_NOTICES: Notices = {
  refused: () => undefined,
  started: () => undefined,
  renumbered: () => undefined,
  freed: () => undefined,
  resized: () => undefined,
  gpuUnhealthy: () => undefined,
};
