import fc from 'fast-check';
import { test } from 'tap';
import { place } from '../../../src/gpu/placement/place.js';
import { CUBE_MESH, GIB, T8, slotsOf } from '../topology/machines.js';

const anyNode = fc.record({
  topology: fc.constantFrom(T8, CUBE_MESH),
  used: fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 8, maxLength: 8 }),
  sick: fc.subarray([0, 1, 2, 3, 4, 5, 6, 7], { maxLength: 3 }),
  cores: fc.integer({ min: 1, max: 99 }),
  gib: fc.integer({ min: 0, max: 16 }),
});

test('a part of a GPU goes to the GPU with room that has the fewest free cores', (t) => {
  fc.assert(
    fc.property(anyNode, ({ topology, used, sick, cores, gib }) => {
      const slots = slotsOf(8, { ...used }).map((slot, at) => ({ ...slot, usable: !sick.includes(at) }));
      const fitting = slots.filter(
        (slot) => slot.usable && slot.freeCores >= cores && slot.freeMemoryBytes >= gib * GIB,
      );
      const placed = place(topology, slots, { cores, memoryBytes: gib * GIB });
      if (!placed.ok) return fitting.length === 0;
      const chosen = fitting.find((slot) => slot.gpu.index === placed.gpus[0]?.index);
      return (
        placed.gpus.length === 1 && chosen !== undefined && fitting.every((slot) => slot.freeCores >= chosen.freeCores)
      );
    }),
    { numRuns: 500 },
  );
  t.pass('the test compares 500 nodes');
  t.end();
});

test('of GPUs with equal cores placement takes the one with less memory left, then the less busy one, then the lowest', (t) => {
  const slots = slotsOf(8, { 2: 50, 3: 50, 4: 50, 5: 50 }).map((slot, at) => ({
    ...slot,
    freeMemoryBytes: at === 2 ? slot.freeMemoryBytes : Math.min(slot.freeMemoryBytes, 6 * GIB),
    processCount: at === 3 ? 2 : 1,
  }));
  const ask = (gib: number) => {
    const placed = place(T8, slots, { cores: 20, memoryBytes: gib * GIB });
    return placed.ok ? placed.gpus.map((gpu) => gpu.index) : [];
  };
  t.same(ask(1), [4]);
  t.same(ask(7), [2]);
  t.end();
});

test('GPUs are compared by whole blocks of memory', (t) => {
  const slots = slotsOf(8, { 2: 50, 3: 50 }).map((slot, at) =>
    at === 3 ? { ...slot, freeMemoryBytes: slot.freeMemoryBytes + 1000 } : slot,
  );
  const placed = place(T8, slots, { cores: 20, memoryBytes: GIB });
  t.ok(placed.ok && placed.gpus[0]?.index === 2);
  t.end();
});

test('a part of a GPU that is bound to a GPU stays there or is refused', (t) => {
  const slots = slotsOf(8, { 0: 50, 5: 90 });
  const on = (index: number, cores: number) => place(T8, slots, { cores, memoryBytes: 0 }, { mustInclude: [index] });
  const first = on(5, 10);
  t.ok(first.ok && first.gpus[0]?.index === 5);
  t.notOk(on(5, 11).ok);
  t.end();
});

test('a part of a GPU goes to the predicted GPU while that has room', (t) => {
  const slots = slotsOf(8, { 0: 50, 5: 90 });
  const predicted = (cores: number) => {
    const placed = place(T8, slots, { cores, memoryBytes: 0 }, { hint: [5] });
    return placed.ok ? placed.gpus[0]?.index : null;
  };
  t.equal(predicted(10), 5);
  t.equal(predicted(11), 0);
  t.end();
});
