import fc from 'fast-check';
import { test } from 'tap';
import { Quota, evaluate, formatAmount, type Decision } from '../../../src/quota/index.js';
import { container, deployment, template, type Resources } from './manifests.js';

/** Amounts of one pod as quantities. */
function asked(pod: object, labels: object = {}): unknown {
  const evaluation = evaluate(deployment(1, pod, labels));
  if (!evaluation.ok || evaluation.demand === null) return evaluation;
  const [podSet] = evaluation.demand.podSets;
  const shown = (amounts: Readonly<Record<string, unknown>> = {}) =>
    Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, formatAmount(name, amount as bigint)]));
  return { requests: shown(podSet?.requests), limits: shown(podSet?.limits), unspecified: podSet?.unspecified };
}

const both = (amounts: Resources, unspecified: readonly string[] = []) => ({
  requests: amounts,
  limits: amounts,
  unspecified,
});

test('containers that run together are added, init containers are not', (t) => {
  t.same(
    asked({
      spec: {
        initContainers: [container({ cpu: 3, memory: '1Gi' }), container({ cpu: 2, memory: '4Gi' })],
        containers: [container({ cpu: 1, memory: '1Gi' }), container({ cpu: 1, memory: '1Gi' })],
      },
    }),
    both({ cpu: '3', memory: '4Gi' }),
  );
  t.end();
});

test('a sidecar runs beside later init containers and beside the containers', (t) => {
  const sidecar = container({ cpu: 1, memory: '1Gi' }, { restartPolicy: 'Always' });
  t.same(
    asked({
      spec: {
        initContainers: [container({ cpu: 4, memory: '1Gi' }), sidecar, container({ cpu: 4, memory: '1Gi' })],
        containers: [container({ cpu: 2, memory: '1Gi' })],
      },
    }),
    both({ cpu: '5', memory: '2Gi' }),
  );
  t.same(
    asked({ spec: { initContainers: [sidecar], containers: [container({ cpu: 2, memory: '1Gi' })] } }),
    both({ cpu: '3', memory: '2Gi' }),
  );
  t.end();
});

test('overhead and pod-level resources count', (t) => {
  t.same(
    asked(template({ cpu: 1, memory: '1Gi' }, { overhead: { cpu: '250m' } })),
    both({ cpu: '1250m', memory: '1Gi' }),
  );
  t.same(
    asked({
      spec: {
        resources: { requests: { cpu: 2 }, limits: { cpu: 2 } },
        containers: [{ name: 'a', resources: { limits: { memory: '1Gi' } } }],
      },
    }),
    both({ memory: '1Gi', cpu: '2' }),
    'they replace amounts that a container does not state',
  );
  t.end();
});

test('a limit without a request is a request, and a missing amount is noted', (t) => {
  t.same(
    asked({ spec: { containers: [{ name: 'a', resources: { limits: { cpu: 1 } } }] } }),
    both({ cpu: '1' }, ['limits.memory', 'requests.memory']),
  );
  t.same(
    asked(
      { spec: { containers: [{ name: 'a', resources: { requests: { cpu: 1, 'nvidia.com/gpu': 1 } } }] } },
      { 'biz.group.resource.quota/gpu-type': 'T4' },
    ),
    {
      requests: { cpu: '1', 'nvidia.com/gpu': '1', 'gpu.cards': '1', 'gpu.memory': '16Gi' },
      limits: { 'nvidia.com/gpu': '1', 'gpu.cards': '1', 'gpu.memory': '16Gi' },
      unspecified: ['limits.cpu', 'limits.memory', 'requests.memory'],
    },
  );
  t.end();
});

const cards = (resources: Resources, type = 'T4'): unknown => {
  const evaluation = evaluate(deployment(1, template(resources), { 'biz.group.resource.quota/gpu-type': type }));
  const limits = evaluation.ok ? (evaluation.demand?.podSets[0]?.limits ?? {}) : {};
  return ['gpu.cards', 'gpu.memory'].map((name) =>
    limits[name] === undefined ? null : formatAmount(name, limits[name] as bigint),
  );
};

test('GPUs and their memory count equally under every resource name', (t) => {
  t.same(cards({ 'nvidia.com/gpu': 2 }), ['2', '32Gi']);
  t.same(cards({ 'nvidia.com/vgpu-number': 2, 'nvidia.com/vgpu-cores': 30, 'nvidia.com/vgpu-memory': 1024 }), [
    '0.6',
    '2Gi',
  ]);
  t.same(cards({ 'nvidia.com/vgpu-number': 1 }), ['1', '16Gi'], 'a whole GPU without a share');
  t.same(cards({ 'nvidia.com/gpu': 2, 'nvidia.com/gpucores': 20, 'nvidia.com/gpumem': 2048 }), ['0.4', '4Gi']);
  t.same(cards({ 'nvidia.com/gpu': 2, 'nvidia.com/gpucores': 50, 'nvidia.com/gpumem-percentage': 25 }), ['1', '8Gi']);
  t.same(cards({ 'tencent.com/vcuda-core': 30, 'tencent.com/vcuda-memory': 8 }), ['0.3', '2Gi'], 'already a sum');
  t.same(
    cards({ 'tencent.com/vcuda-core': 40, 'tencent.com/vcuda-memory': 16 }),
    cards({ 'nvidia.com/gpu': 2, 'nvidia.com/gpucores': 20, 'nvidia.com/gpumem': 2048 }),
    'two parts become their sum when they are converted',
  );
  t.same(cards({ 'tencent.com/gpu': 2 }), cards({ 'nvidia.com/gpu': 2 }), 'whole GPUs through claims of the scheduler');
  t.same(cards({ 'nvidia.com/mig-1g.5gb': 2 }), ['0.286', '10Gi'], 'sevenths, rounded up');
  t.same(cards({ 'nvidia.com/mig-3g.20gb': 1 }), ['0.429', '20Gi']);
  t.same(cards({ cpu: 1 }), [null, null]);
  t.same(cards({ 'nvidia.com/gpu': 1 }, 'unheard-of'), ['1', null]);
  t.end();
});

function admit(quota: Quota, name: string, count: number, resources: Resources, type = 'T4'): Decision {
  const manifest = { ...deployment(count, template(resources), { 'biz.group.resource.quota/gpu-type': type }) };
  const evaluation = evaluate({ ...manifest, metadata: { ...manifest.metadata, name } });
  if (!evaluation.ok || evaluation.demand === null) throw new Error('no demand');
  return quota.admit(evaluation.demand);
}

const withGroup = (hard: Record<string, string | number>): Quota => {
  const quota = new Quota();
  quota.createGroup({ name: 'g', hard });
  return quota;
};

const used = (quota: Quota, key: string) => formatAmount(key, quota.status('g')?.used.get(key) ?? -1n);

test('V01, V02, V03: an amount per GPU is multiplied by the number of GPUs, and a GPU without an amount counts as a whole GPU', (t) => {
  const quota = withGroup({ 'gpu.cards': '1.00' });
  const share = { 'nvidia.com/vgpu-number': 2, 'nvidia.com/vgpu-cores': 30 };
  t.equal(admit(quota, 'a', 1, share).code, 'OK');
  t.equal(used(quota, 'gpu.cards'), '0.6');
  t.equal(admit(quota, 'b', 1, share).code, 'QuotaExceeded');
  t.equal(admit(quota, 'c', 1, { 'nvidia.com/vgpu-number': 1 }).code, 'QuotaExceeded');
  t.end();
});

test('the key gpus counts GPUs of every resource, whole and in parts, and by their type', (t) => {
  const quota = withGroup({ gpus: 20, 'gpus.A100': 2, 'gpu.cards': 20 });
  t.equal(admit(quota, 'a', 3, { 'tencent.com/vcuda-core': 30, 'tencent.com/vcuda-memory': 4 }, 'A100').code, 'OK');
  t.equal(admit(quota, 'b', 1, { 'nvidia.com/gpu': 1 }, 'A100').code, 'OK');
  t.same(
    ['gpus', 'gpus.A100', 'gpu.cards'].map((key) => used(quota, key)),
    ['1.9', '1.9', '1.9'],
  );
  const refused = admit(quota, 'c', 3, { 'tencent.com/vcuda-core': 100, 'tencent.com/vcuda-memory': 4 }, 'A100');
  t.match(
    refused.message,
    'requested: gpus.A100=3, used: gpus.A100=1.9, limited: gpus.A100=2, short by: gpus.A100=2.9',
  );
  t.end();
});

test('a workload with GPUs that no key of its group charges is admitted with a warning, and named for the group', (t) => {
  const quota = withGroup({ 'requests.nvidia.com/gpu': 20, 'requests.nvidia.com/gpu.A100': 20 });
  const shares = { 'tencent.com/vcuda-core': 100, 'tencent.com/vcuda-memory': 4 };
  const decision = admit(quota, 'a', 3, shares, 'A100');
  t.same(
    [decision.code, decision.warnings.map(({ code, key }) => [code, key])],
    ['OK', [['NotCharged', 'tencent.com/vcuda-core']]],
  );
  t.match(decision.warnings[0]?.reason, /no key of group g charges tencent\.com\/vcuda-core.*the key gpus counts/);
  t.same(admit(quota, 'b', 1, { 'nvidia.com/gpu': 1 }, 'A100').warnings, [], 'charged');
  t.same(admit(quota, 'c', 1, { cpu: 1 }).warnings, [], 'without a GPU');
  t.same(quota.unchargedGpus('g'), [{ workload: 'Deployment.apps/team/a', resources: ['tencent.com/vcuda-core'] }]);
  quota.updateGroup({ name: 'g', hard: { gpus: 20 } });
  t.same([quota.unchargedGpus('g'), used(quota, 'gpus')], [[], '4'], 'a key that counts all of them');
  t.same(quota.unchargedGpus('h'), [], 'no such group');
  t.end();
});

test('memory of a GPU is not named beside its cores, and one key of a vendor is enough', (t) => {
  const shares = { 'tencent.com/vcuda-core': 100, 'tencent.com/vcuda-memory': 4 };
  for (const key of ['requests.tencent.com/vcuda-core', 'limits.tencent.com/vcuda-memory', 'gpu.memory', 'cash/gpus'])
    t.same(admit(withGroup({ [key]: '100Gi' }), 'a', 1, shares).warnings, [], key);
  const mixed = { ...shares, 'nvidia.com/mig-1g.10gb': 1 };
  t.same(
    admit(withGroup({ 'requests.tencent.com/vcuda-core': 500 }), 'a', 1, mixed).warnings.map(({ key }) => key),
    ['nvidia.com/mig-1g.10gb'],
  );
  t.end();
});

test('A30: an amount per GPU is charged twice for two GPUs', (t) => {
  const quota = withGroup({ 'requests.nvidia.com/gpucores': 100, 'requests.nvidia.com/gpumem': 10_000 });
  t.equal(
    admit(quota, 'a', 1, { 'nvidia.com/gpu': 2, 'nvidia.com/gpucores': 20, 'nvidia.com/gpumem': 2048 }).code,
    'OK',
  );
  t.same([used(quota, 'requests.nvidia.com/gpucores'), used(quota, 'requests.nvidia.com/gpumem')], ['40', '4096']);
  t.end();
});

test('a workload must state the memory of a GPU outside the catalog where memory is limited', (t) => {
  t.equal(admit(withGroup({ 'gpu.memory': '80Gi' }), 'a', 1, { 'nvidia.com/gpu': 1 }, 'X1').code, 'MustSpecify');
  t.equal(admit(withGroup({ 'gpu.cards': 2 }), 'a', 1, { 'nvidia.com/gpu': 1 }, 'X1').code, 'OK');
  t.end();
});

test('amounts beyond 64 bits are refused, not truncated', (t) => {
  const quota = withGroup({ 'gpu.cards': 1 });
  t.equal(admit(quota, 'a', 1, { 'nvidia.com/gpu': '9000P' }).code, 'QuantityTooLarge');
  t.end();
});

test('every manifest gives a decision', (t) => {
  const json = fc.jsonValue({ maxDepth: 4 });
  const kinds = fc.constantFrom(
    ['apps/v1', 'Deployment'],
    ['v1', 'Pod'],
    ['batch/v1', 'Job'],
    ['ray.io/v1', 'RayJob'],
    ['kubeflow.org/v1', 'TFJob'],
    ['jobset.x-k8s.io/v1', 'JobSet'],
    ['leaderworkerset.x-k8s.io/v1', 'LeaderWorkerSet'],
    ['argoproj.io/v1', 'Rollout'],
  );
  const field = fc.constantFrom(
    'template',
    'replicas',
    'tfReplicaSpecs',
    'rayClusterSpec',
    'replicatedJobs',
    'leaderWorkerTemplate',
    'containers',
    'workloadRef',
    'runPolicy',
  );
  fc.assert(
    fc.property(kinds, fc.dictionary(field, json), json, json, ([apiVersion, kind], spec, metadata, status) => {
      const evaluation = evaluate({ apiVersion, kind, metadata, spec, status });
      return evaluation.ok || evaluation.reason.length < 2000;
    }),
    { numRuns: 2000 },
  );
  t.end();
});

test('a pod that Kueue holds back counts no pods, one with another scheduling gate counts itself', (t) => {
  const countOf = (gate: string): number | undefined => {
    const spec = { schedulingGates: [{ name: gate }], containers: [container({ cpu: 1 })] };
    const evaluation = evaluate({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec });
    return evaluation.ok ? evaluation.demand?.podSets[0]?.count : undefined;
  };
  t.equal(countOf('kueue.x-k8s.io/admission'), 0);
  t.equal(countOf('example.com/later'), 1);
  t.end();
});
