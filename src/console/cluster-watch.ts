import { AGENT_PODS, readAgentPod } from '../kube/agent-pods.js';
import { ALL_NODES, ALL_PODS } from '../kube/api-path.js';
import type { Informer } from '../kube/informer.js';
import { readNode } from '../kube/node.js';
import { readPod } from '../kube/pod.js';
import type { WatchableApi } from '../kube/watchable-api.js';
import type { ClusterModel } from './cluster-model.js';
import { nodeFacts } from './node-row.js';
import { podRow } from './pod-row.js';

/** Connections that end are made again within a second or two: a collection is late after this. */
const LATE_MS = 10_000;

/** Watches the cluster at the API server and keeps the model up to date. */
export class ClusterWatch {
  readonly #informers: Readonly<Record<string, Pick<Informer<unknown>, 'start' | 'stop' | 'synced' | 'silentMs'>>>;

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
    const agents = api.informer({ path: ALL_PODS, labelSelector: AGENT_PODS, keep: readAgentPod });
    agents.onChange(({ before, after }) => {
      if (after !== null) model.setAgent(after);
      else if (before !== null) model.setAgent(before, true);
    });
    this.#informers = { nodes, pods, agents };
  }

  get synced(): boolean {
    return Object.values(this.#informers).every(({ synced }) => synced);
  }

  /** Time without a connection in milliseconds, by collection that is late. */
  get late(): Readonly<Record<string, number>> {
    const silent = Object.entries(this.#informers).map(([name, { silentMs }]) => [name, silentMs] as const);
    return Object.fromEntries(silent.filter(([, ms]) => ms >= LATE_MS));
  }

  start(): void {
    for (const informer of Object.values(this.#informers)) informer.start();
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.#informers).map((informer) => informer.stop()));
  }
}
