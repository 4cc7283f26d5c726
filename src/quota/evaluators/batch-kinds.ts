import { jobPods } from './core-kinds.js';
import { hasCondition, statusCount, type Evaluator, type TemplatedPods } from './evaluator.js';
import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

/**
 * Argo Rollout: like a Deployment; the template may belong to a referenced workload, and a blue-green update runs all
 * pods twice.
 */
const ROLLOUT: Evaluator = {
  apiGroup: 'argoproj.io',
  kind: 'Rollout',
  resource: 'rollouts.argoproj.io',
  charges: true,
  pods(reader, object, { lookup, chargeSurge }) {
    const replicas = reader.count(reader.at(object, 'spec', 'replicas'), 'spec.replicas', 1);
    const isBlueGreen = reader.at(object, 'spec', 'strategy', 'blueGreen') !== undefined;
    const count = chargeSurge && isBlueGreen ? 2 * replicas : replicas;
    const own = reader.at(object, 'spec', 'template');
    if (own !== undefined) return [{ name: '', count, template: own, path: 'spec.template' }];
    const text = (name: string): string =>
      reader.text(reader.at(object, 'spec', 'workloadRef', name), `spec.workloadRef.${name}`);
    const referred = lookup(text('apiVersion'), text('kind'), text('name'));
    if (referred === undefined) reader.problems.push('spec.workloadRef: unknown object, and spec.template is missing');
    return [{ name: '', count, template: reader.at(referred, 'spec', 'template'), path: 'spec.workloadRef' }];
  },
};

/** Kubeflow's training jobs: one pod set per role. */
function trainingJob(kind: string, resource: string, roles: string): Evaluator {
  return {
    apiGroup: 'kubeflow.org',
    kind,
    resource,
    charges: true,
    waitsForEnd: true,
    pods(reader, object) {
      const isSuspended = reader.flag(reader.at(object, 'spec', 'runPolicy', 'suspend'));
      const elastic = reader.count(
        reader.at(object, 'spec', 'elasticPolicy', 'maxReplicas'),
        'spec.elasticPolicy.maxReplicas',
        0,
      );
      return reader.fields(reader.at(object, 'spec', roles), `spec.${roles}`).map(([role, spec]): TemplatedPods => {
        const path = `spec.${roles}.${role}`;
        const replicas = reader.count(reader.at(spec, 'replicas'), `${path}.replicas`, 1);
        const most = role === 'Worker' ? Math.max(replicas, elastic) : replicas;
        const count = Math.max(0, most - statusCount(reader, object, 'status', 'replicaStatuses', role, 'succeeded'));
        return {
          name: role,
          count: isSuspended ? 0 : count,
          template: reader.at(spec, 'template'),
          path: `${path}.template`,
        };
      });
    },
    isTerminal: (reader, object) => hasCondition(reader, object, ['Succeeded', 'Failed']),
  };
}

/** How many of the Jobs with a name have succeeded; `list` is a field of the status with an entry for each name. */
function succeededJobs(reader: ManifestReader, object: Json, list: string, name: string): number {
  const entries = reader.at(object, 'status', list);
  const found = Array.isArray(entries)
    ? (entries as readonly Json[]).find((entry) => reader.at(entry, 'name') === name)
    : undefined;
  return statusCount(reader, found, 'succeeded');
}

/** JobSet: several Jobs, each with replicas. */
const JOB_SET: Evaluator = {
  apiGroup: 'jobset.x-k8s.io',
  kind: 'JobSet',
  resource: 'jobsets.jobset.x-k8s.io',
  charges: true,
  pods(reader, object) {
    const isSuspended = reader.flag(reader.at(object, 'spec', 'suspend'));
    return reader
      .items(reader.at(object, 'spec', 'replicatedJobs'), 'spec.replicatedJobs')
      .map((jobs, index): TemplatedPods => {
        const path = `spec.replicatedJobs[${index}]`;
        const job = reader.at(jobs, 'template', 'spec');
        const name = reader.text(reader.at(jobs, 'name'), `${path}.name`);
        const replicas = reader.count(reader.at(jobs, 'replicas'), `${path}.replicas`, 1);
        const left = Math.max(0, replicas - succeededJobs(reader, object, 'replicatedJobsStatus', name));
        const count = left * jobPods(reader, job, `${path}.template.spec`);
        return {
          name,
          count: isSuspended ? 0 : count,
          template: reader.at(job, 'template'),
          path: `${path}.template.spec.template`,
        };
      });
  },
  isTerminal: (reader, object) => hasCondition(reader, object, ['Completed', 'Failed']),
};

/** Label of the runtime's jobs in which the trainer of a TrainJob runs. */
const TRAINER_STEP = 'trainer.kubeflow.org/trainjob-ancestor-step';

/** Kubeflow's TrainJob: the jobs of the referenced runtime, with the TrainJob's number of nodes and resources. */
const TRAIN_JOB: Evaluator = {
  apiGroup: 'trainer.kubeflow.org',
  kind: 'TrainJob',
  resource: 'trainjobs.trainer.kubeflow.org',
  charges: true,
  pods(reader, object, { lookup }) {
    const isSuspended = reader.flag(reader.at(object, 'spec', 'suspend'));
    const ref = (name: string, absent: string): string =>
      reader.text(reader.at(object, 'spec', 'runtimeRef', name), `spec.runtimeRef.${name}`) || absent;
    const kind = ref('kind', 'ClusterTrainingRuntime');
    const runtime = lookup(`${ref('apiGroup', 'trainer.kubeflow.org')}/v1alpha1`, kind, ref('name', ''));
    if (runtime === undefined) reader.problems.push(`spec.runtimeRef: unknown ${kind}`);
    const trainer = reader.at(object, 'spec', 'trainer');
    const nodes = reader.count(
      reader.at(trainer, 'numNodes') ?? reader.at(runtime, 'spec', 'mlPolicy', 'numNodes'),
      'spec.trainer.numNodes',
      1,
    );
    const resources = reader.at(trainer, 'resourcesPerNode');
    return reader
      .items(reader.at(runtime, 'spec', 'template', 'spec', 'replicatedJobs'), 'spec.runtimeRef')
      .map((jobs, index): TemplatedPods => {
        const name = reader.text(reader.at(jobs, 'name'), 'spec.runtimeRef') || `${index}`;
        const job = reader.at(jobs, 'template', 'spec');
        const step = reader.at(jobs, 'template', 'metadata', 'labels', TRAINER_STEP);
        const isTrainer = step === undefined ? name === 'node' : step === 'trainer';
        const each = isTrainer ? nodes : jobPods(reader, job, 'spec.runtimeRef');
        const replicas = reader.count(reader.at(jobs, 'replicas'), 'spec.runtimeRef', 1);
        const count = Math.max(0, replicas - succeededJobs(reader, object, 'jobsStatus', name)) * each;
        const template = reader.at(job, 'template');
        return {
          name,
          count: isSuspended ? 0 : count,
          template: isTrainer && resources !== undefined ? withResources(reader, template, resources) : template,
          path: `spec.runtimeRef.${name}`,
        };
      });
  },
  isTerminal: (reader, object) => hasCondition(reader, object, ['Complete', 'Failed']),
};

/** Sets the resources of the training container: the one named `node`, or the first one. */
function withResources(reader: ManifestReader, template: Json, resources: Json): Json {
  const spec = reader.at(template, 'spec');
  const containers = reader.items(reader.at(spec, 'containers'), 'spec.runtimeRef');
  const trains = containers.find((container) => reader.at(container, 'name') === 'node') ?? containers[0];
  return {
    ...(template as object | undefined),
    spec: {
      ...(spec as object | undefined),
      containers: containers.map((container) =>
        container === trains ? { ...(container as object), resources } : container,
      ),
    },
  };
}

/** LeaderWorkerSet: groups with one leader and `size - 1` workers each. */
const LEADER_WORKER_SET: Evaluator = {
  apiGroup: 'leaderworkerset.x-k8s.io',
  kind: 'LeaderWorkerSet',
  resource: 'leaderworkersets.leaderworkerset.x-k8s.io',
  charges: true,
  waitsForEnd: true,
  pods(reader, object) {
    const replicas = reader.count(reader.at(object, 'spec', 'replicas'), 'spec.replicas', 1);
    const templates = reader.at(object, 'spec', 'leaderWorkerTemplate');
    const size = reader.count(reader.at(templates, 'size'), 'spec.leaderWorkerTemplate.size', 1);
    const worker = reader.at(templates, 'workerTemplate');
    const path = 'spec.leaderWorkerTemplate';
    return [
      {
        name: 'leader',
        count: size === 0 ? 0 : replicas,
        template: reader.at(templates, 'leaderTemplate') ?? worker,
        path: `${path}.leaderTemplate`,
      },
      { name: 'worker', count: replicas * Math.max(0, size - 1), template: worker, path: `${path}.workerTemplate` },
    ];
  },
};

/** Kinds of batch jobs and pod groups. */
export const BATCH_KINDS: readonly Evaluator[] = [
  ROLLOUT,
  trainingJob('TFJob', 'tfjobs.kubeflow.org', 'tfReplicaSpecs'),
  trainingJob('PyTorchJob', 'pytorchjobs.kubeflow.org', 'pytorchReplicaSpecs'),
  trainingJob('MPIJob', 'mpijobs.kubeflow.org', 'mpiReplicaSpecs'),
  trainingJob('XGBoostJob', 'xgboostjobs.kubeflow.org', 'xgbReplicaSpecs'),
  trainingJob('PaddleJob', 'paddlejobs.kubeflow.org', 'paddleReplicaSpecs'),
  TRAIN_JOB,
  JOB_SET,
  LEADER_WORKER_SET,
];
