import fc from 'fast-check';
import { test } from 'tap';
import { setScore } from '../../../src/gpu/placement/score.js';
import type { Topology } from '../../../src/gpu/topology/topology.js';
import { highestScore } from '../placement/exhaustive.js';
import { allocated, BOARDS, MACHINES, published, subsetsOf } from './linked-machines.js';

const isNear = (topology: Topology, a: number, b: number): boolean => a === b || topology.levels[a]?.[b] !== 'SYS';

for (const [name, topology] of Object.entries(MACHINES)) {
  test(`on ${name}, a linked set that is free is the best of all sets, whatever else is free`, (t) => {
    const devices = published(topology);
    const gpus = topology.levels.length;
    for (const count of [2, 4, 8].filter((size) => size <= gpus)) {
      let [sum, linked, best, parted] = [0, 0, 0, 0];
      const frees = subsetsOf(gpus).filter((free) => free.length >= count);
      for (const free of frees) {
        const { alternative, gpus: chosen } = allocated(devices, free, count);
        const [score, highest] = [setScore(topology, chosen), highestScore(topology, free, count)];
        sum += score / highest;
        if (score === highest) best += 1;
        const roomiest = Math.max(...free.map((gpu) => free.filter((other) => isNear(topology, gpu, other)).length));
        if (alternative === 'any' && roomiest >= count)
          t.fail(`${count} of ${free.join()}: any, although one NUMA node has enough`);
        if (roomiest >= count && !chosen.every((gpu) => isNear(topology, gpu, chosen[0] as number))) parted += 1;
        if (alternative !== 'linked') continue;
        linked += 1;
        if (score !== highest) t.fail(`${count} of ${free.join()}: ${chosen.join()} scores ${score} of ${highest}`);
      }
      t.ok(sum / frees.length > 0.8);
      t.comment(
        `${count} GPUs, ${frees.length} sets of free GPUs: ${linked} linked sets, all best; ${best} best of all, ${parted} on two NUMA nodes although one has enough; mean score ${(sum / frees.length).toFixed(3)} of the exact search's`,
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
