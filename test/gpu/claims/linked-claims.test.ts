import fc from 'fast-check';
import { test } from 'tap';
import { deviceName } from '../../../src/gpu/claims/names.js';
import { publishedDevices, type PublishedDevice, type PublishedGpu } from '../../../src/gpu/claims/published-device.js';
import { setScore } from '../../../src/gpu/placement/score.js';
import { topologyOfPairs, type Topology } from '../../../src/gpu/topology/topology.js';
import { highestScore } from '../placement/exhaustive.js';
import { BRIDGED, CUBE_MESH, gpuAt, switched, T4, T6, T8 } from '../topology/machines.js';

/** Two boards of eight GPUs; NVSwitch links every pair of a board. */
const BOARDS = topologyOfPairs(16, (a, b) => ({
  level: 'SYS',
  nvlinks: Math.floor(a / 8) === Math.floor(b / 8) ? 18 : 0,
}));

const MACHINES: Readonly<Record<string, Topology>> = {
  'four GPUs on two switches': T4,
  'six GPUs on three switches': T6,
  'eight GPUs on four switches': T8,
  'a hybrid cube mesh': CUBE_MESH,
  'eight GPUs behind NVSwitch': switched(8, 18),
  'three NVLink pairs and two single GPUs': BRIDGED,
};

function published(topology: Topology): readonly PublishedDevice[] {
  const gpus = topology.levels.map((_, index): PublishedGpu => ({
    ...gpuAt(index),
    modelName: 'V100',
    computeCapability: null,
    pcieRoot: null,
    illness: null,
  }));
  const node = { gpus, topology, wholeInstances: false, driverVersion: null, cudaVersion: null };
  return publishedDevices(node, () => true);
}

/**
 * The GPUs that the scheduler allocates to a claim with the alternatives of etc/dra/claims.yaml: it takes the first
 * devices of the list that fit together, of the first alternative for which there are enough.
 */
function allocated(
  devices: readonly PublishedDevice[],
  free: readonly number[],
  count: number,
): { readonly alternative: string; readonly gpus: readonly number[] } {
  const open = devices.filter(({ name }) => free.some((gpu) => deviceName(gpuAt(gpu).uuid) === name));
  const index = ({ attributes }: PublishedDevice): number => (attributes['index'] as { readonly int: number }).int;
  for (const [alternative, attribute] of [
    ['linked', `linkGroup${count}`],
    ['joined', 'linkDomain'],
  ] as const) {
    const valueOf = (device: PublishedDevice): string | undefined => JSON.stringify(device.attributes[attribute]);
    for (const first of open) {
      const value = valueOf(first);
      if (value === undefined) continue;
      const together = open.filter((device) => valueOf(device) === value).slice(0, count);
      if (together.length === count) return { alternative, gpus: together.map(index) };
    }
  }
  return { alternative: 'any', gpus: open.slice(0, count).map(index) };
}

const subsetsOf = (gpus: number): number[][] =>
  Array.from({ length: 1 << gpus }, (_, set) =>
    Array.from({ length: gpus }, (__, gpu) => gpu).filter((gpu) => ((set >> gpu) & 1) === 1),
  );

for (const [name, topology] of Object.entries(MACHINES)) {
  test(`on ${name}, a linked set that is free is the best of all sets, whatever else is free`, (t) => {
    const devices = published(topology);
    const gpus = topology.levels.length;
    for (const count of [2, 4, 8].filter((size) => size <= gpus)) {
      let [sum, linked] = [0, 0];
      const frees = subsetsOf(gpus).filter((free) => free.length >= count);
      for (const free of frees) {
        const { alternative, gpus: chosen } = allocated(devices, free, count);
        const [score, best] = [setScore(topology, chosen), highestScore(topology, free, count)];
        sum += score / best;
        if (alternative !== 'linked') continue;
        linked += 1;
        if (score !== best) t.fail(`${count} of ${free.join()}: ${chosen.join()} scores ${score} of ${best}`);
      }
      t.ok(sum / frees.length > 0.75);
      t.comment(
        `${count} GPUs, ${frees.length} sets of free GPUs: ${linked} linked sets, all best; mean score ${(sum / frees.length).toFixed(3)} of the exact search's`,
      );
    }
    t.end();
  });
}

test('on two boards of eight, a claim for two, four or eight GPUs always gets the best set that is free', (t) => {
  const devices = published(BOARDS);
  fc.assert(
    fc.property(fc.subarray([...BOARDS.levels.keys()], { minLength: 8 }), fc.constantFrom(2, 4, 8), (free, count) => {
      const { gpus: chosen } = allocated(devices, free, count);
      // Sets that span both boards have no order of quality that a claim could name.
      const board = [0, 8].some((from) => free.filter((gpu) => gpu >= from && gpu < from + 8).length >= count);
      return !board || setScore(BOARDS, chosen) === highestScore(BOARDS, free, count);
    }),
    { numRuns: 60 },
  );
  t.end();
});

test('single GPUs and pairs that come first leave a whole board for a claim for eight', (t) => {
  const devices = published(BOARDS);
  let free = [...BOARDS.levels.keys()];
  for (const count of [1, 2, 1, 4]) {
    const { gpus } = allocated(devices, free, count);
    free = free.filter((gpu) => !gpus.includes(gpu));
  }
  const { alternative, gpus } = allocated(devices, free, 8);
  t.equal(alternative, 'linked');
  t.equal(setScore(BOARDS, gpus), highestScore(BOARDS, free, 8));
  t.end();
});
