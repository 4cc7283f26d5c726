import fc from 'fast-check';
import { test } from 'tap';
import { followLegacy, isLegacyId, legacyFromOriginal, noteLegacy } from '../../../src/gpu/ledger/legacy.js';
import type { Holder } from '../../../src/gpu/ledger/identify.js';
import { emptyLedger, usedWithoutIds, slots, usage, type LedgerState } from '../../../src/gpu/ledger/state.js';
import { MEMORY_BLOCK_BYTES } from '../../../src/gpu/resources.js';
import { GRACE_MS, KubeletModel, nodeOf } from './kubelet-model.js';
import { cases } from '../../cases.js';

const GPUS = 3;
const BLOCKS = 16;
const NODE = nodeOf(GPUS, BLOCKS);
const uuid = (gpu: number): string => NODE.gpus[gpu]?.gpu.uuid ?? '';
const NOBODY: ReadonlySet<string> = new Set();

/** A container as the kubelet names it after the upgrade. */
function oldHolder(podUid: string, cores: number, memoryBlocks: number, gpuNames: readonly string[]): Holder {
  return {
    container: { podUid, namespace: 'n', pod: podUid, container: 'main' },
    coreIds: Array.from({ length: cores }, (_, at) => `tencent.com/vcuda-core-${at}`),
    memoryIds: Array.from({ length: memoryBlocks }, (_, at) => `tencent.com/vcuda-memory-268435456-${at}`),
    gpuNames,
    isListed: true,
  };
}

function free(state: LedgerState): string[] {
  return slots(state).map(({ freeCores, freeMemoryBytes }) => `${freeCores}/${freeMemoryBytes / MEMORY_BLOCK_BYTES}`);
}

test('the ledger distinguishes ids of the original from ids of its own', (t) => {
  t.ok(['tencent.com/vcuda-core-17', 'tencent.com/vcuda-memory-268435456-3'].every(isLegacyId));
  t.notOk(
    NODE.gpus.flatMap(({ gpu }) => [...NODE.ids.all(gpu, 'core'), ...NODE.ids.all(gpu, 'memory')]).some(isLegacyId),
  );
  t.end();
});

test("the ledger keeps from the start what the original's checkpoint gives a container, by device file", (t) => {
  const legacy = legacyFromOriginal(NODE, [
    { podUid: 'a', container: 'main', devicePaths: ['/dev/nvidia1'], cores: 30, memoryBytes: 4 * MEMORY_BLOCK_BYTES },
    { podUid: 'b', container: 'main', devicePaths: ['/dev/nvidia0', '/dev/nvidia2'], cores: 200, memoryBytes: 0 },
  ]);
  t.same(free({ ...emptyLedger(NODE), legacy }), ['0/16', '70/12', '0/16']);
  t.end();
});

test("the GPU in the answer that the kubelet kept takes precedence over the original's record, which was a guess", (t) => {
  const legacy = legacyFromOriginal(NODE, [
    { podUid: 'a', container: 'main', devicePaths: ['/dev/nvidia1'], cores: 30, memoryBytes: MEMORY_BLOCK_BYTES },
  ]);
  const state = { ...emptyLedger(NODE), legacy };
  t.same(free(noteLegacy(state, oldHolder('a', 30, 4, [uuid(2)]))), ['100/16', '100/16', '70/12']);
  t.same(
    free(noteLegacy(state, oldHolder('a', 30, 4, []))),
    ['100/16', '70/15', '100/16'],
    'without an answer the record counts',
  );
  t.end();
});

test('a part of an unknown GPU stays free on every GPU', (t) => {
  t.same(free(noteLegacy(emptyLedger(NODE), oldHolder('a', 30, 4, ['GPU-gone']))), ['70/12', '70/12', '70/12']);
  t.end();
});

test('an allocation ends with its pod at once, or when the kubelet has not listed it for the grace period', (t) => {
  const holder = oldHolder('a', 30, 4, [uuid(0)]);
  const begun = followLegacy(emptyLedger(NODE), [holder], { endedPods: NOBODY, now: 0, graceMs: GRACE_MS });
  t.equal(begun.begun.length, 1);
  t.equal(
    followLegacy(begun.state, [holder], { endedPods: NOBODY, now: 5 * GRACE_MS, graceMs: GRACE_MS }).state,
    begun.state,
    'the kubelet lists it: nothing changes',
  );
  t.same(free(followLegacy(begun.state, [holder], { endedPods: new Set(['a']), now: 0, graceMs: GRACE_MS }).state), [
    '100/16',
    '100/16',
    '100/16',
  ]);
  const missing = followLegacy(begun.state, [], { endedPods: NOBODY, now: 100, graceMs: GRACE_MS });
  t.same(free(missing.state), ['70/12', '100/16', '100/16']);
  t.equal(
    followLegacy(missing.state, [], { endedPods: NOBODY, now: 99 + GRACE_MS, graceMs: GRACE_MS }).ended.length,
    0,
  );
  const over = followLegacy(missing.state, [], { endedPods: NOBODY, now: 100 + GRACE_MS, graceMs: GRACE_MS });
  t.equal(over.ended.length, 1);
  t.same(free(over.state), ['100/16', '100/16', '100/16']);
  t.end();
});

const oldPods = fc.array(
  fc.record({
    card: fc.nat(GPUS - 1),
    cores: fc.integer({ min: 5, max: 100 }),
    blocks: fc.integer({ min: 1, max: BLOCKS }),
  }),
  { maxLength: 5 },
);
const newPods = fc.array(
  fc.record({
    shape: fc.constantFrom([10, 2], [30, 4], [60, 8], [100, 0], [100, 8], [200, 4]),
    coreFirst: fc.boolean(),
    endsOld: fc.nat(9),
    starts: fc.boolean(),
  }),
  { maxLength: 30 },
);

test('old and new pods together never exceed a GPU, and all of it is free when the old pods have ended', (t) => {
  fc.assert(
    fc.property(oldPods, newPods, (old, fresh) => {
      const model = new KubeletModel(NODE);
      const room = NODE.gpus.map(() => ({ cores: 100, blocks: BLOCKS }));
      const holders = old.flatMap(({ card: gpu, cores, blocks }, at) => {
        const left = room[gpu];
        if (left === undefined || left.cores < cores || left.blocks < blocks) return [];
        left.cores -= cores;
        left.blocks -= blocks;
        return [oldHolder(`old-${at}`, cores, blocks, [uuid(gpu)])];
      });
      model.state = holders.reduce(noteLegacy, model.state);
      for (const { shape, coreFirst, endsOld, starts } of fresh) {
        if (endsOld < holders.length) holders.splice(endsOld, 1);
        model.state = followLegacy(model.state, holders, { endedPods: NOBODY, now: model.now, graceMs: 0 }).state;
        model.admit({
          cores: shape[0] ?? 0,
          memoryBlocks: shape[1] ?? 0,
          order: coreFirst ? ['core', 'memory'] : ['memory', 'core'],
          failAfter: 2,
          knowsPods: true,
        });
        if (starts) for (const pod of model.pods.values()) model.start(pod);
        for (const [gpu, held] of usage(model.state)) {
          const kept = usedWithoutIds(model.state, gpu);
          if (held.coreIds.size + kept.cores > 100)
            throw new Error(`${gpu} gives ${held.coreIds.size} cores beside ${kept.cores} kept`);
          if (held.memoryIds.size + kept.memoryBlocks > BLOCKS)
            throw new Error(`${gpu} gives ${held.memoryIds.size} blocks beside ${kept.memoryBlocks} kept`);
        }
      }
      if (model.lateRefusals.length > 0) throw new Error(model.lateRefusals.join('; '));
      model.pods.clear();
      model.reconcile(2 * GRACE_MS);
      model.reconcile(2 * GRACE_MS);
      model.state = followLegacy(model.state, [], { endedPods: NOBODY, now: model.now, graceMs: 0 }).state;
      return free(model.state).every((left) => left === `100/${BLOCKS}`);
    }),
    { numRuns: cases(150, 1_000) },
  );
  t.end();
});
