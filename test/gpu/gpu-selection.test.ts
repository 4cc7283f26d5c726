import fc from 'fast-check';
import { test } from 'tap';
import type { Gpu } from '../../src/gpu/gpu.js';
import {
  ANY_GPUS,
  allows,
  readSelection,
  selectionFor,
  selectionInWords,
  type GpuSelection,
} from '../../src/gpu/gpu-selection.js';
import { place } from '../../src/gpu/placement/place.js';
import type { GpuSlot } from '../../src/gpu/placement/slot.js';
import { uniformTopology } from '../../src/gpu/topology/topology.js';
import { subsets } from './placement/exhaustive.js';

const GIB = 2 ** 30;

const read = (annotations: Readonly<Record<string, string>>) => readSelection((key) => annotations[key]);

function selected(annotations: Readonly<Record<string, string>>): GpuSelection {
  const result = read(annotations);
  if (!result.ok) throw new Error(result.reason);
  return result.selection;
}

function gpu(index: number, differing: Partial<Gpu> = {}): Gpu {
  const uuid = `GPU-${index}`;
  const there = { pciBusId: `00000000:0${index}:00.0`, model: 'NVIDIA A100-SXM4-40GB', memoryBytes: 40 * GIB };
  return { index, minor: index, uuid, numaNode: 0, ...there, ...differing };
}

test('a pod without such annotations may have any GPU', (t) => {
  t.equal(selected({}), ANY_GPUS);
  t.equal(selected({ 'tencent.com/equal-gpus': 'preferred', 'tencent.com/gpu-policy': 'binpack' }), ANY_GPUS);
  t.ok(allows(ANY_GPUS, gpu(0)));
  t.end();
});

test('models are named in part and in any case, with or without spaces', (t) => {
  const use = selected({ 'tencent.com/use-gpu-model': 'h100, a100-sxm4' });
  t.ok(allows(use, gpu(0)));
  t.notOk(allows(use, gpu(0, { model: 'NVIDIA A100-PCIE-40GB' })));
  const nouse = selected({ 'tencent.com/nouse-gpu-model': 'A100' });
  t.notOk(allows(nouse, gpu(0)));
  t.ok(allows(nouse, gpu(0, { model: 'Tesla T4' })));
  const both = selected({ 'tencent.com/use-gpu-model': 'A100', 'tencent.com/nouse-gpu-model': 'PCIE' });
  t.ok(allows(both, gpu(0)));
  t.notOk(allows(both, gpu(0, { model: 'NVIDIA A100-PCIE-40GB' })));
  t.end();
});

test('the UUID of a GPU stands for its instances, and a GPU that is excluded too is excluded', (t) => {
  const instance = gpu(8, {
    uuid: 'MIG-1',
    instance: {
      profile: '1g.10gb',
      parentUuid: 'GPU-1',
      gpuInstance: 7,
      computeInstance: 0,
      multiprocessors: 14,
    },
  });
  const use = selected({ 'tencent.com/use-gpu-uuid': 'GPU-1,GPU-2', 'tencent.com/nouse-gpu-uuid': 'GPU-2' });
  t.same(
    [gpu(0), gpu(1), gpu(2), instance].map((each) => allows(use, each)),
    [false, true, false, true],
  );
  t.ok(allows(selected({ 'tencent.com/use-gpu-uuid': 'MIG-1' }), instance));
  t.notOk(allows(selected({ 'tencent.com/nouse-gpu-uuid': 'GPU-1' }), instance));
  t.end();
});

test('a wrong value is refused with its annotation and what is expected', (t) => {
  const reason = (annotations: Readonly<Record<string, string>>): string => {
    const result = read(annotations);
    return result.ok ? 'read' : result.reason;
  };
  t.equal(
    reason({ 'tencent.com/gpu-policy': 'pack' }),
    'annotation tencent.com/gpu-policy is "pack"; it can be "binpack" or "spread"',
  );
  for (const wrong of ['0', '17', '2.0', '', 'two'])
    t.equal(
      reason({ 'tencent.com/vcuda-gpus': wrong }),
      `annotation tencent.com/vcuda-gpus is "${wrong}"; it can be a number of GPUs from 1 to 16, or one for each container: main=2,side=1`,
    );
  t.equal(
    reason({ 'tencent.com/same-numa': 'true' }),
    'annotation tencent.com/same-numa is "true"; it can be "required" or "preferred"',
  );
  t.equal(
    reason({ 'tencent.com/use-gpu-uuid': 'GPU-1,3' }),
    'annotation tencent.com/use-gpu-uuid has the entry "3"; expected UUIDs (GPU-... or MIG-..., nvidia-smi -L lists them), separated by commas',
  );
  t.equal(
    reason({ 'tencent.com/use-gpu-model': 'A100,' }),
    'annotation tencent.com/use-gpu-model has an empty entry; expected names of GPU models or parts of them, separated by commas',
  );
  t.match(reason({ 'tencent.com/nouse-gpu-model': 'x'.repeat(129) }), /nouse-gpu-model has an entry of more than 128/);
  t.match(
    reason({ 'tencent.com/nouse-gpu-uuid': 'GPU-1,'.repeat(65) }),
    /nouse-gpu-uuid has 66 entries; at most 64 are supported/,
  );
  t.match(reason({ 'tencent.com/node-policy': '' }), /node-policy is ""; it can be/);
  t.end();
});

test('the words of a selection name the annotations that restrict it, and not the policies', (t) => {
  t.equal(selectionInWords(selected({ 'tencent.com/gpu-policy': 'spread' })), '');
  t.equal(
    selectionInWords(selected({ 'tencent.com/use-gpu-model': 'a,b,c,d,e', 'tencent.com/same-numa': 'required' })),
    ' (annotations tencent.com/use-gpu-model: A, B, C and 2 more; tencent.com/same-numa: required)',
  );
  t.end();
});

const slots = fc.array(
  fc.record({
    model: fc.constantFrom('NVIDIA A100-SXM4-40GB', 'NVIDIA A100-SXM4-80GB', 'Tesla T4'),
    numaNode: fc.constantFrom(0, 1, null),
    freeCores: fc.constantFrom(100, 100, 100, 60, 0),
    freeGib: fc.integer({ min: 0, max: 16 }),
    usable: fc.constantFrom(true, true, true, false),
  }),
  { minLength: 1, maxLength: 8 },
);

const annotations = fc.record(
  {
    'tencent.com/use-gpu-model': fc.constantFrom('a100', '80gb,t4', 'V100'),
    'tencent.com/nouse-gpu-model': fc.constantFrom('T4', '40GB'),
    'tencent.com/use-gpu-uuid': fc.constantFrom('GPU-0', 'GPU-1,GPU-2,GPU-3'),
    'tencent.com/nouse-gpu-uuid': fc.constantFrom('GPU-0', 'GPU-2,GPU-3'),
    'tencent.com/equal-gpus': fc.constantFrom('required', 'preferred'),
    'tencent.com/same-numa': fc.constantFrom('required', 'preferred'),
    'tencent.com/gpu-policy': fc.constantFrom('binpack', 'spread'),
  },
  { requiredKeys: [] },
);

test('placement finds GPUs exactly where some set fulfils every annotation, and a refusal names them', (t) => {
  fc.assert(
    fc.property(
      slots,
      annotations,
      fc.constantFrom(30, 60, 100, 200, 300),
      fc.integer({ min: 0, max: 8 }),
      (machine, given, cores, gib) => {
        const all = machine.map(({ model, numaNode, freeCores, freeGib, usable }, index): GpuSlot => {
          const memoryBytes = 16 * GIB;
          const free = { freeCores, freeMemoryBytes: freeCores === 100 ? memoryBytes : freeGib * GIB };
          return { gpu: gpu(index, { model, numaNode, memoryBytes }), usable, processCount: 0, ...free };
        });
        const has = (key: string): string[] | null => {
          const text = (given as Record<string, string>)[key];
          return text === undefined ? null : text.toLowerCase().split(',');
        };
        const named = (list: string[] | null, { gpu: { model } }: GpuSlot): boolean =>
          list?.some((part) => model.toLowerCase().includes(part)) ?? false;
        const listed = (list: string[] | null, slot: GpuSlot): boolean =>
          list?.includes(slot.gpu.uuid.toLowerCase()) ?? false;
        const mayHave = (slot: GpuSlot): boolean =>
          slot.usable &&
          slot.freeCores >= Math.min(cores, 100) &&
          (cores >= 100 || slot.freeMemoryBytes >= gib * GIB) &&
          (has('tencent.com/use-gpu-model') === null || named(has('tencent.com/use-gpu-model'), slot)) &&
          !named(has('tencent.com/nouse-gpu-model'), slot) &&
          (has('tencent.com/use-gpu-uuid') === null || listed(has('tencent.com/use-gpu-uuid'), slot)) &&
          !listed(has('tencent.com/nouse-gpu-uuid'), slot);
        const isSet = (set: readonly GpuSlot[]): boolean => {
          const differ = (of: (one: Gpu) => unknown): boolean => new Set(set.map(({ gpu: one }) => of(one))).size > 1;
          return (
            !(given['tencent.com/equal-gpus'] === 'required' && differ(({ model }) => model)) &&
            !(
              given['tencent.com/same-numa'] === 'required' &&
              differ(({ numaNode, index }) => numaNode ?? `alone ${index}`)
            )
          );
        };
        const open = all.filter(mayHave).map((slot) => slot.gpu.index);
        const sets = subsets(open, Math.max(1, cores / 100)).filter((set) =>
          isSet(set.map((index) => all[index] as GpuSlot)),
        );
        const selection = selected(given);
        const request = { cores, memoryBytes: gib * GIB, selection };
        const placed = place(uniformTopology(all.length), all, request);
        if (!placed.ok)
          return sets.length === 0 && (selection === ANY_GPUS || placed.reason.endsWith(selectionInWords(selection)));
        const chosen = placed.gpus.map(({ index }) => index);
        if (!sets.some((set) => set.join() === [...chosen].sort((a, b) => a - b).join())) return false;
        if (cores >= 100) return true;
        const room = open.map((index) => (all[index] as GpuSlot).freeCores);
        const best = given['tencent.com/gpu-policy'] === 'spread' ? Math.max(...room) : Math.min(...room);
        return (all[chosen[0] ?? -1] as GpuSlot).freeCores === best;
      },
    ),
    { numRuns: 3_000 },
  );
  t.end();
});

test('the number of GPUs may be one for each container, and a container that is not named gets one', (t) => {
  const read = (value: string) => readSelection((key) => (key === 'tencent.com/vcuda-gpus' ? value : undefined));
  const found = read('main=2, side=4');
  t.match(found, { ok: true, selection: { gpus: 4, gpusOf: { main: 2, side: 4 } } });
  if (!found.ok) throw new Error(found.reason);
  t.same(
    ['main', 'side', 'init', 'constructor'].map((name) => selectionFor(found.selection, name).gpus),
    [2, 4, 1, 1],
  );
  t.match(selectionInWords(found.selection), / \(annotation tencent.com\/vcuda-gpus: main=2, side=4\)/);
  for (const wrong of ['main=', 'main=17', '=2', 'main=2,main=3', 'main=2,3', 'two', ''])
    t.match(read(wrong), { ok: false, reason: /from 1 to 16, or one for each container: main=2,side=1/ }, wrong);
  t.end();
});
