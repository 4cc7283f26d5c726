import fc from 'fast-check';
import { test } from 'tap';
import { allocationId, coreIdsOf, memoryIdsOf } from '../../../src/gpu/ledger/allocation.js';
import type { Holder } from '../../../src/gpu/ledger/identify.js';
import { emptyLedger, usage, type LedgerState } from '../../../src/gpu/ledger/state.js';
import { takeOver } from '../../../src/gpu/ledger/take-over.js';
import { GRACE_MS, nodeOf } from './kubelet-model.js';
import { cases } from '../../cases.js';

const NODE = nodeOf(3, 16);
const NOW = 1_000_000;

function ids(kind: 'core' | 'memory', card: number, from: number, count: number): string[] {
  const gpu = NODE.gpus[card]?.gpu;
  return gpu === undefined ? [] : NODE.ids.all(gpu, kind).slice(from, from + count);
}

function holder(
  pod: string,
  coreIds: readonly string[],
  memoryIds: readonly string[],
  more: { container?: string; gpuNames?: readonly string[] } = {},
): Holder {
  return {
    container: { podUid: pod, namespace: 'n', pod, container: more.container ?? 'main' },
    coreIds,
    memoryIds,
    gpuNames: more.gpuNames ?? [],
    isListed: true,
  };
}

function after(state: LedgerState, holders: readonly Holder[], now = NOW): LedgerState {
  return takeOver(state, holders, { now, graceMs: GRACE_MS }).state;
}

test('a container gets the ids that an old checkpoint gives to an ended pod, and the old allocation is removed', (t) => {
  const stale = after(emptyLedger(NODE), [holder('past', ids('core', 0, 0, 30), ids('memory', 0, 0, 4))]);
  const present = holder('present', ids('core', 0, 0, 50), ids('memory', 0, 2, 8));
  const { state, dropped, adopted } = takeOver(stale, [present], { now: NOW, graceMs: GRACE_MS });
  t.same(dropped.map(coreIdsOf), [ids('core', 0, 0, 30)]);
  t.same(
    adopted.map(({ container }) => container.podUid),
    ['present'],
  );
  t.same([...state.allocations.keys()], [allocationId(present.coreIds)]);
  t.equal(usage(state).get(NODE.gpus[0]?.gpu.uuid ?? '')?.memoryIds.size, 8);
  t.end();
});

test('ids that the kubelet lists for another pod belong to that pod', (t) => {
  const coreIds = ids('core', 0, 0, 30);
  const state = after(after(emptyLedger(NODE), [holder('past', coreIds, ids('memory', 0, 0, 4))]), [
    holder('present', coreIds, ids('memory', 0, 0, 4)),
  ]);
  t.same(
    state.allocations.get(allocationId(coreIds))?.owners.map(({ podUid }) => podUid),
    ['present'],
  );
  t.end();
});

test('the ledger knows an init container and the container after it, whichever holds more', (t) => {
  for (const [first, second] of [
    [10, 30],
    [30, 10],
  ] as const) {
    const init = holder('pod', ids('core', 0, 0, first), ids('memory', 0, 0, 4), { container: 'init' });
    const main = holder('pod', ids('core', 0, 0, second), ids('memory', 0, 0, 4));
    const state = after(emptyLedger(NODE), [init, main]);
    t.same([...state.allocations.keys()].sort(), [allocationId(init.coreIds), allocationId(main.coreIds)].sort());
    t.same(after(state, [main, init]), state, 'the second reconciliation changes nothing');
  }
  t.end();
});

test('a container keeps its GPU, even where its ids are of another GPU with room', (t) => {
  const [, second] = NODE.gpus.map(({ gpu }) => gpu);
  const running = holder('pod', ids('core', 0, 0, 30), ids('memory', 0, 0, 4), { gpuNames: [second?.uuid ?? ''] });
  const state = after(emptyLedger(NODE), [running]);
  t.same(
    state.allocations.get(allocationId(running.coreIds))?.parts.map(({ gpuUuid }) => gpuUuid),
    [second?.uuid],
  );
  t.end();
});

test('ids that an old checkpoint places on another GPU follow their container', (t) => {
  const [first, second] = NODE.gpus.map(({ gpu }) => gpu.uuid);
  const ofGpu = (pod: string, gpu = '') =>
    holder(pod, ids('core', 0, 0, 30), ids('memory', 0, 0, 4), { gpuNames: [gpu] });
  const { state, dropped, adopted } = takeOver(
    after(emptyLedger(NODE), [ofGpu('past', second)]),
    [ofGpu('present', first)],
    { now: NOW, graceMs: GRACE_MS },
  );
  t.same(
    [...state.allocations.values()].map(({ parts }) => parts.map(({ gpuUuid }) => gpuUuid)),
    [[first]],
  );
  t.equal(adopted.length, 1);
  t.same(dropped, [], 'the allocation keeps the new directory');
  t.end();
});

test('the ledger ignores a GPU that the node no longer has', (t) => {
  const running = holder('pod', ids('core', 0, 0, 30), ids('memory', 0, 0, 4), { gpuNames: ['GPU-gone'] });
  t.same(
    after(emptyLedger(NODE), [running])
      .allocations.get(allocationId(running.coreIds))
      ?.parts.map(({ gpuUuid }) => gpuUuid),
    [NODE.gpus[0]?.gpu.uuid],
  );
  t.end();
});

/**
 * What a kubelet may list at one moment: containers with ids of their own, of one GPU each. The ids of another moment
 * belong to other pods: a container keeps its ids.
 */
const named = (moment: string): fc.Arbitrary<readonly Holder[]> =>
  fc
    .array(
      fc.record({ card: fc.nat(2), cores: fc.integer({ min: 1, max: 40 }), blocks: fc.integer({ min: 1, max: 5 }) }),
      { maxLength: 8 },
    )
    .map((limitAnnotations) => {
      const used = [0, 1, 2].map(() => ({ core: 0, memory: 0 }));
      return limitAnnotations.flatMap(({ card: gpu, cores, blocks }, at) => {
        const next = used[gpu];
        if (next === undefined || next.core + cores > 100 || next.memory + blocks > 16) return [];
        const entry = holder(
          `${moment}-${at}`,
          ids('core', gpu, next.core, cores),
          ids('memory', gpu, next.memory, blocks),
        );
        next.core += cores;
        next.memory += blocks;
        return [entry];
      });
    });

test("from any state, the ledger ends with the kubelet's list and no id twice", (t) => {
  fc.assert(
    fc.property(named('past'), named('present'), (before, now) => {
      const state = after(after(emptyLedger(NODE), before), now, NOW + 2 * GRACE_MS);
      const held = new Set<string>();
      for (const allocation of state.allocations.values()) {
        for (const id of [...coreIdsOf(allocation), ...memoryIdsOf(allocation)]) {
          if (held.has(id)) throw new Error(`${id} is held twice`);
          held.add(id);
        }
      }
      for (const { container, coreIds, memoryIds } of now) {
        const allocation = state.allocations.get(allocationId(coreIds));
        if (allocation === undefined) throw new Error(`${container.podUid} is not known`);
        if (allocation.owners[0]?.podUid !== container.podUid) throw new Error(`${container.podUid} is not the owner`);
        if (memoryIdsOf(allocation).sort().join() !== [...memoryIds].sort().join())
          throw new Error(`${container.podUid} has other memory`);
      }
    }),
    { numRuns: cases(150, 1_000) },
  );
  t.end();
});
