import { test } from 'tap';
import { declaredKind, evaluate, type EvaluationOptions } from '../../../src/quota/index.js';
import { container, deployment, object, template } from './manifests.js';

const ONE = template({ cpu: 1 });

/** Pods by role, or the code of a refusal, or why nothing is charged. */
function pods(manifest: unknown, options: EvaluationOptions = {}): unknown {
  const evaluation = evaluate(manifest, options);
  if (!evaluation.ok) return evaluation.code;
  if (evaluation.demand === null) return evaluation.reason;
  return Object.fromEntries(
    evaluation.demand.podSets.map(({ name = '', count, limits = {} }) => [
      name,
      `${count} x ${String(limits['cpu'] ?? 0)}m`,
    ]),
  );
}

const done = (type: string) => ({ status: { conditions: [{ type, status: 'True' }] } });

const CASES: readonly (readonly [string, unknown, unknown, EvaluationOptions?])[] = [
  ['a Deployment', deployment(3, ONE), { '': '3 x 1000m' }],
  ['a Deployment that does not say how many', deployment(undefined, ONE), { '': '1 x 1000m' }],
  ['a Deployment without replicas', deployment(0, ONE), { '': '0 x 1000m' }],
  ['a Deployment with a negative number', deployment(-1, ONE), 'InvalidManifest'],
  [
    'a paused Deployment',
    object('apps/v1', 'Deployment', { replicas: 2, paused: true, template: ONE }),
    { '': '2 x 1000m' },
  ],
  ['a Deployment with what an update may need', deployment(5, ONE), { '': '7 x 1000m' }, { chargeSurge: true }],
  [
    'a Deployment that is re-created',
    object('apps/v1', 'Deployment', { replicas: 5, strategy: { type: 'Recreate' }, template: ONE }),
    { '': '5 x 1000m' },
    { chargeSurge: true },
  ],
  ['a StatefulSet', object('apps/v1', 'StatefulSet', { replicas: 2, template: ONE }), { '': '2 x 1000m' }],
  ['a ReplicaSet', object('apps/v1', 'ReplicaSet', { replicas: 2, template: ONE }), { '': '2 x 1000m' }],
  ['a Pod', object('v1', 'Pod', ONE.spec), { '': '1 x 1000m' }],
  ['a Pod that is done', object('v1', 'Pod', ONE.spec, { status: { phase: 'Succeeded' } }), {}],
  ['a Job', object('batch/v1', 'Job', { parallelism: 4, completions: 3, template: ONE }), { '': '3 x 1000m' }],
  ['a Job of work from a queue', object('batch/v1', 'Job', { parallelism: 4, template: ONE }), { '': '4 x 1000m' }],
  [
    'a Job that is suspended',
    object('batch/v1', 'Job', { parallelism: 4, suspend: true, template: ONE }),
    { '': '0 x 1000m' },
  ],
  ['a Job that is complete', object('batch/v1', 'Job', { template: ONE }, done('Complete')), {}],
  [
    'a CronJob',
    object('batch/v1', 'CronJob', { jobTemplate: {} }),
    'a CronJob is not charged; the objects that it creates are',
  ],
  ['a Rollout', object('argoproj.io/v1alpha1', 'Rollout', { replicas: 2, template: ONE }), { '': '2 x 1000m' }],
  [
    'a Rollout that runs both colours',
    object('argoproj.io/v1alpha1', 'Rollout', { replicas: 2, strategy: { blueGreen: {} }, template: ONE }),
    { '': '4 x 1000m' },
    { chargeSurge: true },
  ],
  [
    'a Rollout of a Deployment',
    object('argoproj.io/v1alpha1', 'Rollout', {
      replicas: 2,
      workloadRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
    }),
    { '': '2 x 1000m' },
    { lookup: (_api, kind, name) => (kind === 'Deployment' && name === 'd' ? deployment(0, ONE) : undefined) },
  ],
  ['a Rollout of nothing', object('argoproj.io/v1alpha1', 'Rollout', { replicas: 2 }), 'InvalidManifest'],
  [
    'a TFJob',
    object('kubeflow.org/v1', 'TFJob', {
      tfReplicaSpecs: {
        PS: { replicas: 2, template: ONE },
        Worker: { replicas: 4, template: template({ cpu: 2 }) },
        Chief: { template: ONE },
      },
    }),
    { PS: '2 x 1000m', Worker: '4 x 2000m', Chief: '1 x 1000m' },
  ],
  [
    'a TFJob that succeeded',
    object('kubeflow.org/v1', 'TFJob', { tfReplicaSpecs: { PS: { template: ONE } } }, done('Succeeded')),
    {},
  ],
  [
    'a TFJob that is suspended',
    object('kubeflow.org/v1', 'TFJob', { runPolicy: { suspend: true }, tfReplicaSpecs: { PS: { template: ONE } } }),
    { PS: '0 x 1000m' },
  ],
  [
    'a PyTorchJob that may grow',
    object('kubeflow.org/v1', 'PyTorchJob', {
      elasticPolicy: { maxReplicas: 6 },
      pytorchReplicaSpecs: { Master: { template: ONE }, Worker: { replicas: 2, template: ONE } },
    }),
    { Master: '1 x 1000m', Worker: '6 x 1000m' },
  ],
  [
    'an MPIJob',
    object('kubeflow.org/v2beta1', 'MPIJob', {
      mpiReplicaSpecs: { Launcher: { replicas: 1, template: ONE }, Worker: { replicas: 3, template: ONE } },
    }),
    { Launcher: '1 x 1000m', Worker: '3 x 1000m' },
  ],
  [
    'a JobSet',
    object('jobset.x-k8s.io/v1alpha2', 'JobSet', {
      replicatedJobs: [
        { name: 'driver', template: { spec: { template: ONE } } },
        { name: 'workers', replicas: 2, template: { spec: { parallelism: 4, completions: 4, template: ONE } } },
      ],
    }),
    { driver: '1 x 1000m', workers: '8 x 1000m' },
  ],
  [
    'a JobSet that is complete',
    object('jobset.x-k8s.io/v1alpha2', 'JobSet', { replicatedJobs: [] }, done('Completed')),
    {},
  ],
  [
    'a LeaderWorkerSet',
    object('leaderworkerset.x-k8s.io/v1', 'LeaderWorkerSet', {
      replicas: 2,
      leaderWorkerTemplate: { size: 4, leaderTemplate: template({ cpu: 2 }), workerTemplate: ONE },
    }),
    { leader: '2 x 2000m', worker: '6 x 1000m' },
  ],
  [
    'a LeaderWorkerSet whose leaders are workers',
    object('leaderworkerset.x-k8s.io/v1', 'LeaderWorkerSet', {
      leaderWorkerTemplate: { size: 1, workerTemplate: ONE },
    }),
    { leader: '1 x 1000m', worker: '0 x 1000m' },
  ],
  [
    'a RayCluster',
    object('ray.io/v1', 'RayCluster', {
      headGroupSpec: { template: ONE },
      workerGroupSpecs: [
        { groupName: 'small', replicas: 3, minReplicas: 1, maxReplicas: 9, template: ONE },
        { replicas: 1, numOfHosts: 4, template: ONE },
      ],
    }),
    { head: '1 x 1000m', small: '3 x 1000m', 'workers-1': '4 x 1000m' },
  ],
  [
    'a RayCluster that Ray scales',
    object('ray.io/v1', 'RayCluster', {
      enableInTreeAutoscaling: true,
      headGroupSpec: { template: ONE },
      workerGroupSpecs: [{ groupName: 'small', replicas: 3, maxReplicas: 9, template: ONE }],
    }),
    { head: '1 x 1500m', small: '9 x 1000m' },
  ],
  [
    'a RayJob',
    object('ray.io/v1', 'RayJob', { rayClusterSpec: { headGroupSpec: { template: ONE }, workerGroupSpecs: [] } }),
    { head: '1 x 1000m', submitter: '1 x 1000m' },
  ],
  [
    'a RayJob that submits from beside the head',
    object('ray.io/v1', 'RayJob', {
      submissionMode: 'SidecarMode',
      rayClusterSpec: { headGroupSpec: { template: ONE } },
    }),
    { head: '1 x 2000m' },
  ],
  [
    'a RayJob whose cluster stays',
    object(
      'ray.io/v1',
      'RayJob',
      { submissionMode: 'HTTPMode', rayClusterSpec: { headGroupSpec: { template: ONE } } },
      { status: { jobDeploymentStatus: 'Complete' } },
    ),
    { head: '1 x 1000m' },
  ],
  [
    'a RayJob whose cluster goes',
    object(
      'ray.io/v1',
      'RayJob',
      { shutdownAfterJobFinishes: true, rayClusterSpec: { headGroupSpec: { template: ONE } } },
      { status: { jobDeploymentStatus: 'Complete' } },
    ),
    {},
  ],
  ...(
    [
      ['that has ended, and whose cluster stays', {}, 'SUCCEEDED', { head: '1', small: '2', submitter: '0' }],
      ['that is tried again', {}, 'FAILED', { head: '1', small: '2', submitter: '1' }, 'Retrying'],
      [
        'that keeps its head',
        { onSuccess: { policy: 'DeleteWorkers' } },
        'SUCCEEDED',
        { head: '1', small: '0', submitter: '0' },
      ],
      [
        'that keeps its cluster where it failed',
        { onSuccess: { policy: 'DeleteCluster' } },
        'FAILED',
        { head: '1', small: '2', submitter: '0' },
      ],
      ['that goes', { onFailure: { policy: 'DeleteSelf' } }, 'FAILED', {}],
      [
        'whose cluster goes by a rule',
        {
          deletionRules: [
            { policy: 'DeleteWorkers', condition: { jobStatus: 'FAILED' } },
            { policy: 'DeleteCluster', condition: { jobDeploymentStatus: 'Complete' } },
          ],
        },
        'SUCCEEDED',
        {},
      ],
      [
        'whose workers go by a rule',
        { deletionRules: [{ policy: 'DeleteWorkers', condition: { jobStatus: 'SUCCEEDED', ttlSeconds: 9 } }] },
        'SUCCEEDED',
        { head: '1', small: '0', submitter: '0' },
      ],
    ] as readonly (readonly [string, object, string, Record<string, string>, string?])[]
  ).map(([title, deletionStrategy, jobStatus, expected, status]): (typeof CASES)[number] => [
    `a RayJob ${title}`,
    object(
      'ray.io/v1',
      'RayJob',
      {
        deletionStrategy,
        submitterPodTemplate: ONE,
        rayClusterSpec: {
          headGroupSpec: { template: ONE },
          workerGroupSpecs: [{ groupName: 'small', replicas: 2, template: ONE }],
        },
      },
      { status: { jobStatus, jobDeploymentStatus: status ?? (jobStatus === 'FAILED' ? 'Failed' : 'Complete') } },
    ),
    Object.fromEntries(Object.entries(expected).map(([role, count]) => [role, `${count} x 1000m`])),
  ]),
  ['a kind that nobody knows', object('example.com/v1', 'Widget', { template: ONE }), 'InvalidManifest'],
  ['a kind of another group', object('example.com/v1', 'Deployment', { template: ONE }), 'InvalidManifest'],
  ['nothing', null, 'InvalidManifest'],
  ['a list', [], 'InvalidManifest'],
  ['a Deployment without a template', object('apps/v1', 'Deployment', { replicas: 1 }), 'InvalidManifest'],
  ['containers that are no list', deployment(1, { spec: { containers: {} } }), 'InvalidManifest'],
  [
    'resources that are no object',
    deployment(1, { spec: { containers: [{ resources: { limits: [] } }] } }),
    'InvalidManifest',
  ],
  ['a quantity that is none', deployment(1, template({ cpu: 'lots' })), 'InvalidQuantity'],
  ['a quantity that is negative', deployment(1, template({ cpu: -1 })), 'NegativeQuantity'],
  [
    'labels that are no texts',
    object('apps/v1', 'Deployment', { template: ONE }, { labels: { 'biz.group.resource.quota': 7 } }),
    'InvalidManifest',
  ],
];

for (const [what, manifest, expected, options] of CASES) {
  test(`${what} is read`, (t) => {
    t.same(pods(manifest, options), expected);
    t.end();
  });
}

const owned = (apiVersion: string, kind: string, uid = 'o-1') =>
  object('v1', 'Pod', ONE.spec, {
    metadata: { ownerReferences: [{ apiVersion, kind, name: 'owner', uid, controller: true }] },
  });

test('an object of a charged owner is charged with its owner, if the owner exists', (t) => {
  t.equal(pods(owned('apps/v1', 'ReplicaSet')), 'its ReplicaSet owner is charged');
  t.same(pods(owned('batch/v1', 'CronJob')), { '': '1 x 1000m' }, 'a CronJob is not charged');
  t.same(pods(owned('v1', 'Node')), { '': '1 x 1000m' });
  const ownerExists = ({ uid }: { readonly uid: string }) => uid === 'o-1';
  t.equal(pods(owned('apps/v1', 'ReplicaSet'), { ownerExists }), 'its ReplicaSet owner is charged');
  t.same(pods(owned('apps/v1', 'ReplicaSet', 'made-up'), { ownerExists }), { '': '1 x 1000m' });
  t.end();
});

test('labels name the group and the types', (t) => {
  const evaluation = evaluate(
    deployment(1, ONE, {
      'biz.group.resource.quota/cpu-type': 'A4',
      'biz.group.resource.quota/gpu-type': 'T4',
      'biz.group.resource.quota/memory-type': '',
    }),
  );
  t.match(evaluation, {
    ok: true,
    isTerminal: false,
    demand: {
      group: 'g',
      types: { cpu: 'A4', gpu: 'T4' },
      objects: 'deployments.apps',
      workload: { kind: 'Deployment.apps', namespace: 'team', name: 'w', uid: 'u-1' },
    },
  });
  const unlabelled = { ...deployment(1, ONE), metadata: { name: 'w' } };
  t.match(evaluate(unlabelled), { ok: true, demand: { group: '' } });
  t.match(evaluate(unlabelled, { requireLabel: true }), { ok: false, code: 'InvalidManifest' });
  t.end();
});

test('a type that the requested nodes do not have is refused', (t) => {
  const placement = [
    {
      family: 'gpu',
      nodeLabel: 'nvidia.com/gpu.product',
      annotation: 'nvidia.com/include-gpu-type',
      products: { T4: ['Tesla-T4'], A100: ['A100-40', 'A100-80'] },
    },
  ];
  const asks = (type: string, more: object, metadata: object = {}) =>
    pods(
      deployment(
        1,
        { metadata, spec: { containers: [container({ cpu: 1 })], ...more } },
        { 'biz.group.resource.quota/gpu-type': type },
      ),
      { placement },
    );
  const affinity = (...terms: readonly (readonly string[])[]) => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: terms.map((values) => ({
            matchExpressions: values.length === 0 ? [] : [{ key: 'nvidia.com/gpu.product', operator: 'In', values }],
          })),
        },
      },
    },
  });
  const fine = { '': '1 x 1000m' };
  t.same(asks('T4', {}), fine);
  t.same(asks('T4', { nodeSelector: { 'nvidia.com/gpu.product': 'Tesla-T4' } }), fine);
  t.equal(asks('T4', { nodeSelector: { 'nvidia.com/gpu.product': 'A100-80' } }), 'TypeMismatch');
  t.equal(asks('T4', {}, { annotations: { 'nvidia.com/include-gpu-type': 'A100-80, A100-40' } }), 'TypeMismatch');
  t.equal(asks('A100', affinity(['Tesla-T4'])), 'TypeMismatch');
  t.same(asks('A100', affinity(['Tesla-T4'], ['A100-80'])), fine, 'one of the alternatives is right');
  t.same(asks('A100', affinity(['Tesla-T4'], [])), fine, 'one of the alternatives is open');
  t.equal(
    asks('H100', { nodeSelector: { 'nvidia.com/gpu.product': 'Tesla-T4' } }),
    'TypeMismatch',
    'a label that the catalog lacks does not hide a type that it has',
  );
  t.same(
    asks('H100', { nodeSelector: { 'nvidia.com/gpu.product': 'H100-SXM' } }),
    fine,
    'neither type nor product is in the catalog',
  );
  t.same(asks('A100.half', { nodeSelector: { 'nvidia.com/gpu.product': 'A100-40' } }), fine, 'a part of a type');
  t.equal(asks('T4.half', { nodeSelector: { 'nvidia.com/gpu.product': 'A100-40' } }), 'TypeMismatch');
  t.end();
});

test('a description can define any kind', (t) => {
  const simple = declaredKind({
    apiGroup: 'example.com',
    kind: 'Widget',
    plural: 'widgets',
    suspend: 'spec.paused',
    done: { field: 'status.phase', values: ['Done'] },
    pods: [{ replicas: 'spec.size', template: 'spec.podTemplate' }],
  });
  const roles = declaredKind({
    apiGroup: 'example.com',
    kind: 'Crew',
    plural: 'crews',
    pods: [
      { each: 'spec.roles', name: 'role', replicas: 'n', template: 'template' },
      { name: 'boss', template: 'spec.boss', defaultReplicas: 2 },
    ],
  });
  const kinds = [simple, roles];
  const widget = (spec: object, status = {}) =>
    object('example.com/v1', 'Widget', { podTemplate: ONE, ...spec }, { status });
  t.same(pods(widget({ size: 3 }), { kinds }), { '': '3 x 1000m' });
  t.same(pods(widget({}), { kinds }), { '': '1 x 1000m' });
  t.same(pods(widget({ size: 3, paused: true }), { kinds }), { '': '0 x 1000m' });
  t.same(pods(widget({ size: 3 }, { phase: 'Done' }), { kinds }), {});
  t.same(
    pods(
      object('example.com/v1', 'Crew', { boss: ONE, roles: [{ role: 'a', n: 2, template: ONE }, { template: ONE }] }),
      { kinds },
    ),
    { a: '2 x 1000m', 1: '1 x 1000m', boss: '2 x 1000m' },
  );
  t.same(pods(object('example.com/v1', 'Crew', { boss: ONE, roles: { x: { n: 2, template: ONE } } }), { kinds }), {
    x: '2 x 1000m',
    boss: '2 x 1000m',
  });
  t.equal(pods(object('example.com/v1', 'Crew', { boss: ONE, roles: 7 }), { kinds }), 'InvalidManifest');
  t.end();
});

test('a running job needs room for the pods that are still to end', (t) => {
  const job = (spec: object, status: object) => object('batch/v1', 'Job', { template: ONE, ...spec }, { status });
  const all = { parallelism: 10, completions: 10 };
  t.same(pods(job(all, { succeeded: 9, active: 1 })), { '': '1 x 1000m' });
  t.same(pods(job({ ...all, completionMode: 'Indexed' }, { failedIndexes: '0-4,7', succeeded: 1 })), {
    '': '3 x 1000m',
  });
  t.same(pods(job({ parallelism: 2, completions: 10 }, { succeeded: 5 })), { '': '2 x 1000m' });
  t.same(pods(job({ parallelism: 10 }, { active: 10 })), { '': '10 x 1000m' }, 'a work queue');
  t.same(pods(job({ parallelism: 10 }, { succeeded: 1, active: 2 })), { '': '2 x 1000m' }, 'that one has emptied');
  t.same(pods(job(all, { succeeded: 'many', failedIndexes: 7 })), { '': '10 x 1000m' }, 'an unreadable status');
  for (const type of ['SuccessCriteriaMet', 'FailureTarget'])
    t.same(pods(object('batch/v1', 'Job', { template: ONE, ...all }, done(type))), {}, type);
  const replicatedJobs = [{ name: 'a', replicas: 3, template: { spec: { parallelism: 2, template: ONE } } }];
  t.same(
    pods(
      object(
        'jobset.x-k8s.io/v1alpha2',
        'JobSet',
        { replicatedJobs },
        { status: { replicatedJobsStatus: [{ name: 'a', succeeded: 2 }] } },
      ),
    ),
    { a: '2 x 1000m' },
  );
  const roles = { Master: { replicas: 1, template: ONE }, Worker: { replicas: 3, template: ONE } };
  t.same(
    pods(
      object(
        'kubeflow.org/v1',
        'PyTorchJob',
        { pytorchReplicaSpecs: roles },
        { status: { replicaStatuses: { Worker: { succeeded: 2, active: 1 } } } },
      ),
    ),
    { Master: '1 x 1000m', Worker: '1 x 1000m' },
  );
  t.end();
});
