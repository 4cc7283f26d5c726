import { test } from 'tap';
import { printGraph } from '../../../src/gpu/topology/graph.js';
import { CUBE_MESH, GIB, T1, T6, T8, gpuAt, slotsOf } from './machines.js';

const GOLDEN = `ROOT:4
|---CPU (aval: 4, pids: [], usedMemory: 0, totalMemory: 0, allocatableCores: 0, allocatableMemory: 0)
|   |---PIX (aval: 1, pids: [], usedMemory: 0, totalMemory: 0, allocatableCores: 0, allocatableMemory: 0)
|   |   |---GPU4 (pids: [], usedMemory: 0, totalMemory: 17179869184, allocatableCores: 0, allocatableMemory: 0)
|   |   |---GPU5 (pids: [], usedMemory: 0, totalMemory: 17179869184, allocatableCores: 100, allocatableMemory: 17179869184)
|   |---PHB (aval: 3, pids: [], usedMemory: 0, totalMemory: 0, allocatableCores: 0, allocatableMemory: 0)
|   |   |---PIX (aval: 1, pids: [], usedMemory: 0, totalMemory: 0, allocatableCores: 0, allocatableMemory: 0)
|   |   |   |---GPU0 (pids: [], usedMemory: 0, totalMemory: 17179869184, allocatableCores: 50, allocatableMemory: 8589934592)
|   |   |   |---GPU1 (pids: [], usedMemory: 0, totalMemory: 17179869184, allocatableCores: 100, allocatableMemory: 17179869184)
|   |   |---PIX (aval: 2, pids: [], usedMemory: 0, totalMemory: 0, allocatableCores: 0, allocatableMemory: 0)
|   |   |   |---GPU2 (pids: [], usedMemory: 0, totalMemory: 17179869184, allocatableCores: 100, allocatableMemory: 17179869184)
|   |   |   |---GPU3 (pids: [], usedMemory: 0, totalMemory: 17179869184, allocatableCores: 100, allocatableMemory: 17179869184)
`;

test('the graph of a partly used machine reads as the original prints it', (t) => {
  t.equal(printGraph(T6, slotsOf(6, { 0: 50, 4: 100 })), GOLDEN);
  t.end();
});

test('a single GPU is a child of the root, and a machine without GPUs has only the root', (t) => {
  t.equal(
    printGraph(T1, slotsOf(1)),
    'ROOT:1\n|---GPU0 (pids: [], usedMemory: 0, totalMemory: 17179869184, allocatableCores: 100, allocatableMemory: 17179869184)\n',
  );
  t.equal(printGraph({ levels: [], nvlinks: [] }, []), 'ROOT:0\n');
  t.end();
});

test('samples appear at the GPU and are added up in the groups above', (t) => {
  const usage = Array.from({ length: 8 }, (_, position) => ({
    pids: position === 0 ? [11, 12] : position === 2 ? [13] : [],
    usedMemoryBytes: position === 0 ? 2 * GIB : position === 2 ? GIB : 0,
  }));
  const graph = printGraph(T8, slotsOf(8), { usage });
  t.match(graph, '|---GPU0 (pids: [11 12], usedMemory: 2147483648, ');
  t.match(graph, `|---PXB (aval: 4, pids: [11 12 13], usedMemory: ${3 * GIB}, totalMemory: ${64 * GIB}, `);
  t.match(graph, `|---CPU (aval: 8, pids: [11 12 13], usedMemory: ${3 * GIB}, totalMemory: ${128 * GIB}, `);
  t.end();
});

test('unhealthy GPUs count as unavailable', (t) => {
  const slots = slotsOf(1).map((slot) => ({ ...slot, usable: false }));
  t.match(printGraph(T1, slots), /^ROOT:0\n/);
  t.end();
});

test('the extended graph shows NVLinks by GPU index, the model, and the GPUs that may be chosen', (t) => {
  const slots = slotsOf(8).map((slot, at) => ({ ...slot, gpu: gpuAt(at), usable: at !== 5 }));
  const graph = printGraph(CUBE_MESH, slots, { extended: true });
  t.match(graph, 'nvlinks: [GPU1:1 GPU2:1 GPU3:2 GPU4:2], model: Tesla V100-SXM2-16GB, usable: true)');
  t.match(graph, 'nvlinks: [GPU1:2 GPU4:1 GPU6:2 GPU7:1], model: Tesla V100-SXM2-16GB, usable: false)');
  t.notMatch(printGraph(CUBE_MESH, slots), 'nvlinks');
  t.end();
});

test('slots of another machine cause an exception', (t) => {
  t.throws(() => printGraph(T6, slotsOf(5)), RangeError);
  t.end();
});
