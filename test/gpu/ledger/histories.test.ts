import fc from 'fast-check';
import { test } from 'tap';
import { allocationId, coreIdsOf, memoryIdsOf } from '../../../src/gpu/ledger/allocation.js';
import { slots, usage } from '../../../src/gpu/ledger/state.js';
import { MEMORY_BLOCK_BYTES, type ResourceKind } from '../../../src/gpu/resources.js';
import { GRACE_MS, KubeletModel, nodeOf } from './kubelet-model.js';
import { cases } from '../../cases.js';

const GPUS = 3;
const BLOCKS = 16;

type Step =
  | {
      readonly kind: 'admit';
      readonly shape: readonly [number, number];
      readonly coreFirst: boolean;
      readonly failAfter: number;
    }
  | { readonly kind: 'start' | 'end'; readonly which: number }
  | { readonly kind: 'reconcile'; readonly laterMs: number }
  | { readonly kind: 'restart' };

const SHAPES: readonly (readonly [number, number])[] = [
  [10, 2],
  [10, 4],
  [30, 4],
  [30, 8],
  [60, 8],
  [100, 0],
  [100, 4],
  [200, 0],
  [200, 8],
  [150, 4],
  [30, 40],
];

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      shape: fc.constantFrom(...SHAPES),
      coreFirst: fc.boolean(),
      failAfter: fc.constantFrom(2, 2, 2, 2, 1, 0),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('start' as const), which: fc.nat(20) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reconcile' as const), laterMs: fc.nat(2 * GRACE_MS) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
);

function take(model: KubeletModel, next: Step, knowsPods: boolean): void {
  const pods = [...model.pods.values()];
  switch (next.kind) {
    case 'admit': {
      const order: readonly ResourceKind[] = next.coreFirst ? ['core', 'memory'] : ['memory', 'core'];
      model.admit({ cores: next.shape[0], memoryBlocks: next.shape[1], order, failAfter: next.failAfter, knowsPods });
      return;
    }
    case 'start':
    case 'end': {
      const pod = pods[next.which % Math.max(1, pods.length)];
      if (pod !== undefined) model[next.kind](pod);
      return;
    }
    case 'reconcile':
      return model.reconcile(next.laterMs);
    case 'restart':
      return model.restart();
  }
}

/** The invariants that must hold whatever the kubelet does. Empty when all of them hold. */
function violations(model: KubeletModel): string[] {
  const faults: string[] = [];
  for (const [uuid, held] of usage(model.state)) {
    if (held.coreIds.size > 100) faults.push(`${uuid} gives ${held.coreIds.size} cores`);
    if (held.memoryIds.size > BLOCKS) faults.push(`${uuid} gives ${held.memoryIds.size} blocks`);
  }
  const holders = new Map<string, string>();
  for (const allocation of model.state.allocations.values()) {
    if (allocation.id !== allocationId(coreIdsOf(allocation)))
      faults.push(`${allocation.id} is not named after its cores`);
    for (const id of [...coreIdsOf(allocation), ...memoryIdsOf(allocation)]) {
      if (holders.has(id)) faults.push(`${id} is in two allocations`);
      holders.set(id, allocation.id);
    }
  }
  for (const pod of model.pods.values()) {
    const allocation = model.state.allocations.get(allocationId(pod.coreIds));
    if (allocation === undefined) {
      if (pod.started) faults.push(`${pod.uid} runs without an allocation`);
      continue;
    }
    if (!pod.started) continue;
    if (memoryIdsOf(allocation).length !== pod.memoryBlocks)
      faults.push(`${pod.uid} runs with ${memoryIdsOf(allocation).length} blocks instead of ${pod.memoryBlocks}`);
    if (allocation.parts.length !== Math.max(1, pod.cores / 100))
      faults.push(`${pod.uid} runs on ${allocation.parts.length} GPUs`);
  }
  return faults;
}

for (const knowsPods of [true, false]) {
  test(`the ledger keeps its invariants in random histories, with pods ${knowsPods ? 'known' : 'unknown'}`, (t) => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
        const model = new KubeletModel(nodeOf(GPUS, BLOCKS));
        for (const [at, next] of steps.entries()) {
          take(model, next, knowsPods);
          const faults = violations(model);
          faults.push(...model.lateRefusals.filter((reason) => reason.includes('told no GPU')));
          if (faults.length > 0) throw new Error(`after step ${at} (${JSON.stringify(next)}): ${faults.join('; ')}`);
        }
      }),
      { numRuns: cases(100, 750) },
    );
    t.end();
  });
}

test('with pods known, the ledger never refuses an admitted container at its start', (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const model = new KubeletModel(nodeOf(GPUS, BLOCKS));
      for (const next of steps) take(model, next, true);
      if (model.lateRefusals.length > 0) throw new Error(model.lateRefusals.join('; '));
    }),
    { numRuns: cases(100, 750) },
  );
  t.end();
});

test('with pods unknown, the ledger refuses a part of a GPU only where no GPU has room for it', (t) => {
  const parts = fc.record({
    kind: fc.constant('admit' as const),
    shape: fc.tuple(fc.constantFrom(5, 10, 30, 60), fc.constantFrom(1, 2, 4, 8, 14, 16)),
    coreFirst: fc.boolean(),
    failAfter: fc.constant(2),
  });
  const whole = fc.record({
    kind: fc.constant('admit' as const),
    shape: fc.constantFrom<readonly [number, number]>([100, 4], [100, 16], [200, 8]),
    coreFirst: fc.boolean(),
    failAfter: fc.constant(2),
  });
  const others = step.filter(({ kind }) => kind !== 'admit');
  const steps = fc.array(
    fc.oneof({ weight: 5, arbitrary: parts }, { weight: 1, arbitrary: whole }, { weight: 4, arbitrary: others }),
    { minLength: 1, maxLength: 40 },
  );
  fc.assert(
    fc.property(steps, (history) => {
      const model = new KubeletModel(nodeOf(GPUS, BLOCKS));
      for (const [at, next] of history.entries()) {
        const asked = model.refused.length;
        // Half of a pod that the kubelet itself failed may be taken for half of the next one.
        const { failedHalfway } = model;
        take(model, next, false);
        if (next.kind !== 'admit' || failedHalfway || model.refused.length === asked || next.shape[0] >= 100) continue;
        // The offers of the request have freed what ended; the cores of the refused pod are free with the next request.
        const [cores, blocks] = next.shape;
        const [last] = [...model.state.allocations.values()].slice(-1);
        const own = last?.isGpuOpen === true ? last : null;
        const roomy = slots(model.state, {
          coreIds: new Set(own === null ? [] : coreIdsOf(own)),
          memoryIds: new Set(),
        }).filter((slot) => slot.freeCores >= cores && slot.freeMemoryBytes >= blocks * MEMORY_BLOCK_BYTES);
        if (roomy.length > 0)
          throw new Error(
            `step ${at} (${JSON.stringify(next)}) was refused: ${model.refused.at(-1) ?? ''}, but GPU ${roomy[0]?.gpu.index ?? ''} has room`,
          );
      }
    }),
    { numRuns: cases(100, 500) },
  );
  t.end();
});

test('with pods unknown, half of a pod that the kubelet failed costs the pods after the next one no GPU', (t) => {
  const model = new KubeletModel(nodeOf(GPUS, BLOCKS));
  const admit = (cores: number, memoryBlocks: number, order: readonly ResourceKind[]): boolean =>
    model.admit({ cores, memoryBlocks, order, failAfter: 2, knowsPods: false });
  const memoryFirst = ['memory', 'core'] as const;
  const coreFirst = ['core', 'memory'] as const;
  for (const cores of [30, 30, 60]) t.ok(admit(cores, 1, memoryFirst));
  t.notOk(admit(200, 8, memoryFirst), 'the kubelet has 180 cores left, and has asked for the memory');
  t.equal(model.failedHalfway, true);
  t.ok(admit(30, 4, coreFirst), 'on the GPU of the memory that is left over');
  t.ok(admit(5, 14, coreFirst), `another GPU has room: ${model.refused.join('; ')}`);
  t.end();
});

test('the ledger is empty when all pods have ended and the grace period is over', (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), fc.boolean(), (steps, knowsPods) => {
      const model = new KubeletModel(nodeOf(GPUS, BLOCKS));
      for (const next of steps) take(model, next, knowsPods);
      model.pods.clear();
      model.reconcile(GRACE_MS);
      model.reconcile(GRACE_MS);
      model.reconcile(GRACE_MS);
      return model.state.allocations.size === 0 && model.state.halves.length === 0;
    }),
    { numRuns: cases(60, 300) },
  );
  t.end();
});
