import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { sliceObject } from '../../../src/agent/claims/slice-object.js';
import { deviceName } from '../../../src/gpu/claims/names.js';
import type { PublishedDevice } from '../../../src/gpu/claims/published-device.js';
import { planSlices } from '../../../src/gpu/claims/slice-plan.js';
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
): readonly (readonly (Result | null)[])[] {
  const { writes } = planSlices('n', devices, []);
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
