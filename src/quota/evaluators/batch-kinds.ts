import { jobPods } from './core-kinds.js';
import { hasCondition, type Evaluator, type TemplatedPods } from './evaluator.js';

/**
 * Argo Rollout: as a Deployment; the template may be that of a workload it refers to, and a blue-green update runs
 * twice.
 */
export const ROLLOUT: Evaluator = {
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
    if (referred === undefined)
      reader.problems.push('spec.workloadRef: that object is not known, and there is no spec.template');
    return [{ name: '', count, template: reader.at(referred, 'spec', 'template'), path: 'spec.workloadRef' }];
  },
};

/** Kubeflow's training jobs: pods by role. */
function trainingJob(kind: string, resource: string, roles: string): Evaluator {
  return {
    apiGroup: 'kubeflow.org',
    kind,
    resource,
    charges: true,
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
        const count = role === 'Worker' ? Math.max(replicas, elastic) : replicas;
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

/** JobSet: several Jobs, each several times. */
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
        const count =
          reader.count(reader.at(jobs, 'replicas'), `${path}.replicas`, 1) *
          jobPods(reader, job, `${path}.template.spec`);
        return {
          name: reader.text(reader.at(jobs, 'name'), `${path}.name`),
          count: isSuspended ? 0 : count,
          template: reader.at(job, 'template'),
          path: `${path}.template.spec.template`,
        };
      });
  },
  isTerminal: (reader, object) => hasCondition(reader, object, ['Completed', 'Failed']),
};

/** LeaderWorkerSet: groups of one leader and `size - 1` workers. */
const LEADER_WORKER_SET: Evaluator = {
  apiGroup: 'leaderworkerset.x-k8s.io',
  kind: 'LeaderWorkerSet',
  resource: 'leaderworkersets.leaderworkerset.x-k8s.io',
  charges: true,
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

/** Kinds that run work to its end, or in groups. */
export const BATCH_KINDS: readonly Evaluator[] = [
  ROLLOUT,
  trainingJob('TFJob', 'tfjobs.kubeflow.org', 'tfReplicaSpecs'),
  trainingJob('PyTorchJob', 'pytorchjobs.kubeflow.org', 'pytorchReplicaSpecs'),
  trainingJob('MPIJob', 'mpijobs.kubeflow.org', 'mpiReplicaSpecs'),
  JOB_SET,
  LEADER_WORKER_SET,
];
