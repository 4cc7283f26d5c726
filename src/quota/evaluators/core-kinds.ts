import { hasCondition, statusCount, type Evaluator, type TemplatedPods } from './evaluator.js';
import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

/** Deployments and similar kinds: `replicas` pods of one template; default 1. */
function replicated(apiGroup: string, kind: string, resource: string): Evaluator {
  return {
    apiGroup,
    kind,
    resource,
    charges: true,
    waitsForEnd: kind === 'StatefulSet',
    pods(reader, object, { chargeSurge }) {
      const replicas = reader.count(reader.at(object, 'spec', 'replicas'), 'spec.replicas', 1);
      const surge = chargeSurge && kind === 'Deployment' ? surgeOf(reader, object, replicas) : 0;
      return [
        { name: '', count: replicas + surge, template: reader.at(object, 'spec', 'template'), path: 'spec.template' },
      ];
    },
  };
}

/** Pods that an update adds to the replicas: a count or a percentage, rounded up. Kubernetes' default is 25 %. */
function surgeOf(reader: ManifestReader, object: Json, replicas: number): number {
  if (reader.at(object, 'spec', 'strategy', 'type') === 'Recreate') return 0;
  const surge = reader.at(object, 'spec', 'strategy', 'rollingUpdate', 'maxSurge') ?? '25%';
  const percent = typeof surge === 'string' ? /^(\d{1,3})%$/.exec(surge)?.[1] : undefined;
  if (percent !== undefined) return Math.ceil((replicas * Number(percent)) / 100);
  return reader.count(surge, 'spec.strategy.rollingUpdate.maxSurge', 0);
}

/**
 * Number of parallel pods of a Job that are still to run. `job` is a JobSpec; `status` is the status of a running Job.
 * A Job without `completions` is a work queue: it starts no pods once one has succeeded.
 */
export function jobPods(reader: ManifestReader, job: Json, path: string, status: Json = undefined): number {
  if (reader.flag(reader.at(job, 'suspend'))) return 0;
  const parallelism = reader.count(reader.at(job, 'parallelism'), `${path}.parallelism`, 1);
  const completions = reader.at(job, 'completions');
  const succeeded = statusCount(reader, status, 'succeeded');
  if ((completions ?? null) === null && succeeded > 0)
    return Math.min(parallelism, statusCount(reader, status, 'active'));
  const failed = indexesIn(reader.at(status, 'failedIndexes'));
  const left = reader.count(completions, `${path}.completions`, parallelism) - succeeded - failed;
  return Math.max(0, Math.min(parallelism, left));
}

/** The number of indexes in a list such as `0-4,7`. */
function indexesIn(list: Json): number {
  if (typeof list !== 'string') return 0;
  return [...list.matchAll(/(\d+)(?:-(\d+))?/g)].reduce(
    (sum, [, first, last]) => sum + Math.max(0, Number(last ?? first) - Number(first) + 1),
    0,
  );
}

/** Kueue holds a pod back with this scheduling gate until it admits the pod, as it holds back a Job by `suspend`. */
const KUEUE_GATE = 'kueue.x-k8s.io/admission';

const POD: Evaluator = {
  apiGroup: '',
  kind: 'Pod',
  resource: 'pods',
  charges: true,
  // A pod serves as its own template.
  pods: (reader, object): readonly TemplatedPods[] => {
    const gates = reader.items(reader.at(object, 'spec', 'schedulingGates'), 'spec.schedulingGates');
    const isHeldBack = gates.some((gate) => reader.at(gate, 'name') === KUEUE_GATE);
    return [{ name: '', count: isHeldBack ? 0 : 1, template: object, path: '' }];
  },
  isTerminal: (reader, object) =>
    ['Succeeded', 'Failed'].includes(reader.text(reader.at(object, 'status', 'phase'), 'status.phase')),
};

const JOB: Evaluator = {
  apiGroup: 'batch',
  kind: 'Job',
  resource: 'jobs.batch',
  charges: true,
  pods: (reader, object) => [
    {
      name: '',
      count: jobPods(reader, reader.at(object, 'spec'), 'spec', reader.at(object, 'status')),
      template: reader.at(object, 'spec', 'template'),
      path: 'spec.template',
    },
  ],
  // Once it is decided how a Job ends, it starts no pods; those that run are counted until they have ended.
  isTerminal: (reader, object) =>
    hasCondition(reader, object, ['Complete', 'Failed', 'SuccessCriteriaMet', 'FailureTarget']),
};

/** One pod on each node that the pod template allows. */
const DAEMON_SET: Evaluator = {
  apiGroup: 'apps',
  kind: 'DaemonSet',
  resource: 'daemonsets.apps',
  charges: true,
  waitsForEnd: true,
  pods(reader, object, { matchingNodes }) {
    const template = reader.at(object, 'spec', 'template');
    const desired = reader.count(
      reader.at(object, 'status', 'desiredNumberScheduled'),
      'status.desiredNumberScheduled',
      1,
    );
    return [{ name: '', count: matchingNodes(template) ?? desired, template, path: 'spec.template' }];
  },
};

/** Requested storage, in total and by storage class. */
const VOLUME_CLAIM: Evaluator = {
  apiGroup: '',
  kind: 'PersistentVolumeClaim',
  resource: 'persistentvolumeclaims',
  charges: true,
  pods: () => [],
  amounts(reader, object) {
    const storage = reader.quantities(reader.at(object, 'spec', 'resources', 'requests'), 'spec.resources.requests');
    const size = storage.get('storage') ?? 0;
    const storageClass = reader.text(reader.at(object, 'spec', 'storageClassName'), 'spec.storageClassName');
    const suffix = `${storageClass}.storageclass.storage.k8s.io`;
    return {
      persistentvolumeclaims: 1,
      storage: size,
      ...(storageClass === '' ? {} : { [`${suffix}/requests.storage`]: size, [`${suffix}/persistentvolumeclaims`]: 1 }),
    };
  },
};

const SERVICE: Evaluator = {
  apiGroup: '',
  kind: 'Service',
  resource: 'services',
  charges: true,
  pods: () => [],
  amounts(reader, object) {
    const type = reader.text(reader.at(object, 'spec', 'type'), 'spec.type');
    const ports = reader.items(reader.at(object, 'spec', 'ports'), 'spec.ports').length;
    const isBalanced = type === 'LoadBalancer';
    const allocates = reader.at(object, 'spec', 'allocateLoadBalancerNodePorts') !== false;
    return {
      services: 1,
      ...(isBalanced ? { 'services.loadbalancers': 1 } : {}),
      ...(type === 'NodePort' || (isBalanced && allocates) ? { 'services.nodeports': ports } : {}),
    };
  },
};

/** A CronJob is not charged; its Jobs are. */
const CRON_JOB: Evaluator = {
  apiGroup: 'batch',
  kind: 'CronJob',
  resource: 'cronjobs.batch',
  charges: false,
  pods: () => [],
};

/** Built-in kinds of Kubernetes. */
export const CORE_KINDS: readonly Evaluator[] = [
  replicated('apps', 'Deployment', 'deployments.apps'),
  replicated('apps', 'ReplicaSet', 'replicasets.apps'),
  replicated('apps', 'StatefulSet', 'statefulsets.apps'),
  replicated('', 'ReplicationController', 'replicationcontrollers'),
  DAEMON_SET,
  POD,
  JOB,
  CRON_JOB,
  VOLUME_CLAIM,
  SERVICE,
];
