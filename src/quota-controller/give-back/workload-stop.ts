import { MERGE_PATCH, type KubeAnswer, type KubeApi } from '../../kube/client.js';
import { record } from '../../kube/json.js';
import { kindName } from '../../quota/internal.js';
import { stopWay, suspendSpec } from '../../kube/quota/stoppable-kinds.js';
import { objectPath, readObject, type ServedKind } from '../workloads/kinds.js';
import { WORKLOAD_KIND } from '../workloads/kueue-workload.js';
import type { WorkloadObject } from '../workloads/workload-object.js';

/**
 * How a kind of workloads is stopped: a pod is evicted, and its client creates it again; the quota of a Workload of
 * Kueue is taken back, and Kueue asks again.
 */
export type Stop = 'evict' | 'suspend' | 'scale' | 'take-back';

/** Null for a kind that the arbitrator cannot stop. */
export function stopOf(kind: Pick<ServedKind, 'evaluator'>): Stop | null {
  const name = kindName(kind.evaluator);
  if (name === 'Pod') return 'evict';
  if (kind.evaluator === WORKLOAD_KIND) return 'take-back';
  return stopWay(name);
}

type Workload = Pick<WorkloadObject, 'kind' | 'namespace' | 'name'>;

/** Suspends a workload, or lets it run again. */
export function suspend(api: KubeApi, { kind, namespace, name }: Workload, isSuspended: boolean): Promise<KubeAnswer> {
  return api.request({
    method: 'PATCH',
    path: objectPath(kind, namespace, name),
    body: { spec: suspendSpec(kindName(kind.evaluator), isSuspended) },
    contentType: MERGE_PATCH,
  });
}

/** The replicas that a workload has at the API server; null if it does not exist. Rejects if the server fails. */
export async function replicasOf(api: KubeApi, { kind, namespace, name }: Workload): Promise<number | null> {
  const object = await readObject(api, kind, namespace, name);
  if (object === null) return null;
  const path = kind.scalePath ?? ['spec', 'replicas'];
  const replicas = path.reduce<unknown>((value, field) => record(value)[field], object);
  return typeof replicas === 'number' ? replicas : 1;
}

export function scale(api: KubeApi, { kind, namespace, name }: Workload, replicas: number): Promise<KubeAnswer> {
  return api.request({
    method: 'PATCH',
    path: `${objectPath(kind, namespace, name)}/scale`,
    body: { spec: { replicas } },
    contentType: MERGE_PATCH,
  });
}
