import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { kubeconfig } from '../../harness/api-server/kubeconfig.js';
import { eventually } from '../../harness/eventually.js';
import { MAIN } from '../../harness/programs.js';
import { scratchDirectory } from '../../scratch.js';
import { QuotaCluster } from '../cluster.js';

// Each command is a process that takes seconds on a busy machine.
const PRODUCT = 'nvidia.com/gpu.product';
const A100 = { nodeSelector: { [PRODUCT]: 'NVIDIA-A100-SXM4-80GB' } };
const T4 = { nodeSelector: { [PRODUCT]: 'Tesla-T4' } };

const POLICY = {
  apiVersion: 'quota.gpu-manager.io/v1',
  kind: 'QuotaPolicy',
  metadata: { name: 'default', generation: 1 },
  spec: {
    strictTypes: true,
    surge: true,
    requireLabel: { namespaceSelector: { matchLabels: { strict: 'yes' } } },
    types: [
      { name: 'A100', nodeLabels: [{ key: PRODUCT, values: ['NVIDIA-A100*'] }] },
      { name: 'T4', nodeLabels: [{ key: PRODUCT, values: ['Tesla-T4'] }] },
    ],
    families: [{ name: 'npu', resources: ['huawei.com/Ascend910'] }],
    kinds: [
      {
        apiGroup: 'example.com',
        kind: 'Widget',
        plural: 'widgets',
        pods: [{ replicas: 'spec.size', template: 'spec.podTemplate' }],
      },
    ],
  },
};

const TREE = [
  {
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'BizGroupResourceQuota',
    metadata: { name: 'team' },
    spec: {
      hard: {
        'limits.cpu': 100,
        'requests.nvidia.com/gpu': 50,
        'requests.nvidia.com/gpu.A100': 0,
        'requests.nvidia.com/gpu.T4': 50,
        'requests.huawei.com/Ascend910.B': 1,
      },
    },
  },
  {
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'BizGroupResourceQuota',
    metadata: { name: 'closed' },
    spec: { namespaceSelector: { matchLabels: { team: 'closed' } }, hard: { 'limits.cpu': 100 } },
  },
];

const definition = (group: string, kind: string, plural: string, subresources: object = {}) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

const WORKERS = '.spec.pytorchReplicaSpecs.Worker.replicas';
/** The cluster's objects beside groups and workloads. */
const CLUSTER = [
  POLICY,
  definition('example.com', 'Widget', 'widgets'),
  definition('kubeflow.org', 'PyTorchJob', 'pytorchjobs', {
    scale: { specReplicasPath: WORKERS, statusReplicasPath: '.status.replicas' },
  }),
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'strict', labels: { strict: 'yes' } } },
  {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'defaults', namespace: 'ranged' },
    spec: { limits: [{ type: 'Container', default: { cpu: '60' } }] },
  },
  {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'heavy' },
    handler: 'heavy',
    overhead: { podFixed: { cpu: '200' } },
  },
  {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: { [PRODUCT]: 'Tesla-T4' } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  },
];

const template = (limits: object, spec: object = {}) => ({
  metadata: { labels: { app: 'x' } },
  spec: { containers: [{ name: 'main', resources: { limits } }], ...spec },
});
const GPU = { cpu: 1, 'nvidia.com/gpu': 1 };

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: object };
  readonly spec: object;
}

function deployment(name: string, labels: Readonly<Record<string, string>>, pods: object, more: object = {}): Manifest {
  const { namespace = 'default', ...spec } = more as { readonly namespace?: string };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name,
      namespace,
      labels: Object.fromEntries(
        Object.entries(labels).map(([key, value]) => [key === 'group' ? GROUP_LABEL : `${GROUP_LABEL}/${key}`, value]),
      ),
    },
    spec: { replicas: 1, selector: { matchLabels: { app: 'x' } }, template: pods, ...spec },
  };
}

const team = { group: 'team' };
const TRAIN: Manifest = {
  apiVersion: 'kubeflow.org/v1',
  kind: 'PyTorchJob',
  metadata: { name: 'train', namespace: 'default', labels: { [GROUP_LABEL]: 'team' } },
  spec: { pytorchReplicaSpecs: { Worker: { replicas: 2, template: template({ cpu: 1 }) } } },
};
const autoscaler = (name: string, kind: string, target: string, maxReplicas: number): Manifest => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name, namespace: 'default' },
  spec: {
    scaleTargetRef: { apiVersion: kind === 'PyTorchJob' ? 'kubeflow.org/v1' : 'apps/v1', kind, name: target },
    maxReplicas,
  },
});

/** Workloads with the expected answer of all three. */
const TABLE: readonly (readonly [string, Manifest, RegExp | null])[] = [
  ['a label of a type with room', deployment('t4', { ...team, 'gpu-type': 'T4' }, template(GPU, T4)), null],
  ['placement on a type without room', deployment('a100', team, template(GPU, A100)), /QuotaExceeded.*gpu\.A100=/],
  [
    'a label that placement contradicts',
    deployment('lie', { ...team, 'gpu-type': 'T4' }, template(GPU, A100)),
    /TypeMismatch/,
  ],
  ['no type', deployment('untyped', team, template(GPU)), /TypeRequired.*A100, T4/],
  ['a type beyond the catalog', deployment('x', { ...team, 'gpu-type': 'X100' }, template(GPU)), /TypeRequired/],
  ['the node that the pods name', deployment('named', team, template(GPU, { nodeName: 'n1' })), null],
  [
    'a family of the policy',
    deployment('npu', { ...team, 'npu-type': 'B' }, template({ cpu: 1, 'huawei.com/Ascend910': 2 })),
    /QuotaExceeded.*Ascend910\.B=/,
  ],
  [
    'surge',
    deployment('surge', team, template({ cpu: 30 }), { replicas: 3, strategy: { rollingUpdate: { maxSurge: 1 } } }),
    /QuotaExceeded.*limits\.cpu=120/,
  ],
  [
    'defaults of a LimitRange',
    deployment('ranged', team, template({}), { namespace: 'ranged', replicas: 2 }),
    /limits\.cpu=/,
  ],
  [
    'overhead of a RuntimeClass',
    deployment('heavy', team, template({ cpu: 1 }, { runtimeClassName: 'heavy' })),
    /QuotaExceeded.*limits\.cpu=/,
  ],
  [
    'a kind of the policy',
    {
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name: 'w', namespace: 'default', labels: { [GROUP_LABEL]: 'team' } },
      spec: { size: 50, podTemplate: template({ cpu: 4 }) },
    },
    /QuotaExceeded.*limits\.cpu=200/,
  ],
  [
    'a namespace that the group does not select',
    deployment('out', { group: 'closed' }, template({ cpu: 1 })),
    /NamespaceNotAllowed/,
  ],
  [
    'no group where one is required',
    deployment('bare', {}, template({ cpu: 1 }), { namespace: 'strict' }),
    /must name the group/,
  ],
  ['no group where none is required', deployment('free', {}, template({ cpu: 1 })), null],
  ['an autoscaler of a custom resource', autoscaler('wide', 'PyTorchJob', 'train', 500), /QuotaExceeded.*limits\.cpu=/],
  ['an autoscaler of a custom resource that fits', autoscaler('small', 'PyTorchJob', 'train', 3), null],
];

/** The answer of one of the three; null if it admits the object. */
type Verdict = string | null;

async function start(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  for (const object of CLUSTER) {
    const plural = object.kind === 'QuotaPolicy' ? 'quotapolicies' : `${object.kind.toLowerCase()}s`;
    on.server.seed(plural === 'runtimeclasss' ? 'runtimeclasses' : plural, object as never);
  }
  await on.join({ kindsMs: 20 });
  for (const { metadata, spec } of TREE)
    await on.client.request({
      method: 'POST',
      path: '/apis/quota.gpu-manager.io/v1/bizgroupresourcequotas',
      body: { metadata, spec },
    });
  on.server.seed('pytorchjobs.kubeflow.org', TRAIN as never);
  await eventually(() => on.used('team') === '2', 'the job to be charged');
  return on;
}

async function webhook(on: QuotaCluster, object: Manifest): Promise<Verdict> {
  const isAutoscaler = object.kind === 'HorizontalPodAutoscaler';
  const isLabelled = Object.keys(object.metadata.labels ?? {}).length > 0;
  // As in the webhook configuration.
  if (!isAutoscaler && !isLabelled && object.metadata.namespace !== 'strict') return null;
  const { response } = await on.ask(isAutoscaler ? '/autoscalers' : isLabelled ? '/workloads' : '/unlabelled', {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u',
      operation: 'CREATE',
      dryRun: true,
      resource: { group: object.apiVersion.split('/')[0], resource: `${object.kind.toLowerCase()}s` },
      namespace: object.metadata.namespace,
      name: object.metadata.name,
      object,
    },
  });
  return response.allowed ? null : (response.status?.message ?? '');
}

interface Answered {
  readonly verdicts: readonly Verdict[];
  readonly code: number | null;
}

/** The answers of a command to each manifest. */
async function commanded(t: Test, directory: string, args: readonly string[]): Promise<Answered> {
  const { out, err, code } = await new Promise<{ out: string; err: string; code: number | null }>((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, 'quota', ...args, '-o', 'json'], { cwd: directory });
    const texts = { out: '', err: '' };
    child.stdout.on('data', (chunk: Buffer) => (texts.out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (texts.err += chunk.toString()));
    child.once('error', reject);
    child.once('close', (ended) => resolve({ ...texts, code: ended }));
  });
  t.equal(err, '', args.join(' '));
  const rows = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly allowed: boolean; readonly code: string; readonly message: string });
  const verdicts = rows.map(({ allowed, code: reason, message }) => {
    if (allowed) return null;
    // The webhooks prefix messages that lack the code.
    return reason === 'Forbidden' || message.startsWith(reason) ? message : `${reason}: ${message}`;
  });
  return { verdicts, code };
}

test('explain and what-if answer as the webhooks do, with the policy', async (t) => {
  const on = await start(t);
  const directory = await scratchDirectory(t);
  const write = (name: string, objects: readonly object[]): Promise<void> =>
    writeFile(join(directory, name), objects.map((object) => `---\n${JSON.stringify(object)}\n`).join(''));
  await writeFile(join(directory, 'kubeconfig'), kubeconfig(on.server, {}));
  await write('tree.yaml', TREE);
  await write('cluster.yaml', CLUSTER);
  // Refused objects come first, because the commands admit one object after the other.
  const rows = [
    ...TABLE.filter(([, , refused]) => refused !== null),
    ...TABLE.filter(([, , refused]) => refused === null),
  ];
  await write('train.yaml', [TRAIN]);
  await write(
    'all.yaml',
    rows.map(([, object]) => object),
  );
  const expected: Verdict[] = [];
  for (const [title, object, refused] of rows) {
    const verdict = await webhook(on, object);
    expected.push(verdict);
    if (refused === null) t.equal(verdict, null, title);
    else t.match(verdict, refused, title);
  }
  const explained = await commanded(t, directory, ['explain', '-f', 'all.yaml', '--kubeconfig', 'kubeconfig']);
  t.strictSame(explained, { verdicts: expected, code: 1 });
  const files = ['-f', 'train.yaml', '-f', 'all.yaml', '--policy', 'cluster.yaml'];
  const tried = await commanded(t, directory, ['what-if', 'tree.yaml', ...files]);
  t.strictSame(tried, { verdicts: [null, ...expected], code: 1 });
});

test('explain scales a custom resource as its definition says, like the webhook', async (t) => {
  const on = await start(t);
  const directory = await scratchDirectory(t);
  await writeFile(join(directory, 'kubeconfig'), kubeconfig(on.server, {}));
  const scale = (replicas: number) => ({
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name: 'train', namespace: 'default' },
    spec: { replicas },
  });
  for (const replicas of [3, 500]) {
    const { response } = await on.ask('/scale', {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: 'u',
        operation: 'UPDATE',
        dryRun: true,
        resource: { group: 'kubeflow.org', resource: 'pytorchjobs' },
        subResource: 'scale',
        namespace: 'default',
        name: 'train',
        object: scale(replicas),
        oldObject: scale(2),
      },
    });
    const args = ['explain', 'pytorchjob/train', '--replicas', String(replicas), '--kubeconfig', 'kubeconfig'];
    const { verdicts } = await commanded(t, directory, args);
    t.equal(verdicts[0], response.allowed ? null : response.status?.message);
    t.equal(response.allowed, replicas === 3);
  }
});
