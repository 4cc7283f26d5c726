import type { ClaimUser } from '../../gpu/claims/claim-units.js';

/** A pod of this node, reduced to the fields that the agent reads. Whole pods of a busy node take megabytes. */
export interface NodePod {
  /** The UID that the kubelet uses. */
  readonly uid: string;
  /** The UID at the API server, which differs for static pods: their objects there are mirrors. */
  readonly objectUid: string;
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly resourceVersion: string;
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  /** Why the pod as a whole failed; empty unless it failed. */
  readonly failure: { readonly reason: string; readonly message: string };
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** When the kubelet admitted or refused the pod; null before. */
  readonly admittedAt: number | null;
  /** The deletion time; null if deletion was not requested. */
  readonly deletedAt: number | null;
  /** The controller that re-creates it; null for a pod without one. */
  readonly controller: { readonly kind: string; readonly name: string } | null;
  /** Whether it is a static pod: a file on the node defines it, and the API server only has a mirror. */
  readonly mirror: boolean;
  /** Annotations with a key of tencent.com, and `clusterName`. */
  readonly annotations: ReadonlyMap<string, string>;
  /** The quota group that its label names; null without the label. Mostly only its workload has the label. */
  readonly quotaGroup: string | null;
  /** The containers that use resource claims, with these claims. */
  readonly claimUsers: readonly ClaimUser[];
  /** Environment variable SUBMITTER of the first container, shown as the user; null if it is not set. */
  readonly submitter: string | null;
  /** In the order of the pod's spec. */
  readonly initContainers: readonly PodContainer[];
  readonly containers: readonly PodContainer[];
}

export interface PodContainer {
  readonly name: string;
  /** Cores of a GPU; 0 without a request. */
  readonly cores: number;
  /** Blocks of 256 MiB; 0 without a request. */
  readonly memoryBlocks: number;
  readonly running: boolean;
  /** Whether it has run, ended, and not started again. */
  readonly terminated: boolean;
  /** The kubelet's reason why it waits; empty if it does not wait or has no reason. */
  readonly waiting: string;
  /** Whether its programs are 32-bit programs, by the environment variable `compat32=true`. */
  readonly compat32: boolean;
}

/** True if the pod failed or succeeded and none of its containers runs any more. */
export function isOver(pod: NodePod): boolean {
  const terminal = pod.phase === 'Succeeded' || pod.phase === 'Failed';
  return terminal && ![...pod.initContainers, ...pod.containers].some((container) => container.running);
}

export function usesGpu(container: PodContainer): boolean {
  return container.cores > 0 || container.memoryBlocks > 0;
}
