import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { sliceObject } from '../../../src/agent/claims/slice-object.js';
import { deviceName } from '../../../src/gpu/claims/names.js';
import {
  publishedCounterSets,
  publishedDevices,
  type CounterSet,
  type PublishedDevice,
  type PublishedPartition,
} from '../../../src/gpu/claims/published-device.js';
import { planSlices } from '../../../src/gpu/claims/slice-plan.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';
import { kubernetesHome } from '../../e2e/kubernetes-version.js';
import { gpuAt, T4 } from '../topology/machines.js';
import { allocated, documentsOf, linkedClaim, MACHINES, published, subsetsOf } from './linked-machines.js';

// The allocator of kube-scheduler on our slices, classes and claims, without a cluster.

const PROGRAM = join(kubernetesHome(), 'engines/allocator/allocator');
const skip = existsSync(PROGRAM) ? false : `no ${PROGRAM}: run scripts/build-engines allocator`;

interface Result {
  readonly devices: {
    readonly results: readonly {
      readonly request: string;
      readonly device: string;
      readonly consumedCapacity?: Readonly<Record<string, string>>;
    }[];
  };
}

interface Case {
  readonly taken?: readonly string[];
  readonly claims: readonly object[];
}

/** What the claims of each case get in turn on a node with these devices. */
function allocate(
  devices: readonly PublishedDevice[],
  cases: readonly Case[],
  counterSets: readonly CounterSet[] = [],
): readonly (readonly (Result | null)[])[] {
  const { writes } = planSlices('n', { devices, counterSets }, []);
  const { stdout, stderr, status } = spawnSync(PROGRAM, {
    input: JSON.stringify({
      node: 'n',
      classes: documentsOf('etc/dra/device-classes.yaml'),
      slices: writes.map(({ slice }) => sliceObject(slice, { name: 'n', uid: 'u' }, null)),
      cases,
    }),
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as readonly (readonly (Result | null)[])[];
}

const nameOf = (gpu: number): string => deviceName(gpuAt(gpu).uuid);

for (const [name, topology] of Object.entries(MACHINES)) {
  test(`on ${name}, the scheduler's allocator takes the GPUs that the tests of linked claims expect`, { skip }, (t) => {
    const devices = published(topology);
    const gpus = [...topology.levels.keys()];
    const cases = [2, 4, 8]
      .filter((count) => count <= gpus.length)
      .flatMap((count) =>
        subsetsOf(gpus.length)
          .filter((free) => free.length >= count)
          .map((free) => ({
            expected: allocated(devices, free, count),
            taken: gpus.filter((gpu) => !free.includes(gpu)).map(nameOf),
            claims: [linkedClaim(count)],
          })),
      );
    const results = allocate(devices, cases);
    for (const [at, { expected, taken }] of cases.entries()) {
      const got = results[at]?.[0]?.devices.results ?? [];
      const wanted = expected.gpus.map(nameOf).sort();
      const isSame =
        got
          .map(({ device }) => device)
          .sort()
          .join() === wanted.join();
      if (!isSame || got[0]?.request !== `gpus/${expected.alternative}`)
        t.fail(
          `without ${taken.join()}: expected ${expected.alternative} ${wanted.join()}, got ${JSON.stringify(got)}`,
        );
    }
    t.comment(`${cases.length} claims`);
    t.end();
  });
}

/** The claim of a template of etc/dra/claims.yaml. */
function claimOf(template: string): object {
  const found = (
    documentsOf('etc/dra/claims.yaml') as readonly {
      readonly metadata: { readonly name: string };
      readonly spec: { readonly spec?: object };
    }[]
  ).find(({ metadata }) => metadata.name === template);
  return found?.spec.spec ?? found?.spec ?? {};
}

const share = (cores: string, memory: string): object => ({
  devices: {
    requests: [
      { name: 'gpu', exactly: { deviceClassName: 'vgpu.tencent.com', capacity: { requests: { cores, memory } } } },
    ],
  },
});

test('shares fill a GPU of the slice before the next, and a whole GPU is one without shares', { skip }, (t) => {
  const devices = published(T4);
  const claims = [...new Array<object>(3).fill(claimOf('gpu-share')), claimOf('gpu-whole'), claimOf('gpu-share')];
  const [results = []] = allocate(devices, [{ claims }]);
  const taken = results.map((result) => result?.devices.results[0]?.device);
  const [first, second, third] = devices.map(({ name }) => name);
  t.same(taken, [first, first, first, second, third]);
  t.end();
});

test('an amount is rounded up to the steps of the slice', { skip }, (t) => {
  const [results = []] = allocate(published(T4), [{ claims: [share('7500m', '300Mi')] }]);
  t.same(results[0]?.devices.results[0]?.consumedCapacity, { cores: '8', memory: '512Mi' });
  t.end();
});

test('more than a GPU has is not allocated, nor cores or memory that others have', { skip }, (t) => {
  const devices = published(T4).slice(0, 1);
  const memory = '8Gi';
  const claims = [
    share('101', memory),
    share('60', memory),
    share('50', memory),
    share('40', '9Gi'),
    share('40', memory),
  ];
  const [results = []] = allocate(devices, [{ claims }]);
  t.same(
    results.map((result) => result !== null),
    [false, true, false, false, true],
  );
  t.end();
});

test('a GPU with the taint of our health is not allocated', { skip }, (t) => {
  const [ill, well] = published(T4) as [PublishedDevice, PublishedDevice];
  const taint = { key: 'gpu.tencent.com/health', value: 'failed', effect: 'NoSchedule', timeAdded: null } as const;
  const claims = new Array<object>(2).fill(claimOf('gpu-whole'));
  const [results = []] = allocate([{ ...ill, taints: [taint] }, well], [{ claims }]);
  t.equal(results[0]?.devices.results[0]?.device, well.name);
  t.equal(results[1], null);
  t.end();
});

/** An A100 of 40 GB that the agent divides, as NVML describes it; `at` is its number. */
function divided(at: number): PublishedPartition {
  const profile = (id: number, name: string, gib: number, multiprocessors: number, size: number, starts: number[]) => ({
    ...{ id, name, multiprocessors, size, starts },
    memoryBytes: gib * 2 ** 30,
    engines: { 'copy-engines': multiprocessors / 14 },
  });
  return {
    gpu: { ...gpuAt(at), modelName: 'A100', computeCapability: '8.0', pcieRoot: null, illness: null },
    profiles: [
      profile(19, '1g.5gb', 4.75, 14, 1, [0, 1, 2, 3, 4, 5, 6]),
      profile(15, '1g.10gb', 9.75, 14, 2, [0, 2, 4, 6]),
      profile(14, '2g.10gb', 9.75, 28, 2, [0, 2, 4]),
      profile(9, '3g.20gb', 19.625, 42, 4, [0, 4]),
      profile(5, '4g.20gb', 19.625, 56, 4, [0]),
      profile(0, '7g.40gb', 39.5, 98, 8, [0]),
    ],
    found: [],
    foreign: [],
  };
}

/** The profiles that claims for them get in turn on GPUs that the agent divides; null where there is no room. */
function cut(gpus: number, profiles: readonly string[]): readonly (string | null)[] {
  const node = {
    gpus: [],
    topology: uniformTopology(0),
    wholeInstances: true,
    divided: Array.from({ length: gpus }, (_, at) => divided(at)),
    driverVersion: null,
    cudaVersion: null,
  };
  const devices = publishedDevices(node, () => true);
  const claims = profiles.map((profile) => ({
    devices: {
      requests: [
        {
          name: 'gpu',
          exactly: {
            deviceClassName: 'mig.tencent.com',
            selectors: [{ cel: { expression: `device.attributes['gpu.tencent.com'].profile == '${profile}'` } }],
          },
        },
      ],
    },
  }));
  const [results = []] = allocate(devices, [{ claims }], publishedCounterSets(node));
  return results.map((result) => {
    const device = devices.find(({ name }) => name === result?.devices.results[0]?.device);
    return (device?.attributes['profile'] as { readonly string: string } | undefined)?.string ?? null;
  });
}

test('claims for MIG profiles get what fits on a GPU by its counters, and no more', { skip }, (t) => {
  const seven = new Array<string>(7).fill('1g.5gb');
  t.same(cut(1, [...seven, '1g.5gb']), [...seven, null]);
  t.same(cut(1, ['3g.20gb', '4g.20gb', '1g.5gb']), ['3g.20gb', '4g.20gb', null]);
  t.same(cut(1, ['4g.20gb', '4g.20gb', '3g.20gb']), ['4g.20gb', null, '3g.20gb']);
  t.same(cut(1, ['3g.20gb', '3g.20gb', '1g.5gb']), ['3g.20gb', '3g.20gb', null]);
  t.same(cut(1, ['7g.40gb', '1g.5gb']), ['7g.40gb', null]);
  t.same(cut(1, ['1g.10gb', '1g.10gb', '1g.10gb', '1g.10gb', '1g.10gb']).filter(Boolean).length, 4);
  t.same(cut(2, ['7g.40gb', '2g.10gb', '7g.40gb', '4g.20gb']), ['7g.40gb', '2g.10gb', null, '4g.20gb']);
  t.end();
});

test('small instances are taken where they leave room for large ones', { skip }, (t) => {
  t.same(cut(1, ['1g.5gb', '1g.5gb', '1g.5gb', '4g.20gb']), ['1g.5gb', '1g.5gb', '1g.5gb', '4g.20gb']);
  t.same(cut(1, ['2g.10gb', '1g.5gb', '4g.20gb']), ['2g.10gb', '1g.5gb', '4g.20gb']);
  t.same(cut(1, ['3g.20gb', '4g.20gb']), ['3g.20gb', '4g.20gb']);
  t.end();
});
