import fc from 'fast-check';
import { test } from 'tap';
import { bestPartition, linkDomains, linkGroups, takingOrder } from '../../../src/gpu/claims/linked-sets.js';
import { setScore } from '../../../src/gpu/placement/score.js';
import { LEVELS } from '../../../src/gpu/topology/level.js';
import { topologyOfPairs, uniformTopology, type Topology } from '../../../src/gpu/topology/topology.js';

/** Every partition into sets of `count`, with GPUs left over: the slow and obvious algorithm. */
function bestScore(topology: Topology, free: readonly number[], count: number): number {
  if (free.length < count) return 0;
  const [first = 0, ...others] = free;
  let best = free.length % count === 0 ? -1 : bestScore(topology, others, count);
  const choose = (from: number, chosen: readonly number[]): void => {
    if (chosen.length === count) {
      const rest = others.filter((position) => !chosen.includes(position));
      best = Math.max(best, setScore(topology, chosen) + bestScore(topology, rest, count));
      return;
    }
    for (let at = from; at < others.length; at++) choose(at + 1, [...chosen, others[at] as number]);
  };
  choose(0, [first]);
  return best;
}

const topologies = fc
  .tuple(
    fc.integer({ min: 2, max: 7 }),
    fc.array(fc.tuple(fc.constantFrom(...LEVELS.slice(1)), fc.integer({ min: 0, max: 2 })), {
      minLength: 21,
      maxLength: 21,
    }),
  )
  .map(([count, pairs]) =>
    topologyOfPairs(count, (a, b) => {
      const [level, nvlinks] = pairs[(a * 7 + b) % pairs.length] ?? ['SYS', 0];
      return { level, nvlinks };
    }),
  );

test('the partition into linked sets has the highest score of all partitions', (t) => {
  fc.assert(
    fc.property(topologies, fc.constantFrom(2, 4), (topology, count) => {
      const gpus = topology.levels.length;
      const sets = bestPartition(topology, count);
      const all = sets.flat();
      if (new Set(all).size !== all.length || sets.some((set) => set.length !== count)) return false;
      if (gpus >= count && sets.length !== Math.floor(gpus / count)) return false;
      const score = sets.reduce((sum, set) => sum + setScore(topology, set), 0);
      return score === bestScore(topology, [...topology.levels.keys()], count);
    }),
    { numRuns: 300 },
  );
  t.end();
});

test('GPUs without near partners are in no group', (t) => {
  t.same(linkGroups(uniformTopology(4, 'SYS'), 2), [null, null, null, null]);
  t.same(linkGroups(uniformTopology(4, 'PIX'), 2), [0, 0, 1, 1]);
  t.same(linkGroups(uniformTopology(3, 'PIX'), 4), [null, null, null]);
  t.end();
});

test('an HGX board of eight GPUs is one group, and a board of sixteen is two', (t) => {
  const board = topologyOfPairs(16, (a, b) => ({
    level: 'SYS',
    nvlinks: Math.floor(a / 8) === Math.floor(b / 8) ? 18 : 0,
  }));
  t.same(linkGroups(board, 8), [...new Array<number>(8).fill(0), ...new Array<number>(8).fill(1)]);
  t.same(linkDomains(board), [...new Array<number>(8).fill(0), ...new Array<number>(8).fill(1)]);
  t.end();
});

test('single GPUs are taken so that a pair outlasts a GPU without a partner', (t) => {
  const topology = topologyOfPairs(5, (a, b) => ({ level: 'SYS', nvlinks: a % 2 === 0 && b === a + 1 ? 4 : 0 }));
  const order = takingOrder(topology);
  t.equal(order[0], 4, 'the GPU without a partner is taken first');
  t.same([...order].sort(), [0, 1, 2, 3, 4]);
  const pairOf = (position: number): number => Math.floor(position / 2);
  t.equal(pairOf(order[1] as number), pairOf(order[2] as number), 'one pair is broken before the other one is used');
  t.end();
});
