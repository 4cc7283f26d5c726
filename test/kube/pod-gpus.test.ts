import { test } from 'tap';
import { gpusNamedFor, namingAnnotations, presentIndexes } from '../../src/kube/pod-gpus.js';

const UUIDS = ['GPU-aaaa', 'MIG-GPU-bbbb/1/0'];

test('annotations that name GPUs are read as they were written', (t) => {
  for (const named of [{ indexes: [0, 11], uuids: UUIDS }, { indexes: [4] }]) {
    const annotations = namingAnnotations({ container: 2, ...named });
    t.same(
      gpusNamedFor((key) => annotations[key], 2),
      named,
    );
    t.equal(
      gpusNamedFor((key) => annotations[key], 1),
      null,
    );
  }
  t.end();
});

test('UUIDs count only beside the indexes that they were written with', (t) => {
  const annotations = namingAnnotations({ container: 0, indexes: [0, 1], uuids: UUIDS });
  const read = (differing: Readonly<Record<string, string>>) =>
    gpusNamedFor((key) => ({ ...annotations, ...differing })[key], 0);
  t.same(read({ 'tencent.com/predicate-gpu-idx-0': '0,2' }), { indexes: [0, 2] }, 'another program wrote the indexes');
  for (const wrong of ['', '0:GPU-aaaa', '0:GPU-aaaa,1:', '0:GPU-aaaa,x', '0:GPU-aaaa,1:GPU b', ','.repeat(1000)])
    t.same(read({ 'tencent.com/predicate-gpu-uuid-0': wrong }), { indexes: [0, 1] }, wrong);
  t.equal(read({ 'tencent.com/predicate-gpu-idx-0': 'x' }), null);
  t.end();
});

test('a GPU is known by its UUID where the driver numbers GPUs anew', (t) => {
  const gpus = [
    { index: 0, uuid: 'GPU-b' },
    { index: 1, uuid: 'GPU-c' },
  ];
  t.same(presentIndexes({ indexes: [1], uuids: ['GPU-b'] }, gpus), [0]);
  t.same(presentIndexes({ indexes: [0], uuids: ['GPU-a'] }, gpus), [], 'it was taken out');
  t.same(presentIndexes({ indexes: [1] }, gpus), [1]);
  t.end();
});
