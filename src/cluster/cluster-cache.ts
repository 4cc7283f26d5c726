import { createHash } from 'node:crypto';
import { NODE_INVENTORY_KEY } from '../gpu/annotations.js';
import type { BoundPod } from './placement/placed-pods.js';
import type { Cluster } from './placement/cluster.js';
import { needsGpu } from './placement/demand.js';
import type { ContainerGpus } from '../gpu/pods/pod-placement.js';
import type { Log } from '../host/log.js';
import type { ClusterObserver } from './cluster-source.js';
import type { Node } from '../kube/node.js';
import type { Taint } from '../manifests/taint.js';
import { NodeShapes } from './node-shape.js';
import { PodGroups } from './pod-groups.js';
import type { PodView } from './pod-view.js';

/** Is notified about predictions. */
export interface PredictionListener {
  /** Another scheduler bound a pod to a node that was offered; the GPUs are those that were reserved for it. */
  adopted(pod: PodView, gpus: readonly ContainerGpus[]): void;
  /** A pod's annotations name its GPUs. */
  named(uid: string): void;
}

/**
 * Applies the events of the API server to the cluster's state, and keeps pods by UID. A bound pod without GPU
 * annotations gets the GPUs that were reserved for it by its filter call, if there are any.
 */
export class ClusterCache implements ClusterObserver {
  readonly #cluster: Cluster;
  readonly #log: Log;
  readonly #listener: PredictionListener;
  readonly #shapes = new NodeShapes();
  readonly #fingerprints = new Map<string, string>();
  readonly #cordoned = new Set<string>();
  readonly #taints = new Map<string, readonly Taint[]>();
  /** Pods with GPU requests: bound pods, and pods that wait for a node. */
  readonly #pods = new Map<string, PodView>();
  /** Nodes of the pods that the API server has reported on one, by UID; pods without GPU requests too. */
  readonly #bound = new Map<string, string>();
  /** UIDs of nominated pods, for which others are evicted, by node name. */
  readonly #nominated = new Map<string, Set<string>>();
  /** By UID of a nominated pod: for each node the victims that were named to the scheduler. */
  readonly #victims = new Map<string, ReadonlyMap<string, readonly string[]>>();
  readonly #waiting = new Set<() => void>();
  readonly groups = new PodGroups();
  #synced = false;

  constructor(cluster: Cluster, log: Log, listener: PredictionListener) {
    this.#cluster = cluster;
    this.#log = log;
    this.#listener = listener;
  }

  /** True once all nodes and pods are listed. */
  get isSynced(): boolean {
    return this.#synced;
  }

  get pods(): ReadonlyMap<string, PodView> {
    return this.#pods;
  }

  /** True when the API server has reported the pod on a node. */
  isBound(uid: string): boolean {
    return this.#bound.has(uid);
  }

  /** The node that the API server has reported the pod on; null without one. */
  nodeOf(uid: string): string | null {
    return this.#bound.get(uid) ?? null;
  }

  /** Names of the cordoned nodes. */
  get cordoned(): ReadonlySet<string> {
    return this.#cordoned;
  }

  /** The taints of a node. */
  taintsOf(name: string): readonly Taint[] {
    return this.#taints.get(name) ?? [];
  }

  nodeSeen(node: Node): void {
    const { name } = node;
    if (node.isCordoned) this.#cordoned.add(name);
    else this.#cordoned.delete(name);
    if (node.taints.length > 0) this.#taints.set(name, node.taints);
    else this.#taints.delete(name);
    const fingerprint = fingerprintOf(node);
    if (this.#fingerprints.get(name) === fingerprint) return;
    this.#fingerprints.set(name, fingerprint);
    const { shape, inventoryProblem } = this.#shapes.read(node);
    if (inventoryProblem !== null)
      this.#log.warn(
        { node: name, problem: inventoryProblem },
        'the inventory annotation of a node is not valid; deriving its GPUs from its capacity',
      );
    this.#cluster.setNode(shape);
    this.#keepAllNominated(name);
    this.changed();
  }

  nodeGone(name: string): void {
    this.#fingerprints.delete(name);
    this.#cordoned.delete(name);
    this.#taints.delete(name);
    this.#cluster.removeNode(name);
  }

  podSeen(pod: PodView): void {
    if (pod.uid === '') return;
    if (pod.ended) {
      this.podGone(pod.uid);
      return;
    }
    const gpu = needsGpu(pod.demand);
    const known = this.#pods.get(pod.uid);
    const first = known === undefined;
    if (gpu && pod.group !== null) this.groups.seen(pod.group, pod.uid, pod.nodeName);
    if (known !== undefined) this.#release(known, pod);
    this.#setNominated(pod.uid, pod.nodeName === null ? pod.nominatedNode : null);
    if (gpu || pod.nodeName === null) this.#pods.set(pod.uid, pod);
    else this.#pods.delete(pod.uid);
    if (first && gpu && pod.brokenRule === null) this.#cluster.observe(pod.demand);
    if (pod.nodeName === null) {
      this.keepNominated(pod.uid);
      return;
    }
    this.#victims.delete(pod.uid);
    const { uid, nodeName, demand, initEnded, gpus } = pod;
    this.#onNode(pod, { uid, nodeName, demand, initEnded, gpus });
    if (pod.leaving) this.#keepAllNominated(pod.nodeName);
  }

  /**
   * Releases room that the scheduler will not use: all of it after it has written that it found no node, and that on
   * the other nodes after it has named the pod's node.
   */
  #release(before: PodView, pod: PodView): void {
    const reservation = this.#cluster.reservations.get(pod.uid);
    if (reservation === undefined || reservation.nominated !== null || before.resourceVersion === pod.resourceVersion)
      return;
    if (pod.isUnscheduled && !before.isUnscheduled) this.#cluster.reservations.drop(pod.uid);
    else if (pod.nominatedNode === null || pod.nominatedNode === before.nominatedNode) return;
    else this.#cluster.reservations.narrow(pod.uid, pod.nominatedNode);
    this.changed();
  }

  /**
   * Records the victims that the extender answered for a pod, by node. If the scheduler nominates the node before it
   * deletes the victims, the nomination appears while they still run.
   */
  preemptionAnswered(uid: string, victims: ReadonlyMap<string, readonly string[]>): void {
    if (this.#pods.has(uid)) this.#victims.set(uid, victims);
  }

  /**
   * Reserves for a pod the room that the scheduler makes by evicting others. An existing reservation, from a later
   * filter call, stays.
   */
  keepNominated(uid: string): void {
    const pod = this.#pods.get(uid);
    const reservation = this.#cluster.reservations.get(uid);
    if (pod === undefined || (reservation !== undefined && reservation.nominated === null)) return;
    this.#cluster.reservations.drop(uid);
    const { nominatedNode: node, demand } = pod;
    if (node === null || !needsGpu(demand) || pod.brokenRule !== null) return;
    const victims = new Set(this.#victims.get(uid)?.get(node));
    const leaving = this.#cluster
      .podsOn(node)
      .filter((other) => victims.has(other) || this.#pods.get(other)?.leaving === true);
    this.#cluster.nominate(uid, demand, pod.priority, node, leaving);
  }

  synced(): void {
    this.#synced = true;
  }

  #setNominated(uid: string, node: string | null): void {
    const before = this.#pods.get(uid)?.nominatedNode ?? null;
    for (const name of [before, node]) {
      if (name === null) continue;
      const pods = this.#nominated.get(name) ?? new Set();
      if (name === node) pods.add(uid);
      else pods.delete(uid);
      if (pods.size > 0) this.#nominated.set(name, pods);
      else this.#nominated.delete(name);
    }
  }

  /** Capacity of a node changed, or its object: the reservations of its nominated pods are computed again. */
  #keepAllNominated(node: string): void {
    for (const uid of this.#nominated.get(node) ?? []) this.keepNominated(uid);
  }

  podGone(uid: string): void {
    const { nodeName: node = null, group = null } = this.#pods.get(uid) ?? {};
    if (group !== null) this.groups.gone(group, uid);
    this.#setNominated(uid, null);
    this.#pods.delete(uid);
    this.#bound.delete(uid);
    this.#victims.delete(uid);
    this.#cluster.reservations.drop(uid);
    this.#cluster.removePod(uid);
    if (node !== null) this.#keepAllNominated(node);
    this.changed();
  }

  /** Notifies waiting requests after an event that may free capacity, so that they are evaluated again. */
  changed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    waiting.forEach((wake) => wake());
  }

  /** Calls `wake` once, after the next change; the returned function cancels this. */
  onChange(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  #onNode(pod: PodView, bound: BoundPod): void {
    const { uid, gpus } = pod;
    const isNew = !this.#bound.has(uid);
    this.#bound.set(uid, bound.nodeName);
    const kept = this.#cluster.reservations.get(uid);
    if (gpus !== null) this.#listener.named(uid);
    if (kept !== undefined && gpus === null && isNew) {
      const placed = this.#cluster.decide(uid, bound.nodeName, bound.demand);
      if (placed.ok) this.#listener.adopted(pod, placed.containers);
      else this.#setPod(bound);
    } else {
      this.#cluster.reservations.drop(uid);
      this.#setPod(bound);
    }
    if (kept !== undefined) this.changed();
  }

  #setPod(pod: BoundPod): void {
    const known = this.#cluster.placedPods.get(pod.uid);
    const placedPod = this.#cluster.setPod(pod);
    if (
      placedPod.source === 'nowhere' &&
      known?.source !== 'nowhere' &&
      needsGpu(pod.demand) &&
      this.#cluster.nodes.has(pod.nodeName)
    ) {
      this.#log.warn({ pod: pod.uid, node: pod.nodeName }, 'a pod is bound to a node that has no free GPU for it');
    }
  }
}

function fingerprintOf(node: Node): string {
  const { annotations, labels, allocatable } = node;
  const told = JSON.stringify([annotations[NODE_INVENTORY_KEY], labels, [...allocatable]]);
  return createHash('sha1').update(told).digest('base64');
}
