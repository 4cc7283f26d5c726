import { test } from 'tap';
import {
  ALL_FEATURES,
  publishedDevices,
  semanticVersion,
  type CounterSet,
  type PublishedDevice,
  type PublishedGpu,
} from '../../../src/gpu/claims/published-device.js';
import {
  keptFeatures,
  planSlices,
  sameContent,
  sliceName,
  type ObservedSlice,
  type SlicePlan,
} from '../../../src/gpu/claims/slice-plan.js';
import { poolName } from '../../../src/gpu/claims/names.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';

const gpu = (index: number, illness: PublishedGpu['illness'] = null): PublishedGpu => ({
  index,
  minor: index,
  uuid: `GPU-${String(index).padStart(8, '0')}-0000-0000-0000-000000000000`,
  pciBusId: `00000000:${index.toString(16).padStart(2, '0')}:00.0`,
  model: 'NVIDIA H200',
  memoryBytes: 16 * 2 ** 30 + 5,
  numaNode: 0,
  modelName: 'H200',
  computeCapability: '9.0',
  pcieRoot: null,
  illness,
});

const devices = (count: number, illness: PublishedGpu['illness'] = null, features = ALL_FEATURES): PublishedDevice[] =>
  publishedDevices(
    {
      gpus: Array.from({ length: count }, (_, index) => gpu(index, index === 0 ? illness : null)),
      topology: uniformTopology(count),
      wholeInstances: false,
      divided: [],
      driverVersion: '580.95.05',
      cudaVersion: 13_000,
    },
    () => true,
    features,
  );

const pool = (of: readonly PublishedDevice[], counterSets: readonly CounterSet[] = []) => ({
  devices: of,
  counterSets,
});

/** What exists after a plan was carried out. */
function after(plan: SlicePlan, before: readonly ObservedSlice[] = []): ObservedSlice[] {
  const names = new Set([...plan.removals.map(({ name }) => name), ...plan.writes.map(({ slice }) => slice.name)]);
  const written = plan.writes.map(({ slice }) => ({ ...slice, uid: slice.name, resourceVersion: '1' }));
  return [...before.filter(({ name }) => !names.has(name)), ...written];
}

test('up to 64 GPUs need one slice and more GPUs need two, and no GPU is in both', (t) => {
  for (const [count, slices] of [
    [0, 1],
    [1, 1],
    [64, 1],
    [65, 2],
  ] as const) {
    const { writes } = planSlices('node', pool(devices(count)), []);
    t.equal(writes.length, slices, `${count} GPUs`);
    t.equal(new Set(writes.flatMap(({ slice }) => slice.devices.map(({ name }) => name))).size, count);
    t.ok(writes.every(({ slice }) => slice.sliceCount === slices && slice.generation === 1));
  }
  t.end();
});

test('the plan does not write unchanged slices again', (t) => {
  const present = after(planSlices('node', pool(devices(65)), []));
  t.same(planSlices('node', pool(devices(65)), present), { writes: [], removals: [] });
  t.end();
});

test('a single changed slice is updated in place, and all slices get a new generation when their number changes', (t) => {
  const one = after(planSlices('node', pool(devices(8)), []));
  const ill = planSlices('node', pool(devices(8, { status: 'failed', evict: false })), one);
  t.match(ill.writes, [{ slice: { generation: 1 }, replaces: { name: sliceName('node', 0) } }]);
  const more = planSlices('node', pool(devices(65)), one);
  t.same(
    more.writes.map(({ slice }) => slice.generation),
    [2, 2],
  );
  const fewer = planSlices('node', pool(devices(8)), after(more, one));
  t.same(
    fewer.writes.map(({ slice }) => slice.generation),
    [3],
  );
  t.equal(fewer.removals.length, 1);
  t.same(planSlices('node', pool(devices(8)), after(fewer, after(more, one))), { writes: [], removals: [] });
  t.end();
});

test('an unchanged taint keeps its time', (t) => {
  const ill = devices(2, { status: 'failed', evict: true });
  const [slice] = after(planSlices('node', pool(ill), []));
  const stamped = {
    ...slice,
    devices: ill.map((device) => ({
      ...device,
      taints: device.taints.map((taint) => ({ ...taint, timeAdded: '2026-01-01T00:00:00Z' })),
    })),
  } as ObservedSlice;
  t.ok(sameContent(pool(ill), stamped));
  const changed = planSlices('node', pool(devices(3, { status: 'failed', evict: true })), [stamped]);
  const taints = changed.writes[0]?.slice.devices.flatMap(({ taints: of }) => of);
  t.match(taints, [
    { key: 'gpu.tencent.com/health', value: 'failed', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
  ]);
  t.end();
});

test('the plan notices features that the API server drops, and works without them', (t) => {
  const sent = devices(2, { status: 'failed', evict: false });
  const cut = sent.map((device) => ({ ...device, shared: false, taints: [] }));
  t.same(keptFeatures(pool(sent), pool(cut)), { shares: false, taints: false, counters: true });
  t.same(keptFeatures(pool(sent), pool(sent)), ALL_FEATURES);
  const without = devices(2, { status: 'failed', evict: false }, { ...ALL_FEATURES, shares: false, taints: false });
  t.equal(without.length, 1, 'the slice leaves out the unhealthy GPU');
  t.same(without[0]?.capacity.cores, { value: 100, policy: null });
  t.end();
});

test('counter sets have slices of their own before those of the devices, and a server that drops them is noticed', (t) => {
  const sets = Array.from({ length: 9 }, (_, at) => ({ name: `gpu-${at}`, counters: { multiprocessors: 98 } }));
  const taking = devices(65).map((device) => ({
    ...device,
    consumes: { name: 'gpu-0', counters: { multiprocessors: 14 } },
  }));
  const { writes } = planSlices('node', pool(taking, sets), []);
  t.same(
    writes.map(({ slice }) => [slice.counterSets.length, slice.devices.length, slice.sliceCount]),
    [
      [8, 0, 4],
      [1, 0, 4],
      [0, 64, 4],
      [0, 1, 4],
    ],
  );
  const present = after({ writes, removals: [] });
  t.same(planSlices('node', pool(taking, sets), present), { writes: [], removals: [] });
  const less = planSlices(
    'node',
    pool(taking, [{ name: 'gpu-0', counters: { multiprocessors: 1 } }, ...sets.slice(1)]),
    present,
  );
  t.match(less.writes, [{ slice: { name: sliceName('node', 0), generation: 1 } }]);
  t.same(keptFeatures(pool([], sets), pool([])), { ...ALL_FEATURES, counters: false });
  t.same(keptFeatures(pool(taking), pool(devices(65))), { ...ALL_FEATURES, counters: false });
  t.end();
});

test('slice names are valid and distinct for any node name', (t) => {
  const long = (last: string): string => `${'n'.repeat(252)}${last}`;
  t.ok(sliceName(long('a'), 0).length <= 253 && poolName(long('a')).length <= 253);
  t.not(sliceName(long('a'), 0), sliceName(long('b'), 0));
  t.not(poolName(long('a')), poolName(long('b')));
  t.equal(poolName('node1'), 'node1/vcuda');
  t.end();
});

test('a device stays within the limits of a ResourceSlice', (t) => {
  const [device] = devices(16);
  const { attributes = {}, capacity = {} } = device ?? {};
  t.ok(Object.keys(attributes).length + Object.keys(capacity).length <= 32);
  for (const value of Object.values(attributes)) if ('string' in value) t.ok(Buffer.byteLength(value.string) <= 64);
  t.same(attributes.driverVersion, { version: '580.95.5' });
  t.same(attributes['resource.kubernetes.io/pciBusID'], { string: '0000:00:00.0' });
  t.equal(capacity.memory?.value, 16 * 2 ** 30, 'the memory is rounded down to blocks of 256 MiB');
  t.equal(semanticVersion('none'), null);
  t.end();
});
