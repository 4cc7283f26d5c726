import fc from 'fast-check';
import { test } from 'tap';
import { LEVELS, NVML_VALUE, levelOfLabel, levelOfNvml, nearer } from '../../../src/gpu/topology/level.js';
import {
  hasNvlink,
  levelBetween,
  linksBetween,
  subTopology,
  topologyOfPairs,
  uniformTopology,
  type Topology,
} from '../../../src/gpu/topology/topology.js';
import { buildTree, isLeaf, type TreeNode } from '../../../src/gpu/topology/tree.js';
import { CUBE_MESH, T1, T6, T8, pcieMachine } from './machines.js';

const shape = (nodes: readonly TreeNode[]): unknown =>
  nodes.map((node) => (isLeaf(node) ? node.positions[0] : [node.level, shape(node.children)]));

test('the tree has a node for each group of GPUs that share a level', (t) => {
  t.same(shape(buildTree(T6)), [
    [
      'NODE',
      [
        [
          'PHB',
          [
            ['PIX', [0, 1]],
            ['PIX', [2, 3]],
          ],
        ],
        ['PIX', [4, 5]],
      ],
    ],
  ]);
  t.same(shape(buildTree(T8)), [
    [
      'NODE',
      [
        [
          'PXB',
          [
            ['PIX', [0, 1]],
            ['PIX', [2, 3]],
          ],
        ],
        [
          'PXB',
          [
            ['PIX', [4, 5]],
            ['PIX', [6, 7]],
          ],
        ],
      ],
    ],
  ]);
  t.same(shape(buildTree(T1)), [0]);
  t.same(shape(buildTree(uniformTopology(0))), []);
  t.same(shape(buildTree(uniformTopology(3, 'PHB'))), [['PHB', [0, 1, 2]]]);
  t.end();
});

test('an inconsistent matrix still gives a tree, in which the nearest path counts', (t) => {
  const chain = topologyOfPairs(4, (a, b) => ({ level: b - a === 1 ? 'PIX' : 'SYS', nvlinks: 0 }));
  t.same(shape(buildTree(chain)), [['PIX', [0, 1, 2, 3]]]);
  const bridged = topologyOfPairs(4, (a, b) => ({
    level: a === 0 && b === 3 ? 'PIX' : a === 1 && b === 2 ? 'PIX' : b - a === 1 ? 'PHB' : 'SYS',
    nvlinks: 0,
  }));
  t.same(shape(buildTree(bridged)), [
    [
      'PHB',
      [
        ['PIX', [0, 3]],
        ['PIX', [1, 2]],
      ],
    ],
  ]);
  t.end();
});

const anyTopology: fc.Arbitrary<Topology> = fc
  .integer({ min: 0, max: 10 })
  .chain((count) =>
    fc
      .array(fc.constantFrom(...LEVELS.slice(1)), { minLength: count * count, maxLength: count * count })
      .map((levels) => topologyOfPairs(count, (a, b) => ({ level: levels[a * count + b] ?? 'SYS', nvlinks: 0 }))),
  );

test('for any matrix, every GPU is in the tree once, and nodes grow towards the root', (t) => {
  fc.assert(
    fc.property(anyTopology, (topology) => {
      const leaves: number[] = [];
      const check = (node: TreeNode): boolean => {
        if (isLeaf(node)) {
          leaves.push(node.positions[0] as number);
          return node.positions.length === 1 && node.children.length === 0;
        }
        const below = node.children.flatMap((child) => child.positions).sort((a, b) => a - b);
        const ordered = node.children.every((child) => nearer(child.level, node.level));
        return (
          node.children.length > 1 && ordered && String(below) === String(node.positions) && node.children.every(check)
        );
      };
      const tops = buildTree(topology);
      const whole = tops.every(check) && tops.length === Math.min(1, topology.levels.length);
      return whole && String(leaves.sort((a, b) => a - b)) === String([...topology.levels.keys()]);
    }),
    { numRuns: 300 },
  );
  t.pass('the test covers 300 matrices');
  t.end();
});

test('in a machine that is a tree, two GPUs meet at the level of their pair', (t) => {
  for (const topology of [T6, T8, pcieMachine(5, ['PXB', [0, 2, 4]], ['PIX', [0, 4]])]) {
    const meet = (nodes: readonly TreeNode[], a: number, b: number): string => {
      const node = nodes.find((candidate) => candidate.positions.includes(a) && candidate.positions.includes(b));
      if (node === undefined) return '';
      return meet(node.children, a, b) || node.level;
    };
    for (const a of topology.levels.keys()) {
      for (const b of topology.levels.keys())
        if (a !== b) t.equal(meet(buildTree(topology), a, b), levelBetween(topology, a, b));
    }
  }
  t.end();
});

test('levels have the numbers of NVML', (t) => {
  for (const level of LEVELS.slice(1)) t.equal(levelOfNvml(NVML_VALUE[level]), level);
  t.equal(levelOfNvml(0), 'PIX', 'the two GPUs are on one board');
  t.equal(levelOfNvml(60), null);
  t.equal(levelOfLabel('SOC'), 'SYS');
  t.equal(levelOfLabel('NV2'), null);
  t.end();
});

test('a part of a machine keeps the links of the whole machine', (t) => {
  const part = subTopology(CUBE_MESH, [7, 4, 0]);
  t.same(part.nvlinks, [
    [0, 2, 0],
    [2, 0, 2],
    [0, 2, 0],
  ]);
  t.equal(part.levels[0]?.[1], 'NODE');
  t.ok(hasNvlink(part));
  t.notOk(hasNvlink(subTopology(CUBE_MESH, [0, 7])));
  t.throws(() => levelBetween(part, 0, 3), RangeError);
  t.throws(() => linksBetween(part, 3, 0), RangeError);
  t.end();
});
