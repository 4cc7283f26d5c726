import { ALL_NODES, ALL_PODS } from '../kube/api-path.js';
import type { Informer } from '../kube/informer.js';
import { readNode } from '../kube/node.js';
import { readPod } from '../kube/pod.js';
import type { WatchableApi } from '../kube/watchable-api.js';
import type { ClusterModel } from './cluster-model.js';
import { nodeFacts } from './node-row.js';
import { podRow } from './pod-row.js';

/** Watches the cluster at the API server and keeps the model up to date. */
export class ClusterWatch {
  readonly #informers: readonly Pick<Informer<unknown>, 'start' | 'stop' | 'synced'>[];

  constructor(api: WatchableApi, model: ClusterModel) {
    const nodes = api.informer({
      path: ALL_NODES,
      keep: (object) => {
        const node = readNode(object);
        return node === null ? null : nodeFacts(node);
      },
    });
    nodes.onChange(({ before, after }) => {
      const name = (after ?? before)?.name;
      if (name !== undefined) model.setNode(name, after);
    });
    const pods = api.informer({ path: ALL_PODS, keep: (object) => podRow(readPod(object)) });
    pods.onChange(({ before, after }) => {
      const uid = (after ?? before)?.uid;
      if (uid !== undefined) model.setPod(uid, after);
    });
    this.#informers = [nodes, pods];
  }

  get synced(): boolean {
    return this.#informers.every(({ synced }) => synced);
  }

  start(): void {
    for (const informer of this.#informers) informer.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
  }
}
