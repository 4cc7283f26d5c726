import { test } from 'tap';
import { place } from '../../../src/gpu/placement/place.js';
import type { Topology } from '../../../src/gpu/topology/topology.js';
import { GIB, T1, T2, T2P, T3, T4, T6, T8, slotsOf } from '../topology/machines.js';

type Used = Readonly<Record<number, number>>;
type Vector = readonly [
  name: string,
  topology: Topology,
  used: Used,
  cores: number,
  memoryBytes: number,
  expected: readonly number[],
];

const FULL = 100;
const all = (count: number, cores: number): Used =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [index, cores]));

/**
 * The original's answers, from its own tests or from running it; where it answers at random, the lowest of its answers.
 */
const VECTORS: readonly Vector[] = [
  ['T1 fragment', T1, {}, 100, 0, [0]],
  ['T1 fragment, in use', T1, { 0: 10 }, 100, 0, []],
  ['T1 share beside a tenth', T1, { 0: 10 }, 90, GIB, [0]],
  ['T1 two GPUs', T1, {}, 200, 0, []],
  ['T2 fragment', T2, {}, 100, 0, [0]],
  ['T2 fragment beside a tenth', T2, { 0: 10 }, 100, 0, [1]],
  ['T2 both', T2, {}, 200, 0, [0, 1]],
  ['T2P both', T2P, {}, 200, 0, [0, 1]],
  ['T3 fragment', T3, {}, 100, 0, [1]],
  ['T3 fragment, 0 full', T3, { 0: FULL }, 100, 0, [1]],
  ['T3 fragment, 1 full', T3, { 1: FULL }, 100, 0, [2]],
  ['T3 fragment, 1 and 2 full', T3, { 1: FULL, 2: FULL }, 100, 0, [0]],
  ['T3 link', T3, {}, 200, 0, [1, 2]],
  ['T4 fragment', T4, {}, 100, 0, [0]],
  ['T4 fragment, 2 half', T4, { 2: 50 }, 100, 0, [3]],
  ['T4 link 300', T4, {}, 300, 0, [0, 1, 2]],
  ['T6 fragment', T6, {}, 100, 0, [4]],
  ['T6 fragment, 4 full', T6, { 4: FULL }, 100, 0, [5]],
  ['T6 fragment, 4 and 5 full', T6, { 4: FULL, 5: FULL }, 100, 0, [0]],
  ['T6 fragment, 0, 4 and 5 full', T6, { 0: FULL, 4: FULL, 5: FULL }, 100, 0, [1]],
  ['T6 fragment, 4 and 5 full, 2 half', T6, { 2: 50, 4: FULL, 5: FULL }, 100, 0, [3]],
  ['T6 fragment, every GPU in use', T6, all(6, 10), 100, 0, []],
  ['T6 link 200', T6, {}, 200, 0, [0, 1]],
  ['T6 link 300', T6, {}, 300, 0, [0, 1, 2]],
  ['T6 link 400', T6, {}, 400, 0, [0, 1, 2, 3]],
  ['T6 link 500', T6, {}, 500, 0, [0, 1, 2, 3, 4]],
  ['T6 link 600', T6, {}, 600, 0, [0, 1, 2, 3, 4, 5]],
  ['T6 link 700', T6, {}, 700, 0, []],
  ['T6 link 200, 2 full', T6, { 2: FULL }, 200, 0, [0, 1]],
  ['T6 link 200, 0 and 2 full', T6, { 0: FULL, 2: FULL }, 200, 0, [4, 5]],
  ['T6 link 200, 0, 2 and 4 full', T6, { 0: FULL, 2: FULL, 4: FULL }, 200, 0, [1, 3]],
  ['T6 link 300, 0, 2 and 4 full', T6, { 0: FULL, 2: FULL, 4: FULL }, 300, 0, [1, 3, 5]],
  ['T6 link 200, 0 full', T6, { 0: FULL }, 200, 0, [2, 3]],
  ['T6 share without memory', T6, {}, 50, 0, [0]],
  ['T6 share 60, 0 half', T6, { 0: 50 }, 60, 0, [1]],
  ['T6 share, the half that is left', T6, { 0: 50 }, 50, 8 * GIB, [0]],
  ['T6 share, one byte more than is left', T6, { 0: 50 }, 50, 8 * GIB + 1, [1]],
  ['T6 share 20, 0 half and 3 at 70', T6, { 0: 50, 3: 70 }, 20, GIB, [3]],
  ['T6 share 40, 0 half and 3 at 70', T6, { 0: 50, 3: 70 }, 40, GIB, [0]],
  ['T6 share of more memory than a GPU has', T6, {}, 50, 17 * GIB, []],
  ['T8 link 200', T8, {}, 200, 0, [0, 1]],
  ['T8 link 400', T8, {}, 400, 0, [0, 1, 2, 3]],
  ['T8 link 500', T8, {}, 500, 0, [0, 1, 2, 3, 4]],
  ['T8 link 200, 0 full', T8, { 0: FULL }, 200, 0, [2, 3]],
  ['T8 link 300, 0 full', T8, { 0: FULL }, 300, 0, [1, 2, 3]],
  ['T8 link 400, 0 full', T8, { 0: FULL }, 400, 0, [4, 5, 6, 7]],
  ['T8 fragment', T8, {}, 100, 0, [0]],
  ['T8 fragment, 0 full', T8, { 0: FULL }, 100, 0, [1]],
  ['T8 fragment, 0, 1 and 2 full', T8, { 0: FULL, 1: FULL, 2: FULL }, 100, 0, [3]],
];

for (const [name, topology, used, cores, memoryBytes, expected] of VECTORS) {
  test(`placement makes the original's choice: ${name}`, (t) => {
    const placed = place(topology, slotsOf(topology.levels.length, used), { cores, memoryBytes });
    t.same(placed.ok ? placed.gpus.map((gpu) => gpu.index) : [], expected, placed.ok ? name : placed.reason);
    t.end();
  });
}

test('consecutive requests fill the machine as the original does', (t) => {
  const used: Record<number, number> = {};
  const take = (cores: number): readonly number[] => {
    const placed = place(T6, slotsOf(6, used), { cores, memoryBytes: 0 });
    if (!placed.ok) return [];
    for (const gpu of placed.gpus) used[gpu.index] = (used[gpu.index] ?? 0) + Math.min(cores, 100);
    return placed.gpus.map((gpu) => gpu.index);
  };
  t.same(take(300), [0, 1, 2]);
  const second = [...take(100), ...take(100)];
  t.same(second, [3, 4]);
  t.same(take(100), [5]);
  for (const index of second) used[index] = 0;
  t.same(take(50), [3]);
  t.same(take(60), [4]);
  t.same(take(50), [3]);
  used[4] = 0;
  t.same(take(100), [4]);
  t.same(take(1), []);
  t.end();
});
