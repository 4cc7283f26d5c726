import { test } from 'tap';
import { injectionOf } from '../../../src/agent/nri/injection.js';
import type { GivenSlice } from '../../../src/agent/nri/ports.js';
import type { RuntimeMount } from '../../../src/agent/nri/runtime-container.js';

const SLICE = '/vm/0123456789abcdef';
const GIVEN: GivenSlice = {
  slice: '0123456789abcdef',
  environment: { LD_LIBRARY_PATH: '/usr/local/nvidia/lib64', NVIDIA_VISIBLE_DEVICES: 'GPU-1' },
  mounts: [
    { hostPath: '/mirror/current', containerPath: '/usr/local/nvidia', writable: false },
    { hostPath: SLICE, containerPath: '/etc/vcuda', writable: false },
    { hostPath: `${SLICE}/usage/vgpu.usage`, containerPath: '/etc/vcuda/usage/vgpu.usage', writable: true },
  ],
  numaNodes: [],
};
const mount = (destination: string, source: string, options = ['rbind', 'ro']): RuntimeMount => ({
  destination,
  source,
  options,
});
const RIGHT = [
  mount('/proc', 'proc', []),
  mount('/usr/local/nvidia', '/mirror/current'),
  mount('/etc/vcuda', SLICE),
  mount('/etc/vcuda/usage/vgpu.usage', `${SLICE}/usage/vgpu.usage`, ['rbind', 'rw']),
];

function inject(
  environment: Readonly<Record<string, string>>,
  mounts: readonly RuntimeMount[] = RIGHT,
  repeated: readonly string[] = [],
) {
  const container = { environment: new Map(Object.entries(environment)), mounts, repeated: new Set(repeated) };
  const found = injectionOf(container, GIVEN, (meant, mounted) => meant === mounted);
  return { ...found, environment: Object.fromEntries(found.environment) };
}

const ENVIRONMENT = { PATH: '/bin', ...GIVEN.environment };

test('a container that has what its slice needs is not changed', (t) => {
  t.same(inject(ENVIRONMENT), { environment: {}, mounts: [], problems: [], remaining: [] });
  const behind = { ...ENVIRONMENT, LD_LIBRARY_PATH: '/usr/local/nvidia/lib64:/opt/conda/lib:' };
  t.same(inject(behind).problems, [], 'directories behind that of the control library belong to the pod');
  t.end();
});

for (const [present, wanted] of [
  ['/opt/conda/lib', '/usr/local/nvidia/lib64:/opt/conda/lib'],
  ['/a:/usr/local/nvidia/lib64/:/b', '/usr/local/nvidia/lib64:/a:/b'],
  ['', '/usr/local/nvidia/lib64'],
  ['::', '/usr/local/nvidia/lib64'],
  [':/a', '/usr/local/nvidia/lib64:/a'],
] as const) {
  test(`LD_LIBRARY_PATH=${present} becomes ${wanted}`, (t) => {
    const found = inject({ ...ENVIRONMENT, LD_LIBRARY_PATH: present });
    t.same(found.environment, { LD_LIBRARY_PATH: wanted });
    t.same(found.problems, [`LD_LIBRARY_PATH is ${JSON.stringify(present)}`]);
    t.same(inject({ ...ENVIRONMENT, LD_LIBRARY_PATH: wanted }).environment, {}, 'a second adjustment changes nothing');
    t.end();
  });
}

test('settings of the slice that are missing or different in the container are set', (t) => {
  const found = inject({ NVIDIA_VISIBLE_DEVICES: 'all' });
  t.same(found.environment, GIVEN.environment);
  t.same(found.problems, ['LD_LIBRARY_PATH is not set', 'NVIDIA_VISIBLE_DEVICES is "all"']);
  t.end();
});

test('LD_PRELOAD keeps every library except those of the driver', (t) => {
  const preload = (value: string) => inject({ ...ENVIRONMENT, LD_PRELOAD: value }).environment.LD_PRELOAD;
  t.equal(preload('/usr/lib/libjemalloc.so.2'), undefined);
  t.equal(preload('/driver/libcuda.so.1 /usr/lib/libjemalloc.so.2'), '/usr/lib/libjemalloc.so.2');
  t.equal(preload('/a/libcuda.so.580.95.05:libnvidia-ml.so'), '');
  t.equal(preload('/a/libcudart.so.13'), undefined, 'the runtime library is not a part of the driver');
  t.end();
});

test('missing, foreign and writable mounts are replaced', (t) => {
  const found = inject(ENVIRONMENT, [
    mount('/usr/local/nvidia/', '/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/mine', ['rbind', 'rw']),
    mount('/etc/vcuda', SLICE, ['rbind', 'rw']),
  ]);
  t.same(
    found.mounts.map(({ destination, mount: bind }) => [destination, bind?.hostPath]),
    [
      ['/usr/local/nvidia', '/mirror/current'],
      ['/etc/vcuda', SLICE],
      ['/etc/vcuda/usage/vgpu.usage', `${SLICE}/usage/vgpu.usage`],
    ],
  );
  t.match(found.problems, [
    /empty-dir\/mine" is mounted on \/usr\/local\/nvidia instead of \/mirror\/current/,
    /is mounted on \/etc\/vcuda/,
    'nothing is mounted on /etc/vcuda/usage/vgpu.usage',
  ]);
  t.end();
});

test('of two mounts on one path the visible one counts', (t) => {
  const found = inject(ENVIRONMENT, [...RIGHT, mount('/usr/local/nvidia', '/elsewhere')]);
  t.same(
    found.mounts.map(({ destination }) => destination),
    ['/usr/local/nvidia'],
  );
  t.end();
});

test('a volume inside a mount of the slice is removed, and one beside it stays', (t) => {
  const found = inject(ENVIRONMENT, [
    ...RIGHT,
    mount('/usr/local/nvidia/lib64', '/pods/u/volumes/fake'),
    mount('/usr/local/nvidia-tools', '/pods/u/volumes/tools'),
    mount('/etc', '/pods/u/volumes/etc'),
  ]);
  t.same(found.mounts, [{ destination: '/usr/local/nvidia/lib64', mount: null }]);
  t.match(found.problems, [/"\/pods\/u\/volumes\/fake" is mounted on \/usr\/local\/nvidia\/lib64, inside/]);
  t.end();
});

test('values from a pod are shown shortened and without control characters', (t) => {
  const [problem = ''] = inject({ ...ENVIRONMENT, LD_LIBRARY_PATH: `\u001b[2J${'x'.repeat(100_000)}` }).problems;
  t.match(problem, /^LD_LIBRARY_PATH is "\?\[2Jx+\.\.\."$/);
  t.ok(problem.length < 300);
  t.end();
});

test('a variable that is set twice cannot be changed and is reported, and all other differences are corrected', (t) => {
  const found = inject({ LD_LIBRARY_PATH: '/opt', NVIDIA_VISIBLE_DEVICES: 'all' }, RIGHT, ['LD_LIBRARY_PATH']);
  t.same(found.environment, { NVIDIA_VISIBLE_DEVICES: 'GPU-1' });
  t.same(found.problems, ['NVIDIA_VISIBLE_DEVICES is "all"']);
  t.match(found.remaining, [/^LD_LIBRARY_PATH is "\/opt", and set twice/]);
  t.same(inject(ENVIRONMENT, RIGHT, ['LD_LIBRARY_PATH']).remaining, [], 'the last value counts, and is right');
  t.end();
});

test("the limits of NVIDIA's toolkit are taken out where the agent sets limits in the driver", (t) => {
  const theirs = { NVIDIA_GPU_MEMORY_REQUEST: '1024', NVIDIA_GPU_MEMORY_LIMIT: '4096' };
  const environment = new Map(Object.entries({ ...ENVIRONMENT, ...theirs }));
  const container = { environment, mounts: RIGHT, repeated: new Set<string>() };
  const same = (meant: string, mounted: string): boolean => meant === mounted;
  t.same(injectionOf(container, GIVEN, same).problems, [], 'elsewhere they are left alone');
  const found = injectionOf(container, GIVEN, same, true);
  t.same(Object.fromEntries(found.environment), { NVIDIA_GPU_MEMORY_REQUEST: '', NVIDIA_GPU_MEMORY_LIMIT: '' });
  t.match(found.problems, [/^NVIDIA_GPU_MEMORY_REQUEST is "1024"/, /^NVIDIA_GPU_MEMORY_LIMIT is "4096"/]);
  const emptied = { ...container, environment: new Map([...environment, ...found.environment]) };
  t.same(injectionOf(emptied, GIVEN, same, true).problems, [], 'a second adjustment changes nothing');
  t.end();
});
