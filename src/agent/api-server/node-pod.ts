import type { ClaimUser } from '../../gpu/claims/claim-units.js';

/** A pod of this node, reduced to the fields that the agent reads. Whole pods of a busy node take megabytes. */
export interface NodePod {
  /** By which the kubelet knows it. */
  readonly uid: string;
  /** By which the API server knows it; another one for static pods, whose entry there only mirrors them. */
  readonly objectUid: string;
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly resourceVersion: string;
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  /** Why the pod as a whole failed; empty while it has not. */
  readonly failure: { readonly reason: string; readonly message: string };
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** When the kubelet took the pod on, or refused it; null before. */
  readonly admittedAt: number | null;
  /** The deletion time; null if deletion was not requested. */
  readonly deletedAt: number | null;
  /** What re-creates it; null for a naked pod. */
  readonly controller: { readonly kind: string; readonly name: string } | null;
  /** Static: comes from a file on the node, the API server only shows it. */
  readonly mirror: boolean;
  /** Those of tencent.com, and `clusterName`. */
  readonly annotations: ReadonlyMap<string, string>;
  /** Which of its containers use which resource claims. */
  readonly claimUsers: readonly ClaimUser[];
  /** Environment variable SUBMITTER of the first container, shown as the user; null without. */
  readonly submitter: string | null;
  /** In the order of the pod's specification. */
  readonly initContainers: readonly PodContainer[];
  readonly containers: readonly PodContainer[];
}

export interface PodContainer {
  readonly name: string;
  /** Hundredths of a GPU; 0 without. */
  readonly cores: number;
  /** Blocks of 256 MiB; 0 without. */
  readonly memoryBlocks: number;
  readonly running: boolean;
  /** It has run, ended, and not begun again. */
  readonly terminated: boolean;
  /** Why it waits, in the kubelet's words; empty where it does not wait, or for nothing. */
  readonly waiting: string;
  /** By environment variable `compat32=true`: its programs are of 32 bits. */
  readonly compat32: boolean;
}

/** Failed or succeeded, and no container of it runs any more. */
export function isOver(pod: NodePod): boolean {
  const terminal = pod.phase === 'Succeeded' || pod.phase === 'Failed';
  return terminal && ![...pod.initContainers, ...pod.containers].some((container) => container.running);
}

export function usesGpu(container: PodContainer): boolean {
  return container.cores > 0 || container.memoryBlocks > 0;
}
