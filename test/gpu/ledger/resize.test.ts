import fc from 'fast-check';
import { test } from 'tap';
import { amountsOf, type Allocation } from '../../../src/gpu/ledger/allocation.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../../src/gpu/ledger/checkpoint.js';
import { holdings } from '../../../src/gpu/ledger/holding.js';
import { resize } from '../../../src/gpu/ledger/resize.js';
import { slots, type LedgerState } from '../../../src/gpu/ledger/state.js';
import { MEMORY_BLOCK_BYTES } from '../../../src/gpu/resources.js';
import { KubeletModel, nodeOf } from './kubelet-model.js';

const BLOCKS = 16;
const BESIDE = 'beside other containers, GPU 0 has 80 cores and 3072 MiB for this one';

/** A node of one GPU on which a pod runs for each of these requests. */
function running(...requests: readonly (readonly [cores: number, memoryBlocks: number])[]): KubeletModel {
  const model = new KubeletModel(nodeOf(1, BLOCKS));
  for (const [cores, memoryBlocks] of requests) {
    model.admit({ cores, memoryBlocks, order: ['core', 'memory'], failAfter: 2, knowsPods: true });
    const pod = [...model.pods.values()].at(-1);
    if (pod === undefined || pod.started) throw new Error(`${cores}/${memoryBlocks} was not admitted`);
    model.start(pod);
  }
  return model;
}

function at(state: LedgerState, index: number): Allocation {
  const allocation = [...state.allocations.values()][index];
  if (allocation === undefined) throw new Error(`there is no allocation ${index}`);
  return allocation;
}

test('a container gets what its GPU has free, and gives it back', (t) => {
  const { state } = running([30, 4], [20, 4]);
  const grown = resize(state, at(state, 0), { cores: 80, memoryBlocks: 12 });
  if (!grown.ok) throw new Error(grown.message);
  t.same(amountsOf(grown.allocation), { cores: 80, memoryBlocks: 12 });
  t.match(slots(grown.state), [{ freeCores: 0, freeMemoryBytes: 0 }]);
  t.match(holdings(grown.state)[0]?.parts, [
    { cores: 80, memoryBlocks: 12, memoryLimitBytes: 12 * MEMORY_BLOCK_BYTES },
  ]);
  const back = resize(grown.state, grown.allocation, { cores: 30, memoryBlocks: 4 });
  if (!back.ok) throw new Error(back.message);
  t.match(slots(back.state), [{ freeCores: 50, freeMemoryBytes: 8 * MEMORY_BLOCK_BYTES }]);
  t.end();
});

test('what its GPU has not free is deferred, and what it never has is infeasible', (t) => {
  const { state } = running([30, 4], [20, 4]);
  for (const [cores, memoryBlocks, reason, message] of [
    [81, 4, 'Deferred', BESIDE],
    [30, 13, 'Deferred', BESIDE],
    [30, 17, 'Infeasible', 'GPU 0 has 100 cores and 4096 MiB'],
  ] as const)
    t.same(resize(state, at(state, 0), { cores, memoryBlocks }), { ok: false, reason, message });
  const unhealthy = {
    ...state,
    node: { ...state.node, gpus: state.node.gpus.map((gpu) => ({ ...gpu, usable: false })) },
  };
  t.match(resize(unhealthy, at(state, 0), { cores: 40, memoryBlocks: 4 }), {
    reason: 'Deferred',
    message: /unhealthy/,
  });
  t.end();
});

test('a whole GPU without a memory limit, and several GPUs, cannot be resized', (t) => {
  const whole = running([100, 0]).state;
  t.match(resize(whole, at(whole, 0), { cores: 100, memoryBlocks: 8 }), { reason: 'Infeasible' });
  const model = new KubeletModel(nodeOf(2, BLOCKS));
  model.admit({ cores: 200, memoryBlocks: 8, order: ['core', 'memory'], failAfter: 2, knowsPods: true });
  t.match(resize(model.state, at(model.state, 0), { cores: 200, memoryBlocks: 9 }), {
    reason: 'Infeasible',
    message: 'the container has 2 GPUs; only containers with one GPU can be resized',
  });
  t.end();
});

test('a new container gets no room that a resized one has', (t) => {
  const model = running([30, 4]);
  const grown = resize(model.state, at(model.state, 0), { cores: 90, memoryBlocks: 6 });
  if (!grown.ok) throw new Error(grown.message);
  model.state = grown.state;
  const wish = { order: ['core', 'memory'], failAfter: 2, knowsPods: true } as const;
  t.notOk(model.admit({ cores: 20, memoryBlocks: 4, ...wish }));
  t.match(model.refused, [/no GPU|free/]);
  t.ok(model.admit({ cores: 10, memoryBlocks: 10, ...wish }));
  t.end();
});

test('a container that starts again keeps what it grew by, and so does the checkpoint', (t) => {
  const model = running([30, 4]);
  const grown = resize(model.state, at(model.state, 0), { cores: 90, memoryBlocks: 6 });
  if (!grown.ok) throw new Error(grown.message);
  model.state = grown.state;
  for (const pod of model.pods.values()) model.start(pod);
  t.same(amountsOf(at(model.state, 0)), { cores: 90, memoryBlocks: 6 });
  const read = decodeCheckpoint(encodeCheckpoint(model.state));
  if (!read.ok || read.format !== 'current') throw new Error('the checkpoint is not read back');
  t.same(read.content.allocations.map(amountsOf), [{ cores: 90, memoryBlocks: 6 }]);
  t.end();
});

test('a resize is refused exactly where the GPU has no room, and no GPU is ever overbooked', (t) => {
  const amount = fc.record({ cores: fc.integer({ min: 1, max: 110 }), memoryBlocks: fc.integer({ min: 1, max: 18 }) });
  const step = fc.record({ which: fc.nat(3), asked: amount });
  const requests = fc.array(fc.tuple(fc.integer({ min: 1, max: 33 }), fc.integer({ min: 1, max: 5 })), {
    minLength: 1,
    maxLength: 3,
  });
  fc.assert(
    fc.property(requests, fc.array(step, { maxLength: 12 }), (shares, steps) => {
      let { state } = running(...shares);
      for (const { which, asked } of steps) {
        const allocation = at(state, which % shares.length);
        const [cores, memoryBlocks] = shares[which % shares.length] as (typeof shares)[number];
        const wanted = {
          cores: Math.max(cores, asked.cores),
          memoryBlocks: Math.max(memoryBlocks, asked.memoryBlocks),
        };
        const others = [...state.allocations.values()].filter((other) => other !== allocation).map(amountsOf);
        const free = (of: keyof typeof wanted, all: number): number =>
          all - others.reduce((sum, each) => sum + each[of], 0);
        const fits = wanted.cores <= free('cores', 100) && wanted.memoryBlocks <= free('memoryBlocks', BLOCKS);
        const answer = resize(state, allocation, asked);
        if (answer.ok !== fits) throw new Error(`${JSON.stringify(asked)}: ${JSON.stringify(answer)}`);
        if (!answer.ok) continue;
        t.same(amountsOf(answer.allocation), wanted);
        state = answer.state;
        const left = {
          cores: free('cores', 100) - wanted.cores,
          blocks: free('memoryBlocks', BLOCKS) - wanted.memoryBlocks,
        };
        t.match(slots(state), [{ freeCores: left.cores, freeMemoryBytes: left.blocks * MEMORY_BLOCK_BYTES }]);
      }
    }),
    { numRuns: 500 },
  );
  t.end();
});
