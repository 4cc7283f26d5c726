import { test } from 'tap';
import { allocate } from '../../../src/gpu/ledger/allocate.js';
import type { PendingContainer } from '../../../src/gpu/ledger/pending.js';
import { prefer } from '../../../src/gpu/ledger/prefer.js';
import { ownersOf } from '../../../src/gpu/ledger/state.js';
import { emptyLedger, type LedgerState } from '../../../src/gpu/ledger/state.js';
import type { ResourceKind } from '../../../src/gpu/resources.js';
import { nodeOf } from './kubelet-model.js';

const waiting = (podUid: string, ...hint: number[]): PendingContainer => ({
  podUid,
  container: 'main',
  cores: 10,
  memoryBlocks: 4,
  hint,
});

/**
 * The kubelet asks for one resource of a container while all of `pending` wait; returns the GPUs and the state of the
 * ledger.
 */
function ask(
  state: LedgerState,
  kind: ResourceKind,
  pending: readonly PendingContainer[],
): { readonly gpus: readonly number[]; readonly state: LedgerState } {
  const size = kind === 'core' ? 10 : 4;
  const available = state.node.gpus
    .flatMap(({ gpu }) => state.node.ids.all(gpu, kind))
    .filter((id) => !held(state).has(id));
  const preference = prefer(state, { kind, available, mustInclude: [], size, pending });
  if (!preference.ok) throw new Error(preference.reason);
  const answer = allocate(state, { kind, ids: preference.ids, pending, now: 0 });
  if (!answer.ok) throw new Error(answer.reason);
  return { gpus: ownersOf(state, preference.ids), state: answer.state };
}

function held(state: LedgerState): Set<string> {
  const parts = [...state.allocations.values()].flatMap((allocation) => allocation.parts);
  return new Set([
    ...parts.flatMap((part) => [...part.coreIds, ...part.memoryIds]),
    ...state.halves.flatMap((half) => half.memoryIds),
  ]);
}

for (const order of [
  ['core', 'memory'],
  ['memory', 'core'],
] as const) {
  test(`equal containers that wait together get the GPUs predicted for them, each once, ${order[0]} first`, (t) => {
    const pending = [waiting('a', 2), waiting('b', 0), waiting('c', 2), waiting('d', 1)];
    let state = emptyLedger(nodeOf(4, 16));
    const got: number[] = [];
    for (let round = 0; round < pending.length; round += 1) {
      for (const kind of order) {
        const answer = ask(state, kind, pending);
        state = answer.state;
        if (kind === order[0]) got.push(...answer.gpus);
      }
    }
    t.same(got, [2, 0, 2, 1], 'none of them has started');
    t.end();
  });
}

test('a container whose prediction failed does not block the next one', (t) => {
  const pending = [waiting('first', 9), waiting('second', 1)];
  const first = ask(emptyLedger(nodeOf(2, 16)), 'core', pending);
  t.same(first.gpus, [0], 'the node has no GPU 9');
  const { state } = ask(first.state, 'memory', pending);
  t.same(ask(state, 'core', pending).gpus, [1]);
  t.end();
});
