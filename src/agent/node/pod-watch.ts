import type { Part } from '../../host/lifecycle.js';
import { type NodeKube, isOver, usesGpu } from '../api-server/index.js';
import type { PodFacts } from './view.js';
import type { LedgerReconciler } from '../allocator/index.js';

/** Watches the pods of this node; when a pod ends, the ledger is reconciled at once. */
export function podWatch(apiServer: NodeKube, reconciler: LedgerReconciler): Part {
  return {
    name: 'api-server',
    async start() {
      apiServer.pods.onChange(({ before, after }) => {
        const ended = before !== null && !isOver(before) && (after === null || isOver(after));
        if (ended) void reconciler.reconcile();
      });
      await apiServer.start();
    },
    stop: () => apiServer.stop(),
  };
}

/** The fields of a pod that the display shows; null if the API server does not list it here. */
export function podFacts(apiServer: NodeKube | null, podUid: string): PodFacts | null {
  const pod = apiServer?.pods.get(podUid) ?? null;
  if (pod === null) return null;
  const otherContainers = pod.containers.filter((container) => !usesGpu(container)).map(({ name }) => name);
  return {
    user: pod.submitter ?? '',
    cluster: pod.annotations.get('clusterName') ?? '',
    otherContainers,
    quotaGroup: pod.quotaGroup,
  };
}
