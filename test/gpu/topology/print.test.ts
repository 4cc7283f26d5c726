import { test } from 'tap';
import { parseMatrix } from '../../../src/gpu/topology/matrix-text.js';
import { pairLabel, printMatrix } from '../../../src/gpu/topology/matrix-print.js';
import { printTree } from '../../../src/gpu/topology/tree-print.js';
import { CUBE_MESH, T1, T3, T6, T8 } from './machines.js';

test('a printed matrix is read back, names included', (t) => {
  for (const topology of [T1, T3, T6, T8]) {
    const indexes = topology.levels.map((_, position) => position * 2 + 1);
    const parsed = parseMatrix(printMatrix(topology, indexes));
    t.ok(parsed.ok && parsed.gpus.map((gpu) => gpu.index).join() === indexes.join());
    t.same(parsed.ok ? parsed.topology : null, topology);
  }
  const meshed = parseMatrix(printMatrix(CUBE_MESH, [0, 1, 2, 3, 4, 5, 6, 7]));
  t.same(meshed.ok ? meshed.topology.nvlinks : null, CUBE_MESH.nvlinks);
  t.end();
});

test('a matrix is printed in columns', (t) => {
  t.equal(
    printMatrix(T3, [0, 1, 2]),
    '      GPU0  GPU1  GPU2\nGPU0   X    NODE  NODE\nGPU1  NODE   X    PIX\nGPU2  NODE  PIX    X\n',
  );
  t.throws(() => printMatrix(T3, [0, 1]), RangeError);
  t.end();
});

test('a pair shows its NVLinks before its PCIe level', (t) => {
  t.equal(pairLabel(CUBE_MESH, 0, 3), 'NV2');
  t.equal(pairLabel(CUBE_MESH, 0, 7), 'SYS');
  t.equal(pairLabel(CUBE_MESH, 2, 2), 'X');
  t.end();
});

test('a tree shows levels and the name of each GPU', (t) => {
  t.equal(
    printTree(T3, (position) => `GPU ${position}`),
    '|---NODE\n|   |---GPU 0\n|   |---PIX\n|   |   |---GPU 1\n|   |   |---GPU 2\n',
  );
  t.equal(
    printTree(T1, () => 'alone'),
    '|---alone\n',
  );
  t.equal(
    printTree({ levels: [], nvlinks: [] }, () => ''),
    '',
  );
  t.end();
});
