import type { Node } from '../kube/node.js';
import type { PodView } from './pod-view.js';

/**
 * The source of the extender's nodes and pods: lists all nodes of the cluster and all pods of all namespaces, then
 * watches them. Every implementation guarantees:
 *
 * - `start` returns at once; the source retries without limit. `synced` is called once, as soon as both lists were
 *   delivered.
 * - After an interrupted watch, the source resumes or lists again. It reports all differences, including deleted
 *   objects; it may report an event twice.
 * - The changes of one object are reported in the order of its resource versions. Two calls never overlap.
 * - A deleted pod is reported as gone. A pod that has ended (`Succeeded`, `Failed`) and still exists is reported with
 *   its phase.
 */
export interface ClusterSource {
  start(observer: ClusterObserver): void;
  stop(): Promise<void>;
  /** Resolves once the observer knows every pod as the API server stored it at the time of this call, or later. */
  refreshPods(): Promise<void>;
  /** How long the connection has been down, in milliseconds; 0 while it is up. */
  readonly silentMs: number;
}

/** Receives the events. Calls return at once and never throw. */
export interface ClusterObserver {
  nodeSeen(node: Node): void;
  nodeGone(name: string): void;
  /** Pods are passed as views of a `PodViews`: a hundred thousand whole pods would take too much memory. */
  podSeen(pod: PodView): void;
  podGone(uid: string): void;
  synced(): void;
}
