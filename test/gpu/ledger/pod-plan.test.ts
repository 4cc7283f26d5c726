import { test } from 'tap';
import { allocate } from '../../../src/gpu/ledger/allocate.js';
import type { PendingContainer } from '../../../src/gpu/ledger/pending.js';
import { prefer } from '../../../src/gpu/ledger/prefer.js';
import { emptyLedger, usage, type LedgerState } from '../../../src/gpu/ledger/state.js';
import type { ResourceKind } from '../../../src/gpu/resources.js';
import { nodeOf } from './kubelet-model.js';

const waiting = (
  container: string,
  cores: number,
  memoryBlocks: number,
  hint: readonly number[] = [],
): PendingContainer => ({ podUid: 'a', container, cores, memoryBlocks, hint });

/** A node of two GPUs with 16 blocks each, of which other containers hold these cores and blocks. */
function nodeWith(...held: readonly (readonly [cores: number, memoryBlocks: number])[]): LedgerState {
  const state = emptyLedger(nodeOf(2, 16));
  const parts = held.map(([cores, memoryBlocks], at) => {
    const gpuUuid = state.node.gpus[at]?.gpu.uuid ?? '';
    return { gpuUuid, cores, memoryBlocks };
  });
  const container = { podUid: 'old', namespace: 'n', pod: 'old', container: 'main' };
  return { ...state, legacy: [{ container, cores: 0, memoryBlocks: 0, parts, gpusKnown: true, missingSince: null }] };
}

/** The kubelet admits one container; the index of its GPU, or the refusal. */
function admit(
  state: LedgerState,
  pending: readonly PendingContainer[],
  { cores, memoryBlocks }: PendingContainer,
  order: readonly ResourceKind[],
): { readonly state: LedgerState; readonly gpu: number | string | undefined } {
  let next = state;
  let gpu: number | undefined;
  for (const kind of order) {
    const size = kind === 'core' ? cores : memoryBlocks;
    const held = new Set([...usage(next).values()].flatMap(({ coreIds, memoryIds }) => [...coreIds, ...memoryIds]));
    const all = next.node.gpus.flatMap(({ gpu: each }) => next.node.ids.all(each, kind));
    const available = all.filter((id) => !held.has(id));
    const preferred = prefer(next, { kind, available, mustInclude: [], size, pending });
    if (!preferred.ok) return { state: next, gpu: preferred.reason };
    const booked = allocate(next, { kind, ids: preferred.ids, pending, now: 0 });
    if (!booked.ok) return { state: next, gpu: booked.reason };
    next = booked.state;
    gpu = preferred.gpus[0]?.index;
  }
  return { state: next, gpu };
}

for (const order of [
  ['core', 'memory'],
  ['memory', 'core'],
] as const) {
  test(`a container leaves the only GPU that the next one of its pod fits on, ${order[0]} first`, (t) => {
    const first = waiting('first', 30, 4);
    const second = waiting('second', 60, 12);
    const node = nodeWith([40, 4], [30, 12]);
    const one = admit(node, [first, second], first, order);
    t.equal(one.gpu, 1, 'GPU 0 has fewer free cores, and is the only one with 12 blocks');
    t.equal(admit(one.state, [first, second], second, order).gpu, 0);
    t.end();
  });

  test(`containers of one pod go to the GPUs that the extender predicted, ${order[0]} first`, (t) => {
    const first = waiting('first', 30, 4, [1]);
    const second = waiting('second', 30, 4, [0]);
    const one = admit(nodeWith([40, 4]), [first, second], first, order);
    t.equal(one.gpu, 1, 'GPU 0 has fewer free cores');
    t.equal(admit(one.state, [first, second], second, order).gpu, 0);
    t.end();
  });

  test(`an init container goes where the extender predicted the container after it, ${order[0]} first`, (t) => {
    const init = { ...waiting('init', 30, 4), isInit: true };
    const main = waiting('main', 30, 8, [1]);
    t.equal(admit(nodeWith([40, 4]), [init, main], init, order).gpu, 1, 'GPU 0 has fewer free cores');
    t.end();
  });
}

test('memory before its cores is charged to a GPU that has it, and refused where none has', (t) => {
  const node = nodeWith([0, 12], [0, 4]);
  const idsOf = (count: number) => node.node.ids.all(node.node.gpus[0]?.gpu as never, 'memory').slice(0, count);
  const ask = (count: number) => allocate(node, { kind: 'memory', ids: idsOf(count), pending: null, now: 0 });
  const moved = ask(8);
  t.ok(moved.ok);
  if (moved.ok)
    t.same(
      [...usage(moved.state).values()].map(({ memoryIds }) => memoryIds.size),
      [0, 8],
    );
  t.match(ask(14), { ok: false, code: 'nothing-fits', reason: /14 blocks of 256 MiB, which no GPU has free/ });
  t.end();
});
