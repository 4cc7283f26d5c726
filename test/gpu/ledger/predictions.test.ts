import { test } from 'tap';
import { ANY_GPUS } from '../../../src/gpu/gpu-selection.js';
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

/** A node whose GPUs are of these models, 16 blocks each, near NUMA node 0 up to the middle and 1 behind it. */
function mixedNode(models: readonly string[]): LedgerState {
  const node = nodeOf(models.length, 16);
  const gpus = node.gpus.map((entry, at) => ({
    ...entry,
    gpu: { ...entry.gpu, model: models[at] ?? '', numaNode: at < models.length / 2 ? 0 : 1 },
  }));
  return emptyLedger({ ...node, gpus });
}

for (const order of [
  ['core', 'memory'],
  ['memory', 'core'],
] as const) {
  test(`containers that wait together get GPUs of the models that they name, ${order[0]} first`, (t) => {
    const naming = (uid: string, model: string): PendingContainer => ({
      ...waiting(uid),
      selection: { ...ANY_GPUS, models: [model] },
    });
    const pending = [naming('a', 'A10'), naming('b', 'T4'), waiting('c'), naming('d', 'A10')];
    let state = mixedNode(['T4', 'T4', 'A10', 'A10']);
    const got: number[] = [];
    for (let round = 0; round < pending.length; round += 1) {
      for (const kind of order) {
        const answer = ask(state, kind, pending);
        state = answer.state;
        if (kind === order[0]) got.push(...answer.gpus);
      }
    }
    t.ok([2, 3].includes(got[0] ?? -1) && [0, 1].includes(got[1] ?? -1) && [2, 3].includes(got[3] ?? -1), got.join());
    t.end();
  });
}

test('ids that the kubelet chose on its own go to the GPUs that the annotations allow', (t) => {
  const state = mixedNode(['T4', 'A10']);
  const pending = [{ ...waiting('a', 0), selection: { ...ANY_GPUS, excludedModels: ['T4'] } }];
  const t4 = state.node.gpus[0]?.gpu;
  const ids = t4 === undefined ? [] : state.node.ids.all(t4, 'core').slice(0, 10);
  const answer = allocate(state, { kind: 'core', ids, pending, now: 0 });
  t.match(answer, { ok: true, allocation: { parts: [{ gpuUuid: state.node.gpus[1]?.gpu.uuid ?? '' }] } });
  t.end();
});

test('whole GPUs near one NUMA node are kept together, or refused with the annotation', (t) => {
  const state = mixedNode(['T4', 'T4', 'T4', 'T4']);
  const request = (cores: number) => {
    const pending = [{ ...waiting('a'), cores, memoryBlocks: 0, selection: { ...ANY_GPUS, sameNuma: true } }];
    const available = state.node.gpus.flatMap(({ gpu }) => state.node.ids.all(gpu, 'core'));
    return prefer(state, { kind: 'core', available, mustInclude: [], size: cores, pending });
  };
  t.match(request(200), { ok: true, gpus: [{ numaNode: 0 }, { numaNode: 0 }] });
  t.match(request(300), { ok: false, code: 'nothing-fits', reason: /near one NUMA node.*tencent\.com\/same-numa/ });
  t.end();
});

test('a GPU whose NUMA node is unknown is near no other GPU', (t) => {
  const made = mixedNode(['T4', 'T4']);
  const gpus = made.node.gpus.map((entry) => ({ ...entry, gpu: { ...entry.gpu, numaNode: null } }));
  const state = { ...made, node: { ...made.node, gpus } };
  const request = (cores: number) => {
    const pending = [{ ...waiting('a'), cores, memoryBlocks: 0, selection: { ...ANY_GPUS, sameNuma: true } }];
    const available = gpus.flatMap(({ gpu }) => state.node.ids.all(gpu, 'core'));
    return prefer(state, { kind: 'core', available, mustInclude: [], size: cores, pending });
  };
  t.match(request(200), { ok: false, reason: /tencent\.com\/same-numa/ });
  t.match(request(100), { ok: true });
  t.end();
});

test('a pod with a wrong annotation is refused with its text', (t) => {
  const state = mixedNode(['T4']);
  const pending = [{ ...waiting('a'), brokenRule: 'annotation tencent.com/gpu-policy is "pack"' }];
  const available = state.node.gpus.flatMap(({ gpu }) => state.node.ids.all(gpu, 'core'));
  t.match(prefer(state, { kind: 'core', available, mustInclude: [], size: 10, pending }), {
    ok: false,
    code: 'bad-annotation',
    reason: 'annotation tencent.com/gpu-policy is "pack"',
    podUid: 'a',
  });
  t.end();
});
