import { MERGE_PATCH, type KubeAnswer, type KubeApi } from '../../kube/client.js';
import { record } from '../../kube/json.js';
import { objectPath, readObject, type ServedKind } from '../workloads/kinds.js';
import { WORKLOAD_KIND } from '../workloads/kueue-workload.js';
import type { WorkloadObject } from '../workloads/workload-object.js';

/** Kinds that stop when this field is true, by name with API group. */
const SUSPENDED: Readonly<Record<string, readonly string[]>> = {
  'Job.batch': ['suspend'],
  'JobSet.jobset.x-k8s.io': ['suspend'],
  'TrainJob.trainer.kubeflow.org': ['suspend'],
  'TFJob.kubeflow.org': ['runPolicy', 'suspend'],
  'PyTorchJob.kubeflow.org': ['runPolicy', 'suspend'],
  'MPIJob.kubeflow.org': ['runPolicy', 'suspend'],
  'XGBoostJob.kubeflow.org': ['runPolicy', 'suspend'],
  'PaddleJob.kubeflow.org': ['runPolicy', 'suspend'],
  'RayJob.ray.io': ['suspend'],
  'RayCluster.ray.io': ['suspend'],
};

/** Kinds that stop when they are scaled to zero. */
const SCALED: ReadonlySet<string> = new Set([
  'Deployment.apps',
  'ReplicaSet.apps',
  'StatefulSet.apps',
  'ReplicationController',
  'Rollout.argoproj.io',
  'LeaderWorkerSet.leaderworkerset.x-k8s.io',
]);

/**
 * How a kind of workloads is stopped: a pod is evicted, and its client creates it again; the quota of a Workload of
 * Kueue is taken back, and Kueue asks again.
 */
export type Stop = 'evict' | 'suspend' | 'scale' | 'take-back';

function nameOf({ evaluator: { apiGroup, kind } }: Pick<ServedKind, 'evaluator'>): string {
  return apiGroup === '' ? kind : `${kind}.${apiGroup}`;
}

/** Null for a kind that the arbitrator cannot stop. */
export function stopOf(kind: Pick<ServedKind, 'evaluator'>): Stop | null {
  const name = nameOf(kind);
  if (name === 'Pod') return 'evict';
  if (kind.evaluator === WORKLOAD_KIND) return 'take-back';
  if (Object.hasOwn(SUSPENDED, name)) return 'suspend';
  return SCALED.has(name) ? 'scale' : null;
}

type Workload = Pick<WorkloadObject, 'kind' | 'namespace' | 'name'>;

/** Suspends a workload, or lets it run again. */
export function suspend(api: KubeApi, { kind, namespace, name }: Workload, isSuspended: boolean): Promise<KubeAnswer> {
  const field = SUSPENDED[nameOf(kind)] ?? [];
  const spec = [...field].reverse().reduce<unknown>((inner, each) => ({ [each]: inner }), isSuspended);
  return api.request({
    method: 'PATCH',
    path: objectPath(kind, namespace, name),
    body: { spec },
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
