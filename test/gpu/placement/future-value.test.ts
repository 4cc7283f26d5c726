import fc from 'fast-check';
import { test } from 'tap';
import { bitsOf, positionsOf } from '../../../src/gpu/placement/bit-set.js';
import { MAX_TABLE_GPUS, SetTable } from '../../../src/gpu/placement/set-table.js';
import { JOB_SIZES, FutureValue, compareFutureValue } from '../../../src/gpu/placement/future-value.js';
import { pcieScore } from '../../../src/gpu/placement/score.js';
import { linksBetween, type Topology } from '../../../src/gpu/topology/topology.js';
import { BRIDGED, CUBE_MESH, T8, switched } from '../topology/machines.js';
import { anyMachine } from '../topology/random-machines.js';
import { linksOpinion, nearnessOpinion, packingOpinion, subsets } from './exhaustive.js';

const everything = (topology: Topology): number => (1 << topology.levels.length) - 1;

const linkTable = (topology: Topology): SetTable =>
  new SetTable(topology.levels.length, (a, b) => linksBetween(topology, a, b));
const pcieTable = (topology: Topology): SetTable =>
  new SetTable(topology.levels.length, (a, b) => pcieScore(topology, a, b));

test('the table holds the sum of every set', (t) => {
  fc.assert(
    fc.property(fc.oneof(anyMachine(7, 0), anyMachine(7, 18)), (topology) => {
      const [links, near] = [linkTable(topology), pcieTable(topology)];
      let right = true;
      for (let set = 0; set <= everything(topology); set++) {
        const positions = positionsOf(set);
        right &&=
          links.of(set) === linksOpinion(topology, positions) && near.of(set) === nearnessOpinion(topology, positions);
      }
      return right;
    }),
    { numRuns: 60 },
  );
  t.pass('the test compares 60 machines');
  t.end();
});

test('a table holds at most sixteen GPUs', (t) => {
  t.equal(linkTable(switched(16, 18)).of(0xffff), 120 * 18);
  t.throws(() => new SetTable(MAX_TABLE_GPUS + 1, () => 0), RangeError);
  t.end();
});

test('twins are interchangeable in every set', (t) => {
  fc.assert(
    fc.property(anyMachine(6, 1), (topology) => {
      const table = pcieTable(topology);
      const swap = (set: number, a: number, b: number) =>
        bitsOf(positionsOf(set).map((position) => (position === a ? b : position === b ? a : position)));
      for (const a of topology.levels.keys()) {
        for (const b of topology.levels.keys()) {
          if (!table.areTwins(a, b)) continue;
          for (let set = 0; set <= everything(topology); set++)
            if (table.of(set) !== table.of(swap(set, a, b))) return false;
        }
      }
      return true;
    }),
    { numRuns: 60 },
  );
  const table = pcieTable(T8);
  t.ok(table.areTwins(0, 1));
  t.notOk(table.areTwins(0, 2));
  t.notOk(linkTable(CUBE_MESH).areTwins(0, 1), 'their links lead to other GPUs');
  t.end();
});

test('the future value is the score of the best disjoint jobs of 8, 4 and 2 GPUs', (t) => {
  const machine = fc.oneof(anyMachine(9, 2), anyMachine(9, 0), fc.constantFrom(BRIDGED, CUBE_MESH, T8));
  fc.assert(
    fc.property(
      machine.chain((topology) => fc.tuple(fc.constant(topology), fc.subarray([...topology.levels.keys()]))),
      ([topology, free]) => {
        const links = new FutureValue(linkTable(topology)).of(bitsOf(free));
        const near = new FutureValue(pcieTable(topology)).of(bitsOf(free));
        return JOB_SIZES.every(
          (size, at) =>
            links[at] === packingOpinion(free, size, (set) => linksOpinion(topology, set)) &&
            near[at] === packingOpinion(free, size, (set) => nearnessOpinion(topology, set)),
        );
      },
    ),
    { numRuns: 120 },
  );
  t.pass('the test compares 120 sets');
  t.end();
});

test('sixteen GPUs have the value of two jobs of eight, four of four and eight of two', (t) => {
  const machine = switched(16, 6);
  const [eights, fours, twos] = new FutureValue(pcieTable(machine)).of(0xffff);
  const halves = [
    [0, 1, 2, 3, 4, 5, 6, 7],
    [8, 9, 10, 11, 12, 13, 14, 15],
  ];
  t.equal(
    eights,
    halves.reduce((sum, half) => sum + nearnessOpinion(machine, half), 0),
  );
  t.equal(fours, 4 * nearnessOpinion(machine, [0, 1, 2, 3]));
  t.equal(twos, 8 * nearnessOpinion(machine, [0, 1]));
  t.end();
});

test('the future value never rises when a GPU is taken', (t) => {
  fc.assert(
    fc.property(anyMachine(8, 2), (topology) => {
      const futureValue = new FutureValue(linkTable(topology));
      const all = everything(topology);
      return subsets(positionsOf(all), Math.max(0, topology.levels.length - 1)).every((rest) =>
        futureValue.of(bitsOf(rest)).every((value, at) => value <= (futureValue.of(all)[at] ?? 0)),
      );
    }),
    { numRuns: 60 },
  );
  t.pass('the test compares 60 machines');
  t.end();
});

test('future values are compared by the largest job first', (t) => {
  t.ok(compareFutureValue([1, 0, 0], [0, 9, 9]) > 0);
  t.ok(compareFutureValue([1, 2, 3], [1, 2, 4]) < 0);
  t.equal(compareFutureValue([1, 2, 3], [1, 2, 3]), 0);
  t.end();
});
