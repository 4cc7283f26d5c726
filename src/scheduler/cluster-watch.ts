import type { ClusterObserver, ClusterSource } from '../cluster/cluster-source.js';
import { readPod } from '../kube/pod.js';
import { readNode, type Node } from '../kube/node.js';
import { PodViews, type PodView } from '../cluster/pod-view.js';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { ALL_NODES, ALL_PODS } from '../kube/api-path.js';
import type { KubeClient } from '../kube/client.js';
import { WatchInformer, type InformerTiming } from '../kube/informer.js';

export interface ClusterWatchOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Partial<InformerTiming>;
}

/** Large clusters have a hundred thousand pods, so lists are read in pages. */
const PAGE_SIZE = 1000;

/** Watches all nodes and pods of the cluster at the API server. */
export class ClusterWatch implements ClusterSource {
  readonly #nodes: WatchInformer<Node>;
  readonly #pods: WatchInformer<PodView>;

  constructor(options: ClusterWatchOptions) {
    const views = new PodViews();
    this.#nodes = new WatchInformer({ ...options, path: ALL_NODES, pageSize: PAGE_SIZE, keep: readNode });
    this.#pods = new WatchInformer({
      ...options,
      path: ALL_PODS,
      pageSize: PAGE_SIZE,
      keep: (object) => views.view(readPod(object)),
    });
  }

  get silentMs(): number {
    return Math.max(this.#nodes.silentMs, this.#pods.silentMs);
  }

  start(observer: ClusterObserver): void {
    this.#nodes.onChange(({ before, after }) => {
      if (after !== null) observer.nodeSeen(after);
      else if (before !== null) observer.nodeGone(before.name);
    });
    this.#pods.onChange(({ before, after }) => {
      if (after !== null) observer.podSeen(after);
      else if (before !== null) observer.podGone(before.uid);
    });
    this.#nodes.start();
    this.#pods.start();
    void Promise.all([this.#nodes.whenSynced(), this.#pods.whenSynced()]).then(() => {
      if (this.#nodes.synced && this.#pods.synced) observer.synced();
    });
  }

  refreshPods(): Promise<void> {
    return this.#pods.refresh();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#nodes.stop(), this.#pods.stop()]);
  }
}
