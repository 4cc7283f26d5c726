import { test } from 'tap';
import { convertPod } from '../../src/claim-webhook/pod-conversion.js';
import { applyPatch, container, pod } from './pods.js';

/** The claims and containers of a converted pod. */
function converted(object: ReturnType<typeof pod>) {
  const conversion = convertPod(object);
  if (conversion.kind !== 'converted') throw new Error(JSON.stringify(conversion));
  return { ...conversion, spec: applyPatch(object, conversion.patch).spec };
}

test('a container gets a claim for its amounts and keeps its other resources', (t) => {
  const { spec, templates } = converted(pod([container('main', 30, 16, { cpu: '2' }), { name: 'side' }]));
  t.same(spec.containers, [
    { name: 'main', resources: { limits: { cpu: '2' }, requests: { cpu: '2' }, claims: [{ name: 'vcuda-0' }] } },
    { name: 'side' },
  ]);
  t.same(spec.resourceClaims, [{ name: 'vcuda-0', resourceClaimTemplateName: templates[0]?.name }]);
  t.match(templates[0]?.name, /^vcuda-30-16-[0-9a-f]{8}$/);
  t.match(templates[0]?.spec, {
    devices: {
      requests: [
        {
          name: 'gpu',
          exactly: {
            deviceClassName: 'vgpu.tencent.com',
            count: 1,
            capacity: { requests: { cores: '30', memory: '4096Mi' } },
          },
        },
      ],
    },
  });
  t.end();
});

test('containers with equal amounts have a claim each, from one template', (t) => {
  const { spec, templates } = converted(pod([container('a', 30, 16), container('b', 30, 16)]));
  t.equal(templates.length, 1);
  t.same(
    spec.resourceClaims?.map(({ name }) => name),
    ['vcuda-0', 'vcuda-1'],
  );
  t.same(
    spec.containers.map(({ resources }) => resources?.claims),
    [[{ name: 'vcuda-0' }], [{ name: 'vcuda-1' }]],
  );
  t.end();
});

test('an init container that ends first uses the claim of an equal container; a sidecar has its own', (t) => {
  const { spec } = converted(
    pod(
      [container('main', 30, 16)],
      [
        container('first', 30, 16),
        { ...container('beside', 30, 16), restartPolicy: 'Always' },
        container('other', 20, 8),
        container('again', 20, 8),
      ],
    ),
  );
  const claims = (containers: typeof spec.containers) =>
    containers.map(({ resources }) => resources?.claims?.[0]?.name);
  const [main] = claims(spec.containers);
  const [first, beside, other, again] = claims(spec.initContainers ?? []);
  t.equal(first, main);
  t.equal(again, other);
  t.equal(new Set([main, beside, other]).size, 3);
  t.equal(spec.resourceClaims?.length, 3);
  t.end();
});

test('a converted pod does not change again, and a container that is added later gets a free name', (t) => {
  const once = applyPatch(pod([container('main', 30, 16)]), converted(pod([container('main', 30, 16)])).patch);
  t.same(convertPod(once), { kind: 'unchanged', warning: null });
  once.spec.containers.push(container('injected', 10, 4));
  const { spec } = converted(once);
  t.same(
    spec.resourceClaims?.map(({ name }) => name),
    ['vcuda-0', 'vcuda-1'],
  );
  t.same(spec.containers[0]?.resources?.claims, [{ name: 'vcuda-0' }]);
  t.end();
});

test('claims of the pod itself stay', (t) => {
  const own = pod([container('main', 30, 16)]);
  own.spec.resourceClaims = [{ name: 'vcuda-0', resourceClaimName: 'nic' }];
  const main = own.spec.containers[0];
  if (main?.resources !== undefined) main.resources.claims = [{ name: 'vcuda-0' }];
  const { spec } = converted(own);
  t.same(spec.containers[0]?.resources?.claims, [{ name: 'vcuda-0' }, { name: 'vcuda-1' }]);
  t.same(
    spec.resourceClaims?.map(({ name }) => name),
    ['vcuda-0', 'vcuda-1'],
  );
  t.end();
});

test('two whole GPUs are linked if such a pair is free, and of one model if the pod requires it', (t) => {
  const plain = converted(pod([container('main', 200, 0)])).templates[0];
  t.match(plain?.name, /^vcuda-2x-[0-9a-f]{8}$/);
  t.match(plain?.spec, {
    devices: {
      requests: [
        {
          firstAvailable: [
            { name: 'linked', deviceClassName: 'gpu.tencent.com', count: 2 },
            { name: 'near', count: 2 },
            { name: 'any' },
          ],
        },
      ],
      constraints: [
        { requests: ['gpu/linked'], matchAttribute: 'gpu.tencent.com/linkGroup2' },
        { requests: ['gpu/near'], matchAttribute: 'resource.kubernetes.io/numaNode' },
      ],
    },
  });
  const equal = pod([container('main', 300, 96)]);
  equal.metadata.annotations = { 'tencent.com/equal-gpus': 'required' };
  t.match(converted(equal).templates[0]?.spec, {
    devices: {
      requests: [{ exactly: { count: 3, capacity: { requests: { cores: '100', memory: '8192Mi' } } } }],
      constraints: [{ requests: ['gpu'], matchAttribute: 'gpu.tencent.com/model' }],
    },
  });
  t.end();
});

for (const [cores, memory, reason] of [
  [150, 0, /container main: tencent\.com\/vcuda-core: 150 .* not a multiple of 100/],
  [30, 0, /container main: tencent\.com\/vcuda-core: 30 .* needs tencent\.com\/vcuda-memory/],
  [0, 8, /container main: tencent\.com\/vcuda-memory: 8 without tencent\.com\/vcuda-core/],
  [200, 33, /33 blocks cannot be divided equally among 2 GPUs/],
  [1700, 0, /17 GPUs in one container; a claim has at most 16/],
  ['1500m', 8, /must be whole/],
] as const)
  test(`${cores} cores and ${memory} blocks are refused with the reason`, (t) => {
    const conversion = convertPod(pod([container('main', cores, memory)]));
    t.match(conversion, { kind: 'refused', reason });
    t.end();
  });

test('a pod that names its node, or asks for no GPU, stays as it is', (t) => {
  const placed = pod([container('main', 30, 16)]);
  placed.spec.nodeName = 'node1';
  t.match(convertPod(placed), { kind: 'unchanged', warning: /names its node/ });
  t.same(convertPod(pod([{ name: 'main' }])), { kind: 'unchanged', warning: null });
  t.end();
});

test('a request that is divided over several GPUs becomes a claim for parts of so many, linked if possible', (t) => {
  const divided = (cores: number, blocks: number, gpus: string) => {
    const object = pod([container('main', cores, blocks)]);
    return { ...object, metadata: { ...object.metadata, annotations: { 'tencent.com/vcuda-gpus': gpus } } };
  };
  const [two] = converted(divided(100, 32, '2')).templates;
  t.match(two?.name, /^vcuda-2x50-32-[0-9a-f]{8}$/);
  const half = {
    deviceClassName: 'vgpu.tencent.com',
    count: 2,
    capacity: { requests: { cores: '50', memory: '4096Mi' } },
  };
  t.match(two?.spec, {
    devices: {
      requests: [{ name: 'gpu', firstAvailable: ['linked', 'near', 'any'].map((name) => ({ name, ...half })) }],
      constraints: [{ requests: ['gpu/linked'], matchAttribute: 'gpu.tencent.com/linkGroup2' }, Object],
    },
  });
  t.match(converted(divided(90, 12, '3')).templates[0]?.spec, {
    devices: { requests: [{ exactly: { count: 3, capacity: { requests: { cores: '30', memory: '1024Mi' } } } }] },
  });
  const both = pod([container('main', 100, 32), container('side', 30, 4)]);
  const named = { ...both, metadata: { ...both.metadata, annotations: { 'tencent.com/vcuda-gpus': 'main=2' } } };
  t.match(
    converted(named).templates.map(({ name }) => name),
    [/^vcuda-2x50-32-/, /^vcuda-30-4-/],
  );
  t.same(
    converted(divided(200, 32, '2')).templates,
    converted(pod([container('main', 200, 32)])).templates,
    'two whole GPUs, as without the annotation',
  );
  for (const [cores, blocks, reason] of [
    [101, 32, /101 cannot be divided evenly over 2 GPUs/],
    [100, 31, /31 cannot be divided evenly over 2 GPUs/],
    [100, 0, /50/],
    [300, 32, /300 is more than 2 whole GPUs/],
  ] as const)
    t.match(convertPod(divided(cores, blocks, '2')), { kind: 'refused', reason });
  t.end();
});
