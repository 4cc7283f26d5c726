import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import { POLICIES_PATH } from '../../../src/kube/quota/names.js';
import { webhookConfiguration } from '../../../src/quota-controller/admission/quota-webhooks.js';
import { readPolicy } from '../../../src/quota-controller/policy/policy-object.js';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';
import { manifestsOf } from '../setting.js';

const PRODUCT = 'nvidia.com/gpu.product';
const A100 = 'NVIDIA-A100-SXM4-80GB';
const TYPES = [
  { name: 'A100', memory: '80Gi', nodeLabels: [{ key: PRODUCT, values: ['NVIDIA-A100*'] }] },
  { name: 'T4', nodeLabels: [{ key: PRODUCT, values: ['Tesla-T4'] }] },
];

async function start(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ kindsMs: 20 });
  return on;
}

const policy = async (on: QuotaCluster, spec: object): Promise<void> => {
  const there = on.server.read('quotapolicies', '', 'default');
  const body = { apiVersion: 'quota.gpu-manager.io/v1', kind: 'QuotaPolicy', metadata: { name: 'default' }, spec };
  const answer =
    there === null
      ? await on.client.request({ method: 'POST', path: POLICIES_PATH, body })
      : await on.client.request({
          method: 'PUT',
          path: `${POLICIES_PATH}/default`,
          body: { ...body, metadata: there.metadata },
        });
  if (!answer.ok) throw new Error(answer.message);
  const generation = (answer.body as { readonly metadata: { readonly generation?: number } }).metadata.generation ?? 0;
  await eventually(
    () =>
      (on.server.read('quotapolicies', '', 'default')?.status as { observedGeneration?: number } | undefined)
        ?.observedGeneration === generation,
    'the policy to be applied',
  );
};

/** A Deployment with one GPU. */
function gpuDeployment(name: string, type: string | null, spec: object = {}): object {
  const plain = deployment(name, 'team', 1, 1);
  const { template, ...rest } = plain.spec as { readonly template: object };
  return {
    metadata: {
      name,
      labels: { [GROUP_LABEL]: 'team', ...(type === null ? {} : { [`${GROUP_LABEL}/gpu-type`]: type }) },
    },
    spec: {
      ...rest,
      template: {
        ...template,
        spec: { containers: [{ name: 'main', resources: { limits: { cpu: 1, 'nvidia.com/gpu': 1 } } }], ...spec },
      },
    },
  };
}

const deploy = (on: QuotaCluster, name: string, type: string | null, spec: object = {}) =>
  on.client.request({
    method: 'POST',
    path: '/apis/apps/v1/namespaces/default/deployments',
    body: gpuDeployment(name, type, spec),
  });

const conditionOf = (on: QuotaCluster, type: string) =>
  (
    on.server.read('quotapolicies', '', 'default')?.status as
      | {
          readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[];
        }
      | undefined
  )?.conditions?.find((each) => each.type === type);

test('a group without A100 runs none, whatever type its workloads declare', async (t) => {
  const on = await start(t);
  await policy(on, { types: TYPES });
  await on.createGroup('team', { 'requests.nvidia.com/gpu': 8, 'requests.nvidia.com/gpu.A100': 0 });
  const onA100 = { nodeSelector: { [PRODUCT]: A100 } };
  t.match(await deploy(on, 'plain', null, onA100), { ok: false, message: /gpu\.A100=1/ }, 'charged as what it selects');
  t.match(await deploy(on, 'wrong', 'T4', onA100), { ok: false, message: /TypeMismatch/ });
  t.match(await deploy(on, 'made-up', 'X100', onA100), { ok: false, message: /TypeMismatch/ });
  t.match(await deploy(on, 'right', 'T4', { nodeSelector: { [PRODUCT]: 'Tesla-T4' } }), { ok: true });
  await eventually(() => on.used('team', 'requests.nvidia.com/gpu') === '1', 'the last one to be charged');
});

test('the policy is watched: strict types apply at once, and existing workloads stay', async (t) => {
  const on = await start(t);
  await on.createGroup('team', { 'requests.nvidia.com/gpu': 8, 'requests.nvidia.com/gpu.A100': 4 });
  t.match(await deploy(on, 'before', null, { nodeSelector: { [PRODUCT]: A100 } }), { ok: true });
  await eventually(() => on.used('team', 'requests.nvidia.com/gpu') === '1', 'it to be charged');
  t.equal(on.used('team', 'requests.nvidia.com/gpu.A100'), '0', 'nobody knows yet what it selects');
  await policy(on, { strictTypes: true, types: TYPES });
  await eventually(
    () => on.used('team', 'requests.nvidia.com/gpu.A100') === '1',
    'what exists to be charged as what it selects',
  );
  t.match(await deploy(on, 'untyped', null), { ok: false, message: /TypeRequired.*A100, T4/ });
  t.match(await on.patch('before', { metadata: { annotations: { note: 'still mine' } } }), { ok: true });
  t.match(await on.scale('before', 0), { ok: true });
  await policy(on, { types: TYPES });
  t.match(await deploy(on, 'untyped', null), { ok: true }, 'no longer strict');
  t.match(conditionOf(on, 'Accepted'), { status: 'True' });
  t.match(conditionOf(on, 'Applied'), { status: 'True' });
});

test('a group shows pods that run on another type than declared', async (t) => {
  const on = await start(t);
  for (const [name, product] of [
    ['n1', A100],
    ['n2', 'Tesla-T4'],
  ] as const)
    on.server.seed('nodes', {
      metadata: { name, labels: { [PRODUCT]: product } },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
  await policy(on, { types: TYPES });
  await on.createGroup('team', { 'requests.nvidia.com/gpu': 8, 'requests.nvidia.com/gpu.A100': 0 });
  t.match(await deploy(on, 'web', 'T4'), { ok: true }, 'it does not say where it is to run');
  await eventually(() => on.used('team', 'requests.nvidia.com/gpu.A100') === '0', 'it to be charged');
  const { uid = '' } = on.server.read('deployments', 'default', 'web')?.metadata ?? {};
  const pod = (name: string, nodeName: string): void =>
    void on.server.seed('pods', {
      metadata: {
        name,
        namespace: 'default',
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid, controller: true }],
      },
      spec: { nodeName, containers: [{ name: 'main', resources: { limits: { 'nvidia.com/gpu': '1' } } }] },
      status: { phase: 'Running' },
    });
  pod('web-2', 'n2');
  await eventually(() => on.condition('team', 'Misplaced') === 'False', 'the pod on the right node to be no finding');
  pod('web-1', 'n1');
  await eventually(() => on.condition('team', 'Misplaced') === 'True', 'the pod on the wrong node to show');
  const shown = (on.statusOf('team')['conditions'] as readonly { type: string; message: string }[]).find(
    ({ type }) => type === 'Misplaced',
  );
  t.equal(shown?.message, 'pod default/web-1 runs on gpu-type A100 (node n1), but declares T4');
  await eventually(() => on.server.all('events').some(({ reason }) => reason === 'Misplaced'), 'an event');
  on.server.remove('pods', 'default', 'web-1');
  await eventually(() => on.condition('team', 'Misplaced') === 'False', 'the finding to go with the pod');
});

test('a kind that the policy describes is charged like the known kinds', async (t) => {
  const on = await start(t);
  on.server.seed('customresourcedefinitions', {
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  });
  const kinds = [
    {
      apiGroup: 'example.com',
      kind: 'Widget',
      plural: 'widgets',
      pods: [{ replicas: 'spec.size', template: 'spec.podTemplate' }],
    },
  ];
  await policy(on, { kinds });
  await on.createGroup('team', { 'limits.cpu': 10 });
  const { template } = deployment('w', 'team', 1, 2).spec as { readonly template: object };
  on.server.seed('widgets', {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w', namespace: 'default', labels: { [GROUP_LABEL]: 'team' } },
    spec: { size: 3, other: 1, podTemplate: template },
  });
  await eventually(() => on.used('team') === '6', 'three pods to be charged');
  const { uid = '' } = on.server.read('widgets', 'default', 'w')?.metadata ?? {};
  const pod = (cores: number): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'w-1',
      namespace: 'default',
      uid: 'w-1',
      ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid, controller: true }],
    },
    spec: { containers: [{ name: 'main', resources: { limits: { cpu: cores } } }] },
  });
  on.server.seed('pods', pod(2) as never);
  const { response } = await on.ask('/resize', {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u',
      operation: 'UPDATE',
      resource: { group: '', resource: 'pods' },
      subResource: 'resize',
      namespace: 'default',
      name: 'w-1',
      object: pod(64),
      oldObject: pod(2),
    },
  });
  t.match(response, { allowed: false, status: { message: /Widget default\/w is charged to group team/ } });
  await policy(on, { kinds: [{ ...kinds[0], pods: [{ replicas: 'spec.other', template: 'spec.podTemplate' }] }] });
  await eventually(() => on.used('team') === '2', 'the other description to hold');
  await policy(on, {});
  on.server.remove('pods', 'default', 'w-1');
  await eventually(() => on.used('team') === '0', 'what nothing describes to be given back with its last pod');
});

test('the readable parts of a policy apply, and a condition names the others', async (t) => {
  const on = await start(t);
  await policy(on, {
    types: [
      ...TYPES,
      { name: 'bad name' },
      { name: 'H100', memory: 'much' },
      { name: 'L4', nodeLabels: [{ key: PRODUCT, values: ['Tesla-T4'] }] },
    ],
    families: [{ name: 'npu', resources: ['huawei.com/Ascend910'] }],
    kinds: [{ apiGroup: 'example.com', kind: 'Widget', plural: 'widgets', pods: [] }],
  });
  const { message = '', status } = conditionOf(on, 'Accepted') ?? {};
  t.equal(status, 'False');
  for (const part of ['spec.types[2]', 'spec.types[3].memory', 'gpu-type T4 and gpu-type L4', 'spec.kinds[0]: pods'])
    t.ok(message.includes(part), part);
  t.match(conditionOf(on, 'Applied'), { status: 'False', reason: 'RestartNeeded' }, 'families were read at the start');
  await on.createGroup('team', { 'requests.nvidia.com/gpu': 8 });
  t.match(await deploy(on, 'wrong', 'T4', { nodeSelector: { [PRODUCT]: A100 } }), { ok: false }, 'the rest holds');
});

test('families of the policy at the start apply', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  on.server.seed('quotapolicies', {
    metadata: { name: 'default', generation: 1 },
    spec: { families: [{ name: 'npu', resources: ['huawei.com/Ascend910'] }] },
  });
  await on.join({ kindsMs: 20 });
  await on.createGroup('team', { 'requests.huawei.com/Ascend910.B': 2 });
  const body = (name: string, count: number): object => ({
    metadata: { name, labels: { [GROUP_LABEL]: 'team', [`${GROUP_LABEL}/npu-type`]: 'B' } },
    spec: {
      replicas: 1,
      template: {
        spec: { containers: [{ name: 'main', resources: { limits: { 'huawei.com/Ascend910': count } } }] },
      },
    },
  });
  const path = '/apis/apps/v1/namespaces/default/deployments';
  t.match(await on.client.request({ method: 'POST', path, body: body('one', 2) }), { ok: true });
  t.match(await on.client.request({ method: 'POST', path, body: body('two', 1) }), {
    ok: false,
    message: /Ascend910\.B=1/,
  });
});

test('workloads without a group are refused where the policy requires one', async (t) => {
  const on = await start(t);
  await on.createGroup('team', { 'limits.cpu': 10 });
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  const ask = async (object: object): Promise<unknown> =>
    (
      await on.ask('/unlabelled', {
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        request: {
          uid: 'u',
          operation: 'CREATE',
          resource: { group: 'apps', resource: 'deployments' },
          namespace: 'default',
          object,
        },
      })
    ).response;
  const bare = { apiVersion: 'apps/v1', kind: 'ReplicaSet', ...deployment('bare', '', 1, 1) };
  t.match(await ask(bare), { allowed: false, status: { message: /set the label biz\.group\.resource\.quota/ } });
  const owner = on.server.read('deployments', 'default', 'web')?.metadata;
  const owned = {
    ...bare,
    metadata: {
      namespace: 'default',
      name: 'web-1',
      labels: { app: 'web' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: owner?.uid, controller: true }],
    },
  };
  t.match(await ask(owned), { allowed: true }, 'its owner is charged');
  const mirror = { ...bare.metadata, annotations: { 'kubernetes.io/config.mirror': 'x' } };
  t.match(await ask({ ...bare, metadata: mirror }), { allowed: false }, 'only a pod can be a static pod');
  const config = (requireLabel: object | null) =>
    webhookConfiguration({
      name: 'q',
      target: { url: 'https://127.0.0.1:1' },
      authority: 'PEM',
      kinds: [],
      unlabelled: 'Ignore',
      requireLabel,
      ownNamespace: 'quota',
    }).webhooks as readonly { readonly name: string; readonly namespaceSelector?: unknown }[];
  t.notOk(config(null).some(({ name }) => name.startsWith('unlabelled.')));
  t.same(
    config({ matchLabels: { team: 'yes' } }).find(({ name }) => name.startsWith('unlabelled.'))?.namespaceSelector,
    {
      matchLabels: { team: 'yes' },
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system', 'quota'] }],
    },
  );
});

test('a group is refused a key that nothing charges, unless it or its parent already has the key', async (t) => {
  const on = await start(t);
  t.match(await on.createGroup('team', { 'requests.nvidia.com/gpus': 4 }), {
    ok: false,
    message: /nearest known name is requests\.nvidia\.com\/gpu$/,
  });
  t.match(await on.createGroup('team', { 'count/foo.bar': 4 }), { ok: false, message: /UnknownKey/ });
  await on.unguarded(() => on.createGroup('old', { 'count/foo.bar': 4, 'limits.cpu': 4 }));
  await eventually(() => on.condition('old', 'Ready') === 'True', 'a group of before to be there');
  t.match(await on.updateGroup('old', { 'count/foo.bar': 4, 'limits.cpu': 5 }), { ok: true });
  t.match(await on.createGroup('child', { 'count/foo.bar': 1, 'limits.cpu': 1 }, 'old'), { ok: true });
});

test('storage of a claim is charged', async (t) => {
  const on = await start(t);
  t.match(await on.createGroup('team', { 'requests.storage': '10Gi', services: 1 }), { ok: true });
  on.server.seed('persistentvolumeclaims', {
    metadata: { name: 'data', namespace: 'default', labels: { [GROUP_LABEL]: 'team' } },
    spec: { resources: { requests: { storage: '4Gi' } } },
  });
  await eventually(() => on.used('team', 'requests.storage') === '4Gi', 'the claim to be charged');
});

test('only the policy named default applies', (t) => {
  t.equal(readPolicy({ metadata: { name: 'other', uid: 'u' }, spec: { strictTypes: true } }), null);
  const [example] = manifestsOf('etc/quota/policy.yaml');
  t.match(readPolicy(example), { problems: [], policy: { strictTypes: true, kinds: [{ kind: 'Widget' }] } });
  t.end();
});
