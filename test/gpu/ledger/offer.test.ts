import fc from 'fast-check';
import { test } from 'tap';
import { heldOn, slots } from '../../../src/gpu/ledger/state.js';
import { CORES_PER_GPU, type ResourceKind } from '../../../src/gpu/resources.js';
import { cases } from '../../cases.js';
import { GRACE_MS, KubeletModel, nodeOf, type ModelPod } from './kubelet-model.js';

const BLOCKS = 16;
const WHOLE = [100, 16] as const;

function offering(cards: number, suspendFactor: number): KubeletModel {
  return new KubeletModel({ ...nodeOf(cards, BLOCKS), suspendFactor });
}

/** Admits and starts a pod; false if it was refused. */
function run(model: KubeletModel, [cores, memoryBlocks]: readonly [number, number], suspendable = true): boolean {
  const order = ['core', 'memory'] as const;
  const isIn = model.admit({ cores, memoryBlocks, order, failAfter: 2, knowsPods: true, suspendable });
  const pod = [...model.pods.values()].at(-1);
  if (isIn && pod !== undefined) model.start(pod);
  return isIn;
}

test('three suspendable pods get a whole GPU each of one GPU that offers three times what it has, and no fourth', (t) => {
  const model = offering(1, 3);
  t.same(
    [1, 2, 3, 4].map(() => run(model, WHOLE)),
    [true, true, true, false],
  );
  t.match(slots(model.state), [{ freeCores: 0, freeMemoryBytes: 0 }]);
  t.end();
});

test('a pod that must run gets only the real GPU, and leaves room for the largest suspendable one', (t) => {
  const model = offering(1, 3);
  t.ok(run(model, [60, 8]));
  t.notOk(run(model, [50, 4], false), 'the suspendable pod could never run beside it');
  t.ok(run(model, [40, 4], false));
  t.notOk(run(model, [10, 1], false), 'the real GPU is full with the largest suspendable pod');
  t.ok(run(model, [60, 8]), 'another suspendable pod takes turns with the first');
  t.notOk(run(model, [70, 4]), 'a suspendable pod that could never run beside the pods that must');
  t.end();
});

test('without a factor, a suspendable pod is like any other', (t) => {
  const model = offering(1, 1);
  t.ok(run(model, [60, 8]));
  t.notOk(run(model, [60, 4]));
  t.ok(run(model, [40, 4], false));
  t.end();
});

test('suspendable pods go to the GPU where they need no turns, if there is one', (t) => {
  const model = offering(2, 3);
  for (let pod = 0; pod < 4; pod += 1) run(model, WHOLE);
  const held = model.state.node.gpus.map(({ gpu }) => heldOn(model.state, gpu.uuid).suspendable);
  t.same(held, [2, 2]);
  t.end();
});

test('a pod that was taken for a suspendable one does not start where the real GPU is full', (t) => {
  const model = offering(1, 3);
  run(model, WHOLE);
  model.admit({
    ...{ cores: 100, memoryBlocks: 16, order: ['core', 'memory'], failAfter: 2, knowsPods: true, suspendable: true },
  });
  const pod = [...model.pods.values()].at(-1) as ModelPod;
  model.start({ ...pod, suspendable: false });
  t.match(model.lateRefusals, [/GPU 0 has no room for a container that must run all the time/]);
  t.end();
});

type Step =
  | {
      readonly kind: 'admit';
      readonly shape: readonly [number, number];
      readonly coreFirst: boolean;
      readonly suspendable: boolean;
    }
  | { readonly kind: 'start' | 'end'; readonly which: number }
  | { readonly kind: 'reconcile'; readonly laterMs: number }
  | { readonly kind: 'restart' | 'lose' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      shape: fc.constantFrom<readonly [number, number]>([10, 2], [30, 4], [30, 9], [60, 8], [100, 0], WHOLE),
      coreFirst: fc.boolean(),
      suspendable: fc.constantFrom(true, true, false),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('start' as const), which: fc.nat(20) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reconcile' as const), laterMs: fc.nat(2 * GRACE_MS) }) },
  { weight: 1, arbitrary: fc.constantFrom({ kind: 'restart' as const }, { kind: 'lose' as const }) },
);

function take(model: KubeletModel, next: Step): void {
  const pods = [...model.pods.values()];
  switch (next.kind) {
    case 'admit': {
      const order: readonly ResourceKind[] = next.coreFirst ? ['core', 'memory'] : ['memory', 'core'];
      const [cores, memoryBlocks] = next.shape;
      model.admit({ cores, memoryBlocks, order, failAfter: 2, knowsPods: true, suspendable: next.suspendable });
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
    case 'lose':
      return model.lose();
  }
}

/** What is wrong on a GPU with the pods that hold a part of it, by what they are and not by what the ledger says. */
function wrongOn(model: KubeletModel, gpuUuid: string, factor: number): string[] {
  const held = [...model.pods.values()].flatMap((pod) => {
    const own = [...model.state.allocations.values()].find(({ parts }) =>
      parts.some(({ coreIds }) => coreIds.some((id) => pod.coreIds.includes(id))),
    );
    const part = own?.parts.find((one) => one.gpuUuid === gpuUuid);
    return part === undefined ? [] : [{ ...pod, cores: part.coreIds.length, memoryBlocks: part.memoryIds.length }];
  });
  return (
    [
      ['cores', CORES_PER_GPU],
      ['memoryBlocks', BLOCKS],
    ] as const
  ).flatMap(([amount, real]) => {
    const sum = (pods: typeof held): number => pods.reduce((all, pod) => all + pod[amount], 0);
    const running = sum(held.filter(({ suspendable }) => !suspendable));
    const largest = Math.max(0, ...held.filter(({ suspendable }) => suspendable).map((pod) => pod[amount]));
    return [
      ...(running > real ? [`${running} ${amount} must run`] : []),
      ...(running + largest > real ? [`${largest} ${amount} beside ${running} never run`] : []),
      ...(sum(held) > factor * real ? [`${sum(held)} ${amount} in sum`] : []),
    ];
  });
}

test('in every history, what must run fits the real GPU, and all together fit what it offers', (t) => {
  let most = 0;
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 10, maxLength: 60 }),
      fc.constantFrom(1, 2, 3, 4),
      fc.constantFrom(1, 2),
      (steps, factor, cards) => {
        const model = offering(cards, factor);
        for (const next of steps) {
          take(model, next);
          for (const { gpu } of model.state.node.gpus) {
            const wrong = wrongOn(model, gpu.uuid, factor);
            if (wrong.length > 0) throw new Error(`${JSON.stringify(next)}: ${wrong.join('; ')}`);
            const { running, suspendable } = heldOn(model.state, gpu.uuid).cores;
            most = Math.max(most, running + suspendable);
          }
        }
        if (model.lateRefusals.length > 0) throw new Error(model.lateRefusals.join());
      },
    ),
    { numRuns: cases(60, 3_000) },
  );
  t.ok(most > 2 * CORES_PER_GPU, `the histories fill GPUs: ${most} cores`);
  t.end();
});
