import fc from 'fast-check';
import { test } from 'tap';
import type { Choice } from '../../../src/gpu/placement/choice.js';
import { originalFragment, originalLink } from '../../../src/gpu/placement/original.js';
import { place } from '../../../src/gpu/placement/place.js';
import { NVML_VALUE, type Level } from '../../../src/gpu/topology/level.js';
import { levelBetween, type Topology } from '../../../src/gpu/topology/topology.js';
import { buildTree } from '../../../src/gpu/topology/tree.js';
import { slotsOf } from '../topology/machines.js';
import { pcieTrees, situations } from '../topology/random-machines.js';
import { highestScore, scoreOpinion } from './exhaustive.js';

function choice(topology: Topology, free: readonly number[], count: number): Choice {
  const none = topology.levels.map(() => 0);
  return { free, nodeFree: free, must: [], count, needMemoryBytes: 0, memoryBytes: none, processCounts: none };
}

/**
 * The original's tree in its own terms: nodes are level and mask; for every pair, the first node of its level that
 * intersects it includes it, or a new node is made; the parent of a node is the first node of a higher level that
 * intersects it.
 */
class MaskTree {
  readonly nodes: { readonly level: Level; readonly mask: Set<number> }[] = [];
  readonly #count: number;

  constructor(topology: Topology) {
    this.#count = topology.levels.length;
    for (let a = 0; a < this.#count; a++) {
      for (let b = a + 1; b < this.#count; b++) {
        const level = levelBetween(topology, a, b);
        const node = this.nodes.find((known) => known.level === level && (known.mask.has(a) || known.mask.has(b)));
        if (node === undefined) this.nodes.push({ level, mask: new Set([a, b]) });
        else node.mask.add(a).add(b);
      }
    }
  }

  /** Masks that contain a leaf, nearest level first. */
  above(leaf: number): ReadonlySet<number>[] {
    let mask: ReadonlySet<number> = new Set([leaf]);
    const found: ReadonlySet<number>[] = [];
    for (const level of ['PIX', 'PXB', 'PHB', 'NODE', 'SYS'] as const) {
      const next = this.nodes.find(
        (node) => node.level === level && [...mask].some((position) => node.mask.has(position)),
      );
      if (next === undefined) continue;
      mask = next.mask;
      found.push(mask);
    }
    return found;
  }

  levelOf(mask: ReadonlySet<number>): number {
    return NVML_VALUE[this.nodes.find((node) => node.mask === mask)?.level ?? 'SYS'];
  }
}

const sorted = (mask: ReadonlySet<number>, free: readonly number[]): number[] =>
  free.filter((position) => mask.has(position));

/**
 * The original's Link, word by word: each leaf climbs to the first group with enough free GPUs; of the groups found,
 * level, free GPUs, then the lowest.
 */
function linkInWords(topology: Topology, free: readonly number[], count: number): number[] | null {
  const tree = new MaskTree(topology);
  const groups = [...topology.levels.keys()].flatMap(
    (leaf) => tree.above(leaf).find((mask) => sorted(mask, free).length >= count) ?? [],
  );
  const order = (mask: ReadonlySet<number>) => [
    tree.levelOf(mask),
    sorted(mask, free).length,
    sorted(mask, free)[0] ?? 0,
  ];
  const best = [...new Set(groups)].sort(
    (a, b) =>
      order(a)
        .map((key, at) => key - (order(b)[at] ?? 0))
        .find((difference) => difference !== 0) ?? 0,
  )[0];
  const from = best === undefined ? free : sorted(best, free);
  return from.length < count ? null : from.slice(0, count);
}

test('the choice of several GPUs is the one that the original describes, on any machine that is a tree', (t) => {
  fc.assert(
    fc.property(situations(pcieTrees(10)), ({ topology, free, count }) => {
      const expected = linkInWords(topology, free, count);
      return String(originalLink(buildTree(topology), choice(topology, free, count))) === String(expected);
    }),
    { numRuns: 400 },
  );
  t.pass('the test compares 400 situations');
  t.end();
});

test('a single GPU comes from the smallest group at every level on the way down', (t) => {
  fc.assert(
    fc.property(situations(pcieTrees(10)), ({ topology, free }) => {
      const chosen = originalFragment(buildTree(topology), choice(topology, free, 1))?.[0];
      if (chosen === undefined) return free.length === 0;
      let nodes = buildTree(topology);
      for (;;) {
        const groups = nodes
          .filter((node) => node.children.length > 0)
          .map((node) => sorted(new Set(node.positions), free));
        const open = groups.filter((group) => group.length > 0);
        if (open.length === 0) return free.includes(chosen);
        const taken = open.find((group) => group.includes(chosen));
        if (taken === undefined || open.some((group) => group.length < taken.length)) return false;
        nodes = nodes.find((node) => node.positions.includes(chosen) && node.children.length > 0)?.children ?? [];
      }
    }),
    { numRuns: 400 },
  );
  t.pass('the test compares 400 situations');
  t.end();
});

test("where only PCIe differs, placement chooses the original's set whenever that set is among the best", (t) => {
  let followed = 0;
  fc.assert(
    fc.property(situations(pcieTrees(9)), ({ topology, free, count }) => {
      const usual = linkInWords(topology, free, count);
      if (usual === null || count === 1) return true;
      const slots = slotsOf(topology.levels.length).map((slot, at) => ({
        ...slot,
        freeCores: free.includes(at) ? 100 : 0,
      }));
      const placed = place(topology, slots, { cores: count * 100, memoryBytes: 0 });
      if (!placed.ok) return false;
      const chosen = placed.gpus.map((gpu) => gpu.index);
      const best = highestScore(topology, free, count);
      if (scoreOpinion(topology, usual) < best) return scoreOpinion(topology, chosen) === best;
      followed++;
      return String(chosen) === String(usual);
    }),
    { numRuns: 400 },
  );
  t.ok(followed > 50, `placement chose the original's set ${followed} times`);
  t.end();
});

test('of groups of the same size, less busy groups come first', (t) => {
  const topology = buildTree({
    levels: [
      ['X', 'PIX', 'SYS', 'SYS'],
      ['PIX', 'X', 'SYS', 'SYS'],
      ['SYS', 'SYS', 'X', 'PIX'],
      ['SYS', 'SYS', 'PIX', 'X'],
    ],
    nvlinks: [
      [0, 0, 0, 0],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ],
  });
  const base = { free: [0, 1, 2, 3], nodeFree: [0, 1, 2, 3], must: [], needMemoryBytes: 0, memoryBytes: [0, 0, 0, 0] };
  t.same(originalLink(topology, { ...base, count: 2, processCounts: [0, 3, 1, 1] }), [2, 3]);
  t.same(originalFragment(topology, { ...base, count: 1, processCounts: [0, 3, 1, 1] }), [2]);
  t.same(originalLink(topology, { ...base, count: 2, must: [1], processCounts: [0, 3, 1, 1] }), [0, 1]);
  t.equal(originalLink(topology, { ...base, count: 5, processCounts: [0, 0, 0, 0] }), null);
  t.end();
});
