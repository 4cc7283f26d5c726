import { test } from 'tap';
import { GROUP_LABEL, KNOWN_KINDS, resourceOf } from '../../../src/quota/internal.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

const template = {
  spec: { containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: 1 }, requests: { cpu: 1 } } }] },
};

/** An object of a kind, the objects that its controllers create, and its number of pods. */
interface Sample {
  readonly version?: string;
  readonly spec: object;
  /**
   * For each pod the kinds between it and the object, outermost first; `Pod` names the first pod, which owns the rest.
   */
  readonly pods: readonly (readonly string[])[];
}

const times = (count: number, chain: readonly string[]): readonly (readonly string[])[] =>
  Array.from({ length: count }, () => chain);
const replicaSpecs = (...roles: readonly (readonly [string, number])[]) =>
  Object.fromEntries(roles.map(([role, replicas]) => [role, { replicas, template }]));

/** By kind; all charged kinds must be listed here. */
const SAMPLES: Readonly<Record<string, Sample>> = {
  Deployment: { spec: { replicas: 3, template }, pods: times(3, ['ReplicaSet']) },
  ReplicaSet: { spec: { replicas: 2, template }, pods: times(2, []) },
  StatefulSet: { spec: { replicas: 2, template }, pods: times(2, []) },
  Pod: { spec: template.spec, pods: [] },
  Job: { spec: { parallelism: 3, completions: 5, template }, pods: times(3, []) },
  Rollout: { version: 'v1alpha1', spec: { replicas: 2, template }, pods: times(2, ['ReplicaSet']) },
  TFJob: { spec: { tfReplicaSpecs: replicaSpecs(['PS', 1], ['Worker', 2]) }, pods: times(3, []) },
  PyTorchJob: { spec: { pytorchReplicaSpecs: replicaSpecs(['Master', 1], ['Worker', 3]) }, pods: times(4, []) },
  MPIJob: {
    version: 'v2beta1',
    spec: { mpiReplicaSpecs: replicaSpecs(['Launcher', 1], ['Worker', 2]) },
    pods: [['Job'], [], []],
  },
  JobSet: {
    version: 'v1alpha2',
    spec: { replicatedJobs: [{ name: 'a', replicas: 2, template: { spec: { parallelism: 2, template } } }] },
    pods: times(4, ['Job']),
  },
  LeaderWorkerSet: {
    spec: { replicas: 1, leaderWorkerTemplate: { size: 4, workerTemplate: template } },
    // The leader pod owns the StatefulSet of its workers.
    pods: [['StatefulSet'], ...times(3, ['StatefulSet', 'Pod', 'StatefulSet'])],
  },
  RayCluster: {
    spec: {
      headGroupSpec: { template },
      workerGroupSpecs: [{ groupName: 'w', replicas: 2, minReplicas: 2, maxReplicas: 2, template }],
    },
    pods: times(3, []),
  },
  RayJob: {
    spec: {
      rayClusterSpec: {
        headGroupSpec: { template },
        workerGroupSpecs: [{ groupName: 'w', replicas: 2, minReplicas: 2, maxReplicas: 2, template }],
      },
      submitterPodTemplate: template,
    },
    pods: [...times(3, ['RayCluster']), ['Job']],
  },
  RayService: {
    spec: {
      rayClusterConfig: {
        headGroupSpec: { template },
        // A worker group may have the name of the head.
        workerGroupSpecs: [{ groupName: 'head', replicas: 2, minReplicas: 2, maxReplicas: 2, template }],
      },
    },
    pods: times(3, ['RayCluster']),
  },
  ReplicationController: { spec: { replicas: 2, template }, pods: times(2, []) },
  // The cluster has two nodes.
  DaemonSet: { spec: { template }, pods: times(2, []) },
  XGBoostJob: { spec: { xgbReplicaSpecs: replicaSpecs(['Master', 1], ['Worker', 2]) }, pods: times(3, []) },
  PaddleJob: { spec: { paddleReplicaSpecs: replicaSpecs(['Worker', 2]) }, pods: times(2, []) },
  TrainJob: {
    version: 'v1alpha1',
    spec: { runtimeRef: { name: 'torch' }, trainer: { numNodes: 3 } },
    pods: times(3, ['JobSet', 'Job']),
  },
  SparkApplication: {
    version: 'v1beta2',
    spec: { driver: { coreLimit: '1' }, executor: { instances: 2, cores: 1, coreLimit: '1' } },
    // The driver owns its executors.
    pods: [[], ...times(2, ['Pod'])],
  },
};

test('for every kind as many pods are metered as are charged', async (t) => {
  const charged = KNOWN_KINDS.filter((each) => each.charges && each.amounts === undefined);
  t.same(
    charged.map(({ kind }) => kind).filter((kind) => !(kind in SAMPLES)),
    [],
    'every kind has a sample',
  );
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  for (const each of charged) {
    const version = SAMPLES[each.kind]?.version ?? 'v1';
    on.server.define({ group: each.apiGroup, version, plural: resourceOf(each), kind: each.kind, namespaced: true });
  }
  on.server.define({
    group: 'trainer.kubeflow.org',
    version: 'v1alpha1',
    plural: 'clustertrainingruntimes',
    kind: 'ClusterTrainingRuntime',
    namespaced: false,
  });
  on.server.seed('clustertrainingruntimes', {
    metadata: { name: 'torch' },
    spec: {
      mlPolicy: { numNodes: 1 },
      template: { spec: { replicatedJobs: [{ name: 'node', template: { spec: { template } } }] } },
    },
  });
  for (const name of ['node1', 'node2'])
    on.server.seed('nodes', { metadata: { name }, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  await on.join();
  const groupOf = (kind: string): string => `of-${kind.toLowerCase()}`;
  for (const { kind } of charged)
    t.match(await on.createGroup(groupOf(kind), { 'limits.cpu': 100, 'cash/limits.cpu': 1000 }), { ok: true });
  const running = (owner: { readonly kind: string; readonly uid: string } | null, name: string, group: string) => ({
    metadata: {
      name,
      ...(owner === null ? { labels: { [GROUP_LABEL]: group } } : { ownerReferences: [reference(owner)] }),
    },
    spec: { nodeName: 'node1', ...template.spec },
    status: {
      phase: 'Running',
      conditions: [
        {
          type: 'PodScheduled',
          status: 'True',
          lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
        },
      ],
    },
  });
  const reference = ({ kind: ownerKind, uid }: { readonly kind: string; readonly uid: string }) => {
    const known = charged.find((each) => each.kind === ownerKind);
    const group = known?.apiGroup ?? '';
    const version = SAMPLES[ownerKind]?.version ?? 'v1';
    return {
      apiVersion: group === '' ? version : `${group}/${version}`,
      kind: ownerKind,
      name: uid,
      uid,
      controller: true,
    };
  };
  const seed = (ownerKind: string, object: Parameters<typeof on.server.seed>[1]): string => {
    const known = charged.find((each) => each.kind === ownerKind);
    return on.server.seed(known?.resource ?? '', object).metadata.uid ?? '';
  };
  for (const { kind } of charged) {
    const group = groupOf(kind);
    if (kind === 'Pod') {
      seed('Pod', running(null, 'alone', group));
      continue;
    }
    const { spec, pods } = SAMPLES[kind] as Sample;
    const root = seed(kind, { metadata: { name: 'w', labels: { [GROUP_LABEL]: group } }, spec });
    let firstPod = '';
    pods.forEach((chain, index) => {
      let owner = { kind, uid: root };
      chain.forEach((between, depth) => {
        const metadata = { name: `${group}-${index}-${depth}`, ownerReferences: [reference(owner)] };
        const uid = between === 'Pod' ? firstPod : seed(between, { metadata, spec: {} });
        owner = { kind: between, uid };
      });
      const pod = seed('Pod', running(owner, `${group}-${index}`, group));
      if (firstPod === '') firstPod = pod;
    });
  }
  for (const { kind, apiGroup } of charged) {
    const group = groupOf(kind);
    const expected = String(Math.max(1, SAMPLES[kind]?.pods.length ?? 0));
    await eventually(() => on.used(group) === expected, `${kind} (${apiGroup}) to be charged ${expected}`);
    const rateOf = () =>
      (on.statusOf(group)['burnRate'] as Readonly<Record<string, string>> | undefined)?.['cash/limits.cpu'];
    await eventually(() => rateOf() === expected, `${expected} pods of ${kind} to be counted`);
    t.pass(kind);
  }
});
