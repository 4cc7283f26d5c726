import { test } from 'tap';
import { whatIf } from '../../../src/gpu/placement/what-if.js';
import { CUBE_MESH, gpuAt, slotsOf } from '../topology/machines.js';

test('the answer for each count has its set, score and pairs', (t) => {
  const slots = slotsOf(8, { 0: 100, 3: 100 });
  t.same(whatIf(CUBE_MESH, slots, [2, 7]), [
    { count: 2, gpus: [1, 2], score: 200, pairs: ['GPU1-GPU2 NV2'], approximate: false },
    null,
  ]);
  t.same(
    whatIf(CUBE_MESH, slots, [1]).map((answer) => [answer?.gpus.length, answer?.score, answer?.pairs]),
    [[1, 0, []]],
  );
  t.end();
});

test('the answer names GPUs by index, whatever their position', (t) => {
  const slots = slotsOf(8).map((slot, at) => ({ ...slot, gpu: gpuAt(at * 2 + 1), usable: at === 4 || at === 7 }));
  t.same(whatIf(CUBE_MESH, slots, [2]), [
    { count: 2, gpus: [9, 15], score: 200, pairs: ['GPU9-GPU15 NV2'], approximate: false },
  ]);
  t.end();
});
