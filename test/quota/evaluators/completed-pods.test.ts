import { test } from 'tap';
import { evaluate, Quota, type EvaluationOptions } from '../../../src/quota/index.js';
import { container, deployment, LABEL, object, template } from './manifests.js';

/** Amounts of one pod, or of the object itself: cores in thousandths, memory in bytes. */
function asks(manifest: unknown, options: EvaluationOptions = {}): unknown {
  const evaluation = evaluate(manifest, options);
  if (!evaluation.ok) return evaluation.code;
  const [first] = evaluation.demand?.podSets ?? [];
  return Object.fromEntries(
    Object.entries(first?.requests ?? {}).map(([resource, amount]) => [resource, String(amount)]),
  );
}

test('the defaults of a namespace and the overhead of a RuntimeClass count as the API server adds them', (t) => {
  const defaultsOf = (namespace: string) =>
    namespace === 'team' ? { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } } : null;
  const overheadOf = (name: string): unknown => (name === 'kata' ? { cpu: '250m', memory: '64Mi' } : undefined);
  const options = { defaultsOf, overheadOf };
  const plain = { spec: { containers: [{ name: 'main' }] } };
  t.same(asks(deployment(1, plain), options), { cpu: '500', memory: String(2 ** 30) });
  const limited = { spec: { containers: [{ name: 'main', resources: { limits: { cpu: '1' } } }] } };
  t.match(asks(deployment(1, limited), options), { cpu: '1000' }, 'its own limit is its request');
  const kata = { spec: { runtimeClassName: 'kata', containers: [container({ cpu: 1, memory: '1Gi' })] } };
  t.same(asks(deployment(1, kata), options), { cpu: '1250', memory: String(2 ** 30 + 64 * 2 ** 20) });
  const filled = { spec: { ...kata.spec, overhead: { cpu: '1' } } };
  t.match(asks(deployment(1, filled), options), { cpu: '2000' }, 'a pod has them already');
  t.end();
});

test('resources of the whole pod replace those of containers that state none', (t) => {
  const whole = { spec: { resources: { limits: { cpu: '4' } }, containers: [{ name: 'a' }, { name: 'b' }] } };
  const quota = new Quota();
  quota.createGroup({ name: 'g', hard: { 'limits.cpu': 8, 'requests.cpu': 8 } });
  const evaluation = evaluate(deployment(2, whole));
  if (!evaluation.ok || evaluation.demand === null) throw new Error('no demand');
  t.match(quota.admit(evaluation.demand), { code: 'OK' });
  t.equal(String(quota.status('g')?.used.get('requests.cpu')), '8000');
  t.end();
});

test('a DaemonSet is charged one pod for each eligible node', (t) => {
  const daemons = object('apps/v1', 'DaemonSet', { template: template({ cpu: 1 }) });
  const count = (options: EvaluationOptions): unknown => {
    const evaluation = evaluate(daemons, options);
    return evaluation.ok ? evaluation.demand?.podSets[0]?.count : evaluation.code;
  };
  t.equal(count({ matchingNodes: () => 7 }), 7);
  t.equal(count({ matchingNodes: () => 0 }), 0);
  t.equal(count({}), 1, 'unknown nodes');
  t.end();
});

const claims: NonNullable<EvaluationOptions['lookup']> = (_, kind, name) =>
  kind === 'ResourceClaimTemplate' && name === 'share'
    ? {
        spec: {
          spec: {
            devices: {
              requests: [
                {
                  name: 'gpu',
                  exactly: {
                    deviceClassName: 'vgpu.tencent.com',
                    count: 2,
                    capacity: { requests: { cores: '30', memory: '4Gi' } },
                  },
                },
              ],
            },
          },
        },
      }
    : undefined;

test('claims charge the keys of the device plugin', (t) => {
  const pod = (name: string) => ({
    spec: { containers: [container({ cpu: 1 })], resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: name }] },
  });
  t.match(asks(deployment(1, pod('share')), { lookup: claims }), {
    cpu: '1000',
    'tencent.com/vcuda-core': '60',
    'tencent.com/vcuda-memory': '32',
    'gpu.cards': '600',
    'vgpu.tencent.com.deviceclass.resource.k8s.io/devices': '2',
  });
  t.equal(asks(deployment(1, pod('unknown')), { lookup: claims }), 'InvalidManifest');
  const claim = (exactly: object) =>
    object('resource.k8s.io/v1', 'ResourceClaim', { devices: { requests: [{ name: 'gpu', exactly }] } });
  t.match(asks(claim({ deviceClassName: 'gpu.tencent.com' })), {
    resourceclaims: '1',
    'tencent.com/vcuda-core': '100',
    'gpu.cards': '1000',
  });
  t.match(asks(claim({ deviceClassName: 'vgpu.tencent.com', capacity: { requests: { cores: 30, memory: '4Gi' } } })), {
    'tencent.com/vcuda-memory': '16',
    'gpu.cards': '300',
    'gpu.memory': String(4 * 2 ** 30),
  });
  t.match(asks(claim({ deviceClassName: 'gpu.nvidia.com', count: 3 })), { 'nvidia.com/gpu': '3' });
  t.equal(asks(claim({ deviceClassName: 'gpu.nvidia.com', allocationMode: 'All' })), 'InvalidManifest');
  t.end();
});

test('a ResourceClaim has the type of its DeviceClass', (t) => {
  const rules = [{ family: 'gpu', nodeLabel: '', products: {}, deviceClasses: { A100: ['a100.example.com'], T4: [] } }];
  const claim = (deviceClassName: string, type?: string) => ({
    ...object('resource.k8s.io/v1', 'ResourceClaim', {
      devices: { requests: [{ name: 'gpu', exactly: { deviceClassName, capacity: { requests: { cores: 50 } } } }] },
    }),
    metadata: {
      name: 'shared',
      labels: { [LABEL]: 'team', ...(type === undefined ? {} : { [`${LABEL}/gpu-type`]: type }) },
    },
  });
  const read = (manifest: object): unknown => {
    const evaluation = evaluate(manifest, { placement: rules, strictTypes: true });
    return evaluation.ok ? evaluation.demand?.types : evaluation.code;
  };
  t.same(read(claim('a100.example.com')), { gpu: 'A100' });
  t.equal(read(claim('a100.example.com', 'T4')), 'TypeMismatch');
  t.equal(read(claim('other.example.com')), 'TypeRequired');
  t.same(read(claim('other.example.com', 'T4')), { gpu: 'T4' });
  t.end();
});

test("the type of a claim's DeviceClass is compared with the label", (t) => {
  const placement = [
    {
      family: 'gpu',
      nodeLabel: '',
      products: {},
      deviceClasses: { A100: ['vgpu.tencent.com'], T4: ['t4.example.com'] },
    },
  ];
  const pod = {
    spec: {
      containers: [container({ cpu: 1 })],
      resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'share' }],
    },
  };
  const of = (labels: object) => evaluate(deployment(1, pod, labels), { placement, lookup: claims });
  t.match(of({}), { ok: true, demand: { types: { gpu: 'A100' } } });
  t.match(of({ [`${LABEL}/gpu-type`]: 'T4' }), { ok: false, code: 'TypeMismatch' });
  t.end();
});

test('storage and services are charged as a ResourceQuota charges them, not as pods', (t) => {
  const quota = new Quota();
  const gold = 'gold.storageclass.storage.k8s.io';
  const hard = {
    'requests.storage': '100Gi',
    persistentvolumeclaims: 5,
    [`${gold}/requests.storage`]: '50Gi',
    [`${gold}/persistentvolumeclaims`]: 1,
    services: 2,
    'services.loadbalancers': 1,
    'services.nodeports': 4,
    'count/services': 2,
    pods: 1,
  };
  t.match(quota.createGroup({ name: 'g', hard }), { code: 'OK' });
  const admit = (manifest: { readonly metadata: object }, name: string): string => {
    const evaluation = evaluate({ ...manifest, metadata: { ...manifest.metadata, name, uid: name } });
    if (!evaluation.ok || evaluation.demand === null) return 'no demand';
    return quota.admit(evaluation.demand).code;
  };
  const volume = (size: string, storageClassName = 'gold') =>
    object('v1', 'PersistentVolumeClaim', { storageClassName, resources: { requests: { storage: size } } });
  t.equal(admit(volume('60Gi'), 'a'), 'QuotaExceeded', 'limit of the class');
  t.equal(admit(volume('40Gi'), 'b'), 'OK');
  t.equal(admit(volume('1Gi'), 'c'), 'QuotaExceeded', 'one claim of the class');
  t.equal(admit(volume('70Gi', 'slow'), 'd'), 'QuotaExceeded', 'in sum');
  const balanced = object('v1', 'Service', { type: 'LoadBalancer', ports: [{ port: 80 }, { port: 443 }] });
  t.equal(admit(balanced, 's1'), 'OK');
  t.equal(admit(balanced, 's2'), 'QuotaExceeded');
  t.equal(admit(object('v1', 'Service', {}), 's3'), 'OK');
  const used = quota.status('g')?.used;
  t.equal(String(used?.get('requests.storage')), String(40 * 2 ** 30));
  t.same([used?.get('services.nodeports'), used?.get('pods'), used?.get('count/services')].map(String), [
    '2',
    '0',
    '2',
  ]);
  t.end();
});

test('a Spark application is charged for its driver and its maximum of executors', (t) => {
  const spark = (spec: object, status: object = {}) =>
    evaluate(object('sparkoperator.k8s.io/v1beta2', 'SparkApplication', spec, { status }));
  t.match(
    spark({
      type: 'Scala',
      driver: { cores: 2, memory: '1g' },
      executor: {
        instances: 3,
        cores: 1,
        memory: '2048m',
        memoryOverhead: '1g',
        gpu: { name: 'nvidia.com/gpu', quantity: 1 },
      },
      dynamicAllocation: { enabled: true, maxExecutors: 5 },
    }),
    {
      demand: {
        podSets: [
          { name: 'driver', count: 1, requests: { cpu: 2000n, memory: BigInt((1024 + 384) * 2 ** 20) } },
          { name: 'executor', count: 5, requests: { memory: BigInt(3 * 2 ** 30), 'nvidia.com/gpu': 1n } },
        ],
      },
    },
  );
  const ends = (state: string, type?: string): unknown =>
    spark({ restartPolicy: { type } }, { applicationState: { state } });
  for (const state of ['COMPLETED', 'FAILED', 'SUCCEEDING', 'FAILING']) t.match(ends(state), { isTerminal: true });
  t.match(ends('SUCCEEDING', 'OnFailure'), { isTerminal: true });
  t.match(ends('SUCCEEDING', 'Always'), { isTerminal: false }, 'it runs again');
  t.match(ends('FAILING', 'OnFailure'), { isTerminal: false }, 'it may run again');
  t.match(spark({ driver: { memory: 'much' } }), { ok: false, code: 'InvalidManifest' });
  t.end();
});
