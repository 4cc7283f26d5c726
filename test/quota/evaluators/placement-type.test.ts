import { test } from 'tap';
import { evaluate, type EvaluationOptions } from '../../../src/quota/index.js';
import { container, deployment, object } from './manifests.js';

const PRODUCT = 'nvidia.com/gpu.product';
const HOSTNAME = 'kubernetes.io/hostname';
const placement = [
  {
    family: 'gpu',
    nodeLabel: PRODUCT,
    annotation: 'nvidia.com/include-gpu-type',
    products: { T4: ['Tesla-T4'], A100: ['NVIDIA-A100*'] },
  },
];
const NODES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  n1: { [PRODUCT]: 'NVIDIA-A100-SXM4-80GB' },
  n2: { [PRODUCT]: 'Tesla-T4' },
  n3: {},
};
const options: EvaluationOptions = { placement, nodeLabels: (node) => NODES[node] };
const GPU = { 'nvidia.com/gpu': 1 };

const pod = (spec: object, resources: Readonly<Record<string, number>> = GPU) => ({
  spec: { containers: [container(resources)], ...spec },
});
const affinity = (...terms: readonly object[]) => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  },
});
const term = (operator: string, ...values: readonly string[]) => ({
  matchExpressions: [{ key: PRODUCT, operator, values }],
});

/** The charged type of GPUs, or the code of a refusal. */
function typeOf(template: object, label: string | null, more: EvaluationOptions = {}): unknown {
  const labels = label === null ? {} : { 'biz.group.resource.quota/gpu-type': label };
  const evaluation = evaluate(deployment(1, template, labels), { ...options, ...more });
  return evaluation.ok ? evaluation.demand?.types?.['gpu'] : evaluation.code;
}

test('a workload without a type label has the type of its placement', (t) => {
  const a100 = 'NVIDIA-A100-SXM4-80GB';
  t.equal(typeOf(pod({ nodeSelector: { [PRODUCT]: a100 } }), null), 'A100');
  t.equal(typeOf(pod(affinity(term('In', a100, 'NVIDIA-A100-PCIE-40GB'))), null), 'A100');
  t.equal(typeOf(pod(affinity(term('NotIn', 'Tesla-T4'))), null), 'A100', 'the only remaining type');
  t.equal(typeOf(pod({ nodeName: 'n1' }), null), 'A100');
  t.equal(typeOf(pod({ nodeSelector: { [HOSTNAME]: 'n1' } }), null), 'A100');
  t.equal(
    typeOf(pod(affinity({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] })), null),
    'A100',
  );
  t.equal(typeOf(pod({}), null), undefined, 'any node is allowed');
  t.equal(typeOf(pod(affinity(term('In', a100), term('In', 'Tesla-T4'))), null), undefined, 'two types are allowed');
  t.equal(typeOf(pod(affinity(term('Exists'))), null), undefined);
  t.equal(typeOf(pod({ nodeName: 'n3' }), null), undefined, 'a node without the label');
  t.equal(typeOf(pod({ nodeName: 'n9' }), null), undefined, 'an unknown node');
  t.equal(typeOf(pod({ nodeSelector: { [PRODUCT]: a100 } }, { cpu: 1 }), null), undefined, 'no GPU, no type');
  t.end();
});

test('a label that contradicts the placement is refused for every form of placement', (t) => {
  for (const spec of [
    { nodeSelector: { [PRODUCT]: 'NVIDIA-A100-PCIE-40GB' } },
    affinity(term('In', 'NVIDIA-A100-SXM4-80GB')),
    affinity(term('NotIn', 'Tesla-T4')),
    affinity(term('DoesNotExist')),
    { nodeName: 'n1' },
    { nodeSelector: { [HOSTNAME]: 'n1' } },
  ])
    t.equal(typeOf(pod(spec), 'T4'), 'TypeMismatch', JSON.stringify(spec));
  t.equal(typeOf(pod({ nodeName: 'n1' }), 'A100'), 'A100');
  t.match(evaluate(deployment(1, pod({ nodeName: 'n1' }), { 'biz.group.resource.quota/gpu-type': 'T4' }), options), {
    reason: /^the workload has gpu-type T4, but spec\.template requests node n1 of nvidia\.com\/gpu\.product/,
  });
  t.end();
});

test('all pods of a workload have the same type', (t) => {
  const selecting = (product: string) => pod({ nodeSelector: { [PRODUCT]: product } });
  const job = (master: string, worker: string) =>
    object('kubeflow.org/v1', 'PyTorchJob', {
      pytorchReplicaSpecs: { Master: { template: selecting(master) }, Worker: { template: selecting(worker) } },
    });
  t.match(evaluate(job('Tesla-T4', 'NVIDIA-A100-PCIE-40GB'), options), { ok: false, code: 'TypeMismatch' });
  t.match(evaluate(job('Tesla-T4', 'Tesla-T4'), options), { ok: true, demand: { types: { gpu: 'T4' } } });
  t.end();
});

test('strict types: a workload with GPUs must have one type and allow no other', (t) => {
  const strict = { strictTypes: true };
  t.equal(typeOf(pod({}), null, strict), 'TypeRequired');
  t.equal(typeOf(pod({}), 'V100', strict), 'TypeRequired', 'a type that the catalog lacks');
  t.equal(typeOf(pod({}), 'A100', strict), 'A100');
  t.equal(typeOf(pod({}, { cpu: 1 }), null, strict), undefined, 'no GPU');
  t.equal(typeOf(pod({}, { 'nvidia.com/gpu': 0 }), null, strict), undefined, 'no GPU either');
  t.equal(typeOf(pod({ nodeSelector: { [PRODUCT]: 'Tesla-T4' } }), null, strict), 'T4', 'the placement has the type');
  t.equal(typeOf(pod({ nodeSelector: { [PRODUCT]: 'Tesla-V100' } }), null, strict), 'TypeRequired');
  const either = pod(affinity(term('In', 'NVIDIA-A100-SXM4-80GB', 'Tesla-T4')));
  t.equal(typeOf(either, 'T4'), 'T4');
  t.equal(typeOf(either, 'T4', strict), 'TypeMismatch', 'an A100 would be charged as a T4');
  t.end();
});

test('an existing object is charged for the type of its node, and never refused because of types', (t) => {
  const observing = { observes: true, strictTypes: true };
  t.equal(typeOf(pod({ nodeSelector: { [PRODUCT]: 'NVIDIA-A100-PCIE-40GB' } }), 'T4', observing), 'A100');
  t.equal(typeOf(pod({}), 'T4', observing), 'T4');
  t.equal(typeOf(pod({}), null, observing), undefined);
  t.end();
});

test('the node of a pod that the scheduler has bound is not a request', (t) => {
  const bound = object(
    'v1',
    'Pod',
    { ...pod({}).spec, nodeName: 'n1' },
    {
      labels: { 'biz.group.resource.quota/gpu-type': 'T4' },
      status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
    },
  );
  t.match(evaluate(bound, options), { ok: true, demand: { types: { gpu: 'T4' } } });
  t.match(evaluate({ ...bound, status: {} }, options), { ok: false, code: 'TypeMismatch' });
  t.end();
});
