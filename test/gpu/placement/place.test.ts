import fc from 'fast-check';
import { test } from 'tap';
import { place } from '../../../src/gpu/placement/place.js';
import type { PlacementOptions } from '../../../src/gpu/placement/request.js';
import type { GpuSlot } from '../../../src/gpu/placement/slot.js';
import { BRIDGED, CUBE_MESH, GIB, T8, switched, slotsOf } from '../topology/machines.js';
import { subsets } from './exhaustive.js';

const ALL = [0, 1, 2, 3, 4, 5, 6, 7];

/** A node of eight GPUs of two sizes in any state, whose indexes have gaps, and a request with any options. */
const anySituation = fc.record({
  topology: fc.constantFrom(T8, CUBE_MESH, BRIDGED, switched(8, 4)),
  cards: fc.array(
    fc.record({
      usedCores: fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 1, max: 100 })),
      large: fc.boolean(),
      processCount: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3 })),
      usable: fc.oneof(fc.constant(true), fc.constant(true), fc.boolean()),
    }),
    { minLength: 8, maxLength: 8 },
  ),
  cores: fc.oneof(
    fc.integer({ min: 1, max: 99 }),
    fc.integer({ min: 1, max: 8 }).map((count) => count * 100),
  ),
  gib: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 90 })),
  hint: fc.option(fc.subarray(ALL), { nil: undefined }),
  among: fc.option(fc.subarray(ALL), { nil: undefined }),
  mustInclude: fc.option(fc.subarray(ALL, { maxLength: 2 }), { nil: undefined }),
});

function nodeOf(
  gpus: readonly { usedCores: number; large: boolean; processCount: number; usable: boolean }[],
): GpuSlot[] {
  return slotsOf(gpus.length).map((slot, at) => {
    const card = gpus[at] ?? { usedCores: 0, large: false, processCount: 0, usable: true };
    const memoryBytes = (card.large ? 80 : 16) * GIB;
    return {
      gpu: { ...slot.gpu, index: at * 3 + 1, memoryBytes },
      freeCores: 100 - card.usedCores,
      freeMemoryBytes: (memoryBytes * (100 - card.usedCores)) / 100,
      processCount: card.processCount,
      usable: card.usable,
    };
  });
}

/** Whether a set of positions can serve, in the plainest form. */
function canServe(slots: readonly GpuSlot[], set: readonly number[], cores: number, memoryBytes: number): boolean {
  const chosen = set.map((position) => slots[position] as GpuSlot);
  if (chosen.some((slot) => !slot.usable)) return false;
  if (cores < 100)
    return (
      chosen.length === 1 && chosen.every((slot) => slot.freeCores >= cores && slot.freeMemoryBytes >= memoryBytes)
    );
  return (
    chosen.every((slot) => slot.freeCores === 100) &&
    chosen.reduce((sum, slot) => sum + slot.freeMemoryBytes, 0) >= memoryBytes
  );
}

test('every placement serves the request and respects its options, and a refusal means that no set can serve', (t) => {
  let [placedCount, refusedCount] = [0, 0];
  fc.assert(
    fc.property(anySituation, ({ topology, cards: gpus, cores, gib, hint, among, mustInclude }) => {
      const slots = nodeOf(gpus);
      const indexOf = (position: number) => (slots[position] as GpuSlot).gpu.index;
      const options: PlacementOptions = {
        ...(hint === undefined ? {} : { hint: hint.map(indexOf) }),
        ...(among === undefined ? {} : { among: among.map(indexOf) }),
        ...(mustInclude === undefined ? {} : { mustInclude: mustInclude.map(indexOf) }),
      };
      const count = Math.max(1, cores / 100);
      const allowed = subsets(among ?? ALL, cores < 100 ? 1 : count).filter((set) =>
        (mustInclude ?? []).every((position) => set.includes(position)),
      );
      const serving = allowed.filter((set) => canServe(slots, set, cores, gib * GIB));
      const placed = place(topology, slots, { cores, memoryBytes: gib * GIB }, options);
      if (!placed.ok) {
        refusedCount++;
        return serving.length === 0 && placed.reason.startsWith('asked for ') && !placed.reason.includes('\n');
      }
      placedCount++;
      const positions = placed.gpus
        .map((gpu) => slots.findIndex((slot) => slot.gpu.uuid === gpu.uuid))
        .sort((a, b) => a - b);
      if (!serving.some((set) => String(set) === String(positions))) return false;
      // A prediction that is a complete answer is the answer.
      const predicted = [...(hint ?? [])].sort((a, b) => a - b);
      return !serving.some((set) => String(set) === String(predicted)) || String(positions) === String(predicted);
    }),
    { numRuns: 1500 },
  );
  t.ok(placedCount > 200 && refusedCount > 200, `placement placed ${placedCount} requests and refused ${refusedCount}`);
  t.end();
});

test('GPUs without foreign processes come before GPUs with them, as long as they suffice', (t) => {
  fc.assert(
    fc.property(anySituation, ({ topology, cards: gpus, cores }) => {
      if (cores < 100) return true;
      const slots = nodeOf(gpus);
      const quiet = slots.filter((slot) => slot.usable && slot.freeCores === 100 && slot.processCount === 0);
      const placed = place(topology, slots, { cores, memoryBytes: 0 });
      if (!placed.ok || quiet.length < cores / 100) return true;
      return placed.gpus.every((gpu) => quiet.some((slot) => slot.gpu.uuid === gpu.uuid));
    }),
    { numRuns: 500 },
  );
  t.pass('the test compares 500 situations');
  t.end();
});
