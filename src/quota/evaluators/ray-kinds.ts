import type { Evaluator, TemplatedPods } from './evaluator.js';
import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

/** KubeRay's default resources of the autoscaler container. */
const AUTOSCALER = { requests: { cpu: '500m', memory: '512Mi' }, limits: { cpu: '500m', memory: '512Mi' } };
/** KubeRay's default resources of the pod that submits a job. */
const SUBMITTER = { requests: { cpu: '500m', memory: '200Mi' }, limits: { cpu: '1', memory: '1Gi' } };

/** Pods of a RayClusterSpec: one head and groups of workers; groups that Ray scales count with their maximum. */
function clusterPods(
  reader: ManifestReader,
  cluster: Json,
  path: string,
  beside: readonly Json[],
): readonly TemplatedPods[] {
  const isScaled = reader.flag(reader.at(cluster, 'enableInTreeAutoscaling'));
  const isSuspended = reader.flag(reader.at(cluster, 'suspend'));
  const autoscaler = isScaled
    ? [{ name: 'autoscaler', resources: reader.at(cluster, 'autoscalerOptions', 'resources') ?? AUTOSCALER }]
    : [];
  const head: TemplatedPods = {
    name: 'head',
    count: isSuspended ? 0 : 1,
    template: withContainers(reader.at(cluster, 'headGroupSpec', 'template'), [...autoscaler, ...beside], reader),
    path: `${path}.headGroupSpec.template`,
  };
  const workers = reader
    .items(reader.at(cluster, 'workerGroupSpecs'), `${path}.workerGroupSpecs`)
    .map((group, index): TemplatedPods => {
      const at = `${path}.workerGroupSpecs[${index}]`;
      const count = (name: string, absent: number): number =>
        reader.count(reader.at(group, name), `${at}.${name}`, absent);
      const least = count('minReplicas', 0);
      const most = count('maxReplicas', 2 ** 31 - 1);
      const wanted = Math.min(Math.max(count('replicas', least), least), most);
      const replicas = isScaled ? count('maxReplicas', wanted) : wanted;
      const isGroupSuspended = isSuspended || reader.flag(reader.at(group, 'suspend'));
      return {
        name: reader.text(reader.at(group, 'groupName'), `${at}.groupName`) || `workers-${index}`,
        count: isGroupSuspended ? 0 : replicas * count('numOfHosts', 1),
        template: reader.at(group, 'template'),
        path: `${at}.template`,
      };
    });
  return [head, ...workers];
}

function withContainers(template: Json, more: readonly Json[], reader: ManifestReader): Json {
  if (more.length === 0) return template;
  const spec = reader.at(template, 'spec');
  const containers = [...reader.items(reader.at(spec, 'containers'), 'containers'), ...more];
  return { ...(template as object | undefined), spec: { ...(spec as object | undefined), containers } };
}

const RAY_CLUSTER: Evaluator = {
  apiGroup: 'ray.io',
  kind: 'RayCluster',
  resource: 'rayclusters.ray.io',
  charges: true,
  pods: (reader, object) => clusterPods(reader, reader.at(object, 'spec'), 'spec', []),
};

/** The part of a job's cluster that stays after the job; `none` also where the job uses an existing cluster. */
type ClusterRest = 'all' | 'head' | 'none';

/** The rest of the cluster by each deletion policy of KubeRay. */
const REST_BY_POLICY: Readonly<Record<string, ClusterRest>> = {
  DeleteCluster: 'none',
  DeleteSelf: 'none',
  DeleteWorkers: 'head',
};

/** Whether a job has ended, so that the pod that submitted it has ended too. Jobs that are tried again have not. */
function hasEnded(reader: ManifestReader, job: Json): boolean {
  const status = reader.text(reader.at(job, 'status', 'jobDeploymentStatus'), 'status.jobDeploymentStatus');
  return ['Complete', 'Failed'].includes(status);
}

/**
 * What an ended job leaves of its cluster: by `deletionStrategy` (policies by result, or rules), or by
 * `shutdownAfterJobFinishes`. A cluster that is not shut down keeps its resources. Pods that run until a time to live
 * is over are charged as what a finished job left.
 */
function restOf(reader: ManifestReader, job: Json): ClusterRest {
  const spec = reader.at(job, 'spec');
  if (reader.at(spec, 'rayClusterSpec') === undefined) return 'none';
  const result = reader.text(reader.at(job, 'status', 'jobStatus'), 'status.jobStatus');
  const deployment = reader.text(reader.at(job, 'status', 'jobDeploymentStatus'), 'status.jobDeploymentStatus');
  const strategy = reader.at(spec, 'deletionStrategy');
  const rules = reader.items(reader.at(strategy, 'deletionRules'), 'spec.deletionStrategy.deletionRules');
  const policies = [
    reader.at(strategy, result === 'SUCCEEDED' ? 'onSuccess' : 'onFailure', 'policy'),
    ...rules
      .filter((rule) => {
        const status = reader.at(rule, 'condition', 'jobStatus') ?? result;
        return status === result && (reader.at(rule, 'condition', 'jobDeploymentStatus') ?? deployment) === deployment;
      })
      .map((rule) => reader.at(rule, 'policy')),
  ];
  const rests = policies.map((policy) => REST_BY_POLICY[reader.text(policy, 'spec.deletionStrategy')]);
  if (rests.includes('none') || reader.flag(reader.at(spec, 'shutdownAfterJobFinishes'))) return 'none';
  return rests.includes('head') ? 'head' : 'all';
}

/**
 * The pods of a new cluster, unless the job selects an existing one, and the submitter: a pod, or a container in the
 * head pod.
 */
const RAY_JOB: Evaluator = {
  apiGroup: 'ray.io',
  kind: 'RayJob',
  resource: 'rayjobs.ray.io',
  charges: true,
  pods(reader, object) {
    const isSuspended = reader.flag(reader.at(object, 'spec', 'suspend'));
    const isOver = hasEnded(reader, object);
    const mode = reader.text(reader.at(object, 'spec', 'submissionMode'), 'spec.submissionMode') || 'K8sJobMode';
    const submitter = { name: 'submitter', resources: SUBMITTER };
    const cluster = reader.at(object, 'spec', 'rayClusterSpec');
    const [head, ...workers] =
      cluster === undefined
        ? []
        : clusterPods(reader, cluster, 'spec.rayClusterSpec', mode === 'SidecarMode' ? [submitter] : []);
    const template = reader.at(object, 'spec', 'submitterPodTemplate') ?? { spec: { containers: [submitter] } };
    const pod: readonly TemplatedPods[] =
      mode === 'K8sJobMode' ? [{ name: 'submitter', count: 1, template, path: 'spec.submitterPodTemplate' }] : [];
    const ended = isOver ? [...(restOf(reader, object) === 'head' ? workers : []), ...pod] : [];
    return [...(head === undefined ? [] : [head]), ...workers, ...pod].map((pods) =>
      isSuspended || ended.includes(pods) ? { ...pods, count: 0 } : pods,
    );
  },
  isTerminal: (reader, object) => hasEnded(reader, object) && restOf(reader, object) === 'none',
};

/** A serving cluster; an update runs a second cluster beside it. */
const RAY_SERVICE: Evaluator = {
  apiGroup: 'ray.io',
  kind: 'RayService',
  resource: 'rayservices.ray.io',
  charges: true,
  pods(reader, object, { chargeSurge }) {
    const path = 'spec.rayClusterConfig';
    const pods = clusterPods(reader, reader.at(object, 'spec', 'rayClusterConfig'), path, []);
    const isReplaced = reader.at(object, 'spec', 'upgradeStrategy', 'type') !== 'None';
    return chargeSurge && isReplaced ? pods.map((each) => ({ ...each, count: 2 * each.count })) : pods;
  },
};

/** Kinds of KubeRay. */
export const RAY_KINDS: readonly Evaluator[] = [RAY_CLUSTER, RAY_JOB, RAY_SERVICE];
