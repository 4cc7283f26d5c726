import { ALL_NODES, ALL_PODS } from '../../kube/api-path.js';
import type { KubeApi } from '../../kube/client.js';
import { listKept } from '../../kube/list-all.js';
import { readNode, type Node } from '../../kube/node.js';
import { readPod, type Pod } from '../../kube/pod.js';
import { PodViews, type PodView } from '../pod-view.js';

/** The nodes and pods of a cluster. */
export interface ClusterState {
  readonly nodes: readonly Node[];
  readonly pods: readonly KnownPod[];
}

/** What an explanation keeps of a pod of the cluster: large clusters have a hundred thousand. */
export interface KnownPod {
  readonly view: PodView;
  readonly tolerations: Pod['tolerations'];
  readonly endsAtMs: number | null;
}

/** Reads pods of the cluster, with one demand for all equal ones. */
export function knownPods(): (pod: Pod) => KnownPod {
  const views = new PodViews();
  return (pod) => ({ view: views.view(pod), tolerations: pod.tolerations, endsAtMs: pod.deletedAt ?? pod.deadlineAt });
}

/** Lists all nodes and pods. Rejects with a `KubeError`. */
export async function readState(api: KubeApi): Promise<ClusterState> {
  const known = knownPods();
  const [nodes, pods] = await Promise.all([
    listKept(api, 'the nodes', ALL_NODES, readNode),
    listKept(api, 'the pods', ALL_PODS, (object) => known(readPod(object))),
  ]);
  return { nodes: nodes.flatMap((node) => node ?? []), pods };
}
