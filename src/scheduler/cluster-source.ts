import type { Node } from '../kube/node.js';
import type { PodView } from './pod-view.js';

/**
 * Where the extender learns of nodes and pods: all nodes of the cluster and all pods of all namespaces, listed and then
 * watched. Whoever implements it keeps these promises:
 *
 * - `start` begins and returns; it goes on trying for as long as it takes. `synced` is called once, as soon as both
 *   lists were delivered.
 * - After a watch was cut it resumes or lists again, and reports what is different, also what is gone. Something may be
 *   reported twice.
 * - Of one object the observer hears in the order of its resource versions, and never two calls at a time.
 * - A pod is `gone` when it is deleted; one that has ended (`Succeeded`, `Failed`) and still exists is `seen` with that
 *   phase.
 */
export interface ClusterSource {
  start(observer: ClusterObserver): void;
  stop(): Promise<void>;
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
