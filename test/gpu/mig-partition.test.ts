import { test } from 'tap';
import { placeName } from '../../src/gpu/claims/names.js';
import { ALL_FEATURES, publishedDevices } from '../../src/gpu/claims/published-device.js';
import { countersOf, countersOfGpu, overlap, placesOf, type MigProfile } from '../../src/gpu/mig-partition.js';
import { uniformTopology } from '../../src/gpu/topology/topology.js';

// What NVML of driver 580.159 reports about an H200, a GPU with media engines.
const engines = (copy: number, decoders: number, jpeg: number, ofa: number) => ({
  'copy-engines': copy,
  ...(decoders > 0 ? { decoders, 'jpeg-engines': jpeg } : {}),
  ...(ofa > 0 ? { 'ofa-engines': ofa } : {}),
});
const profile = (
  [id, name]: readonly [number, string],
  [multiprocessors, memoryMib]: readonly [number, number],
  of: Readonly<Record<string, number>>,
  size: number,
  starts: readonly number[],
): MigProfile => ({ id, name, multiprocessors, memoryBytes: memoryMib * 2 ** 20, engines: of, size, starts });
const SEVEN = [0, 1, 2, 3, 4, 5, 6];
const H200: readonly MigProfile[] = [
  profile([19, '1g.18gb'], [16, 16_384], engines(1, 1, 1, 0), 1, SEVEN),
  profile([14, '2g.35gb'], [32, 33_280], engines(2, 2, 2, 0), 2, [0, 2, 4]),
  profile([9, '3g.71gb'], [60, 71_424], engines(3, 3, 3, 0), 4, [0, 4]),
  profile([5, '4g.71gb'], [64, 71_424], engines(4, 4, 4, 0), 4, [0]),
  profile([0, '7g.141gb'], [132, 143_360], engines(8, 7, 7, 1), 8, [0]),
  profile([20, '1g.18gb+me'], [16, 16_384], engines(1, 1, 1, 1), 1, SEVEN),
  profile([15, '1g.35gb'], [26, 33_280], engines(1, 1, 1, 0), 2, [0, 2, 4, 6]),
];
const GPU = {
  ...{ index: 0, minor: 0, uuid: 'GPU-00000000-0000-0000-0000-000000000000', pciBusId: '00000000:04:00.0' },
  ...{ model: 'NVIDIA H200', memoryBytes: 143_771 * 2 ** 20, numaNode: null },
};
const WHOLE = { gpu: GPU, profiles: H200, found: [] };

type Place = ReturnType<typeof placesOf>[number];

test('on a GPU with media engines, every set that does not overlap and has one +me fits the counters, and no other', (t) => {
  const total = countersOfGpu(WHOLE, () => false);
  t.match(total, { multiprocessors: 132, 'copy-engines': 8, decoders: 7, 'ofa-engines': 1, 'memory-slice-7': 1 });
  const places = placesOf(WHOLE);
  const add = (taken: Readonly<Record<string, number>>, { profile: of, start }: Place) => {
    const sum = { ...taken };
    for (const [name, amount] of Object.entries(countersOf(of, start))) sum[name] = (sum[name] ?? 0) + amount;
    return sum;
  };
  const hasMedia = ({ profile: { name } }: Place): boolean => name.endsWith('+me') || name.startsWith('7g');
  let wrong = 0;
  let sets = 0;
  const extend = (chosen: readonly Place[], taken: Readonly<Record<string, number>>, from: number): void => {
    sets += 1;
    for (let at = from; at < places.length; at++) {
      const next = places[at] as Place;
      const isPossible =
        !chosen.some((other) =>
          overlap({ start: other.start, size: other.profile.size }, { start: next.start, size: next.profile.size }),
        ) && !(hasMedia(next) && chosen.some(hasMedia));
      const sum = add(taken, next);
      const fits = Object.entries(sum).every(([name, amount]) => amount <= (total[name] ?? 0));
      if (fits !== isPossible) wrong += 1;
      if (isPossible) extend([...chosen, next], sum, at + 1);
    }
  };
  extend([], {}, 0);
  t.equal(wrong, 0, `of ${sets} sets`);
  t.end();
});

test('the names of all places are different DNS labels', (t) => {
  const names = placesOf(WHOLE).map(({ profile: { id, name }, start }) =>
    placeName(GPU.uuid, name, { profileId: id, start }),
  );
  t.equal(new Set(names).size, names.length);
  t.ok(names.every((name) => /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])$/u.test(name)));
  t.end();
});

test('small profiles come first, at places that leave room for large ones', (t) => {
  const order = placesOf(WHOLE).map(({ profile: { name }, start }) => `${name}@${start}`);
  t.same(order.slice(0, 3), ['1g.18gb@6', '1g.18gb@5', '1g.18gb@4']);
  t.equal(order.at(-1), '7g.141gb@0');
  t.ok(order.indexOf('3g.71gb@4') < order.indexOf('3g.71gb@0'), 'a 4g fits beside it');
  t.end();
});

test('what somebody else created is taken off, and what is ours is not', (t) => {
  const found = [
    { profileId: 9, start: 4, size: 4, gpuInstance: 2, uuids: ['MIG-a'] },
    { profileId: 19, start: 0, size: 1, gpuInstance: 7, uuids: [] },
  ];
  const left = countersOfGpu({ ...WHOLE, found }, ({ profileId }) => profileId === 9);
  t.match(left, {
    multiprocessors: 72,
    'copy-engines': 5,
    'memory-slice-0': 1,
    'memory-slice-4': 0,
    'memory-slice-7': 0,
  });
  t.end();
});

test('an ill instance makes its place ill, and no other', (t) => {
  const described = { ...GPU, modelName: 'H200', computeCapability: '9.0', pcieRoot: null, illness: null };
  const instance = {
    ...{ profile: '1g.18gb', parentUuid: GPU.uuid, gpuInstance: 9, computeInstance: 0, multiprocessors: 16 },
    placement: { profileId: 19, start: 3 },
  };
  const ill = { ...described, uuid: 'MIG-0', instance, illness: { status: 'failed', evict: true } };
  const node = {
    gpus: [ill],
    topology: uniformTopology(1),
    wholeInstances: true,
    divided: [{ ...WHOLE, gpu: described, foreign: [] }],
    driverVersion: null,
    cudaVersion: null,
  };
  const name = placeName(GPU.uuid, '1g.18gb', { profileId: 19, start: 3 });
  const all = publishedDevices(node, () => true);
  t.match(
    all.filter(({ taints }) => taints.length > 0),
    [{ name, taints: [{ value: 'failed', effect: 'NoExecute' }] }],
  );
  const untainted = publishedDevices(node, () => true, { ...ALL_FEATURES, taints: false });
  t.same(
    all.map((device) => device.name).filter((one) => !untainted.some((other) => other.name === one)),
    [name],
  );
  t.end();
});
