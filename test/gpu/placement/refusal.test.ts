import { test } from 'tap';
import { place, type Placement } from '../../../src/gpu/placement/place.js';
import { GIB, T6, slotsOf } from '../topology/machines.js';

const said = (placed: Placement): string =>
  placed.ok ? `chose ${placed.gpus.map((gpu) => gpu.index).join(', ')}` : `${placed.code}: ${placed.reason}`;

test('a refused part of a GPU is named with the request and the room of the best GPU', (t) => {
  const slots = slotsOf(6, { 0: 60, 1: 70, 2: 100, 3: 100, 4: 100, 5: 100 });
  t.equal(
    said(place(T6, slots, { cores: 50, memoryBytes: 4 * GIB })),
    'does-not-fit: asked for 50 cores and 4096 MiB on one GPU; the best, GPU 0, has 40 cores and 6553 MiB free',
  );
  t.equal(
    said(place(T6, slotsOf(6), { cores: 50, memoryBytes: 20 * GIB })),
    'does-not-fit: asked for 50 cores and 20480 MiB on one GPU; the best, GPU 0, has 100 cores and 16384 MiB free',
  );
  t.end();
});

test('a refusal of whole GPUs names the free ones', (t) => {
  t.equal(
    said(place(T6, slotsOf(6, { 0: 10, 2: 100, 3: 100, 4: 100 }), { cores: 300, memoryBytes: 0 })),
    'does-not-fit: asked for 3 whole GPUs; 2 of 6 are free (1 with 16384 MiB, 5 with 16384 MiB)',
  );
  t.equal(
    said(place(T6, slotsOf(6, { 1: 10, 2: 10, 3: 10, 4: 10, 5: 10 }), { cores: 100, memoryBytes: 17 * GIB })),
    'does-not-fit: asked for 1 whole GPU with 17408 MiB together; 1 of 6 is free (0 with 16384 MiB)',
  );
  t.end();
});

test('a refusal names the options that limited the choice', (t) => {
  const sick = slotsOf(6).map((slot) => ({ ...slot, usable: slot.gpu.index !== 1 }));
  t.equal(
    said(place(T6, sick, { cores: 200, memoryBytes: 0 }, { among: [0, 1], mustInclude: [0] })),
    'does-not-fit: asked for 2 whole GPUs; 1 of 6 is free (0 with 16384 MiB); only 0, 1 may be chosen; 0 has to be part; 1 is unhealthy or excluded',
  );
  t.equal(
    said(place(T6, sick, { cores: 20, memoryBytes: GIB }, { among: [1] })),
    'does-not-fit: asked for 20 cores and 1024 MiB on one GPU; none may be chosen; only 1 may be chosen; 1 is unhealthy or excluded',
  );
  t.equal(
    said(place(T6, slotsOf(6), { cores: 20, memoryBytes: GIB }, { mustInclude: [0, 1] })),
    'does-not-fit: asked for 20 cores and 1024 MiB on one GPU; the best, GPU 0, has 100 cores and 16384 MiB free; 0, 1 has to be part',
  );
  t.end();
});

test('a refusal of cores that are neither a part nor whole GPUs states the rule', (t) => {
  for (const cores of [0, -1, 0.5, 101, 150, Number.NaN]) {
    t.equal(
      said(place(T6, slotsOf(6), { cores, memoryBytes: GIB })),
      `invalid-cores: asked for ${cores} cores: a part of a GPU is 1 to 99, whole GPUs are a multiple of 100`,
    );
  }
  t.end();
});

test('a machine without GPUs refuses every request', (t) => {
  const none = { levels: [], nvlinks: [] };
  t.equal(
    said(place(none, [], { cores: 100, memoryBytes: 0 })),
    'does-not-fit: asked for 1 whole GPU; 0 of 0 are free',
  );
  t.equal(
    said(place(none, [], { cores: 10, memoryBytes: GIB })),
    'does-not-fit: asked for 10 cores and 1024 MiB on one GPU; none may be chosen',
  );
  t.end();
});

test('slots of another machine cause an exception', (t) => {
  t.throws(() => place(T6, slotsOf(5), { cores: 100, memoryBytes: 0 }), RangeError);
  t.end();
});
