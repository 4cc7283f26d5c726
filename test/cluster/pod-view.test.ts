import { test } from 'tap';
import { readPod } from '../../src/kube/pod.js';
import { viewPod as viewRead, type PodView } from '../../src/cluster/pod-view.js';
import { pod, type ContainerSpec, type PodObject } from '../scheduler/objects.js';

const viewPod = (object: PodObject): PodView => viewRead(readPod(object));

const BLOCK = 256 * 2 ** 20;

function gpu(cores: number, blocks: number, differing: Partial<ContainerSpec> = {}): ContainerSpec {
  return {
    name: 'g',
    resources: { limits: { 'tencent.com/vcuda-core': cores, 'tencent.com/vcuda-memory': blocks } },
    ...differing,
  };
}

function host(cpu: string, memory: string, differing: Partial<ContainerSpec> = {}): ContainerSpec {
  return { name: 'h', resources: { requests: { cpu, memory } }, ...differing };
}

test('containers are numbered as in the pod, and containers without GPUs are left out', (t) => {
  const { demand } = viewPod(pod('p', [null, [30, 4], [200, 0]]));
  t.same(demand.containers, [
    { container: 1, cores: 30, memoryBytes: 4 * BLOCK },
    { container: 2, cores: 200, memoryBytes: 0 },
  ]);
  t.end();
});

test('init containers come first and end, sidecars stay', (t) => {
  const { demand } = viewPod({
    spec: { initContainers: [gpu(50, 4), gpu(20, 2, { restartPolicy: 'Always' })], containers: [gpu(30, 4)] },
  });
  t.same(
    demand.init.map(({ container, cores }) => [container, cores]),
    [[0, 50]],
  );
  t.same(
    demand.containers.map(({ container, cores }) => [container, cores]),
    [
      [0, 30],
      [2, 20],
    ],
  );
  t.end();
});

test('the extender counts CPU and memory of the host as the scheduler does', (t) => {
  const spec = (initContainers: ContainerSpec[], containers: ContainerSpec[], overhead?: Record<string, string>) =>
    viewPod({ spec: { initContainers, containers, ...(overhead === undefined ? {} : { overhead }) } }).demand;
  t.match(spec([], [host('500m', '1Gi'), host('1', '1Gi')]), { cpuMilli: 1500, hostMemoryBytes: 2 * 2 ** 30 });
  t.match(spec([], [host('100u', '0.5')]), { cpuMilli: 1, hostMemoryBytes: 1 }, 'fractions are rounded up');
  t.match(spec([host('4', '100Mi')], [host('1', '1Gi')]), { cpuMilli: 4000, hostMemoryBytes: 2 ** 30 });
  t.match(
    spec([host('1', '1Gi', { restartPolicy: 'Always' }), host('4', '100Mi')], [host('2', '1Gi')]),
    { cpuMilli: 5000 },
    'an init container runs beside the sidecars before it',
  );
  t.match(spec([host('4', '1Gi'), host('1', '1Gi', { restartPolicy: 'Always' })], [host('2', '1Gi')]), {
    cpuMilli: 4000,
  });
  t.match(spec([], [host('1', '1Gi')], { cpu: '250m', memory: '120Mi' }), { cpuMilli: 1250 });
  t.match(
    spec([], [{ name: 'l', resources: { limits: { cpu: '2' } } }]),
    { cpuMilli: 2000 },
    'a limit replaces an absent request',
  );
  t.end();
});

test('errors name the container', (t) => {
  t.match(viewPod({ spec: { containers: [gpu(150, 1)] } }).brokenRule, /^container g: tencent.com\/vcuda-core: 150/);
  t.match(
    viewPod({ spec: { initContainers: [gpu(50, 0)], containers: [] } }).brokenRule,
    /needs tencent.com\/vcuda-memory/,
  );
  t.match(viewPod({ spec: { containers: [gpu(0.5, 1)] } }).brokenRule, /0.5 is not a positive number/);
  t.equal(viewPod({ spec: { containers: [gpu(50, 1), gpu(200, 0), gpu(0, 0)] } }).brokenRule, null);
  t.end();
});

test('annotations count only on the node that they were written for', (t) => {
  const of = (annotations: Record<string, string>, nodeName?: string) =>
    viewPod({
      ...pod('p', [[30, 4]]),
      metadata: { uid: 'u', annotations },
      spec: { ...pod('p', [[30, 4]]).spec, nodeName },
    }).gpus;
  const idx = { 'tencent.com/predicate-gpu-idx-0': '1' };
  t.same(of({ ...idx, 'tencent.com/predicate-node': 'n' }, 'n'), [{ container: 0, indexes: [1] }]);
  t.same(of(idx, 'n'), [{ container: 0, indexes: [1] }], 'an agent wrote the annotations without the extender');
  t.equal(of({ ...idx, 'tencent.com/predicate-node': 'other' }, 'n'), null);
  t.same(
    of({ ...idx, 'tencent.com/predicate-node': 'other', 'tencent.com/gpu-assigned': 'true' }, 'n'),
    [{ container: 0, indexes: [1] }],
    "the agent's annotations take precedence",
  );
  t.equal(
    of({ ...idx, 'tencent.com/predicate-node': 'n' }),
    null,
    'the pod is not bound: its annotations are outdated or copied',
  );
  t.equal(of({ 'tencent.com/predicate-gpu-idx-0': '1,x' }, 'n'), null);
  t.equal(of({}, 'n'), null);
  t.end();
});

test('the extender reads a node affinity and a node selector', (t) => {
  const { demand } = viewPod({
    spec: {
      nodeSelector: { zone: 'a' },
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: 'gpu', operator: 'In', values: ['T4'] },
                  { key: 'x', operator: 'Newer' },
                ],
              },
            ],
          },
        },
      },
    },
  });
  t.same(demand.selector, {
    labels: { zone: 'a' },
    terms: [
      {
        labels: [
          { key: 'gpu', operator: 'In', values: ['T4'] },
          { key: 'x', operator: 'Newer', values: [] },
        ],
        fields: [],
      },
    ],
  });
  t.end();
});

test('an empty pod requests nothing', (t) => {
  t.match(viewPod({}), {
    uid: '',
    namespace: 'default',
    nodeName: null,
    ended: false,
    brokenRule: null,
    gpus: null,
    demand: { containers: [], init: [], cpuMilli: 0 },
  });
  t.match(viewPod({ status: { phase: 'Failed' }, spec: { nodeName: '' } }), { ended: true, nodeName: null });
  t.end();
});

test('init containers have ended when a regular container has started', (t) => {
  const view = (state: unknown) =>
    viewPod({
      spec: { initContainers: [gpu(200, 0)], containers: [{ ...gpu(100, 0), name: 'main' }] },
      status: { containerStatuses: [{ name: 'main', state }] },
    } as never).initEnded;
  t.equal(view({ waiting: { reason: 'PodInitializing' } }), false);
  t.equal(view({ running: {} }), true);
  t.equal(view({ terminated: {} }), true);
  t.equal(viewPod({ spec: { containers: [gpu(100, 0)] } }).initEnded, true, 'the pod has no init container');
  t.end();
});

test('a pod requires equal GPUs, prefers them, or is invalid', (t) => {
  const view = (value?: string, cores = 200) =>
    viewPod({
      metadata: { annotations: value === undefined ? {} : { 'tencent.com/equal-gpus': value } },
      spec: { containers: cores === 0 ? [{ name: 'web' }] : [gpu(cores, 0)] },
    });
  t.equal(view().demand.selection.equalGpus, false);
  t.equal(view('preferred').brokenRule, null);
  t.equal(view('required').demand.selection.equalGpus, true);
  t.not(view('required').demand.key, view().demand.key);
  t.match(view('yes').brokenRule, /tencent\.com\/equal-gpus is "yes"; it can be "required" or "preferred"/);
  t.equal(view('yes', 0).brokenRule, null, 'the pod requests no property of GPUs');
  t.end();
});
