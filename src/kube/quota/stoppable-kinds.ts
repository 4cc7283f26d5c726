/** Kinds that stop when this field of their spec is true, by name with API group. */
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

/** How workloads of a kind stop and go on, such as `Job.batch`; null for a kind that does neither. */
export function stopWay(kind: string): 'suspend' | 'scale' | null {
  if (Object.hasOwn(SUSPENDED, kind)) return 'suspend';
  return SCALED.has(kind) ? 'scale' : null;
}

/** Path of the field below `spec` that suspends a kind. */
export function suspendField(kind: string): readonly string[] {
  return SUSPENDED[kind] ?? [];
}

/** The spec of a merge patch that suspends an object of the kind, or lets it run again. */
export function suspendSpec(kind: string, isSuspended: boolean): unknown {
  return [...suspendField(kind)].reverse().reduce<unknown>((inner, field) => ({ [field]: inner }), isSuspended);
}
