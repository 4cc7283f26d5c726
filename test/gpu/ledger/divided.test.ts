import { test } from 'tap';
import { ANY_GPUS } from '../../../src/gpu/gpu-selection.js';
import { allocate } from '../../../src/gpu/ledger/allocate.js';
import { memoryLimits, type Allocation } from '../../../src/gpu/ledger/allocation.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../../src/gpu/ledger/checkpoint.js';
import { identify } from '../../../src/gpu/ledger/identify.js';
import type { PendingContainer } from '../../../src/gpu/ledger/pending.js';
import { prefer } from '../../../src/gpu/ledger/prefer.js';
import { emptyLedger, slots, type LedgerState } from '../../../src/gpu/ledger/state.js';
import { MEMORY_BLOCK_BYTES, type ResourceKind } from '../../../src/gpu/resources.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';
import { withNvlinks } from '../topology/machines.js';
import { nodeOf } from './kubelet-model.js';

const ORDERS = [
  ['core', 'memory'],
  ['memory', 'core'],
] as const;

function waiting(cores: number, memoryBlocks: number, gpus: number, hint: readonly number[] = []): PendingContainer {
  return { podUid: `${cores}/${gpus}`, container: 'main', cores, memoryBlocks, hint, selection: { ...ANY_GPUS, gpus } };
}

function preferred(
  state: LedgerState,
  kind: ResourceKind,
  { cores, memoryBlocks }: PendingContainer,
  all: readonly PendingContainer[] | null,
) {
  const held = new Set(
    [...state.allocations.values()].flatMap(({ parts }) =>
      parts.flatMap(({ coreIds, memoryIds }) => [...coreIds, ...memoryIds]),
    ),
  );
  const available = state.node.gpus.flatMap(({ gpu }) => state.node.ids.all(gpu, kind)).filter((id) => !held.has(id));
  return prefer(state, {
    kind,
    available,
    mustInclude: [],
    size: kind === 'core' ? cores : memoryBlocks,
    pending: all,
  });
}

/** Admits a container as the kubelet does; the reason of a refusal, or the state and its allocation. */
function admit(
  before: LedgerState,
  wanted: PendingContainer,
  order: readonly ResourceKind[],
): { readonly state: LedgerState; readonly allocation: Allocation } | string {
  let state = before;
  let allocation: Allocation | null = null;
  for (const kind of order) {
    const preference = preferred(state, kind, wanted, [wanted]);
    if (!preference.ok) return preference.reason;
    const answer = allocate(state, { kind, ids: preference.ids, pending: [wanted], now: 0 });
    if (!answer.ok) return answer.reason;
    state = answer.state;
    allocation = answer.allocation;
  }
  return allocation === null ? 'no allocation' : { state, allocation };
}

const partsOf = ({ node }: LedgerState, { parts }: Allocation) =>
  parts.map(({ gpuUuid, coreIds, memoryIds }) => {
    const index = node.gpus.find(({ gpu }) => gpu.uuid === gpuUuid)?.gpu.index;
    const own = [...coreIds, ...memoryIds].every((id) => node.ids.decode(id)?.gpuUuid === gpuUuid);
    return [index, coreIds.length, memoryIds.length, own];
  });

for (const order of ORDERS) {
  test(`a request is divided over linked GPUs, and the ids name them, ${order[0]} first`, (t) => {
    // NVLinks join 0 with 2 and 1 with 3.
    const links = [
      [0, 2, 4],
      [1, 3, 4],
    ] as const;
    const state = emptyLedger({ ...nodeOf(4, 40), topology: withNvlinks(uniformTopology(4), links) });
    const given = admit(state, waiting(100, 32, 2), order);
    if (typeof given === 'string') throw new Error(given);
    t.same(partsOf(given.state, given.allocation), [
      [0, 50, 16, true],
      [2, 50, 16, true],
    ]);
    t.same([...memoryLimits(given.allocation).values()], [16 * MEMORY_BLOCK_BYTES, 16 * MEMORY_BLOCK_BYTES]);
    t.same(
      slots(given.state).map(({ freeCores }) => freeCores),
      [50, 100, 50, 100],
    );
    const beside = admit(given.state, waiting(100, 32, 2), order);
    if (typeof beside === 'string') throw new Error(beside);
    t.same(
      partsOf(beside.state, beside.allocation).map(([index]) => index),
      [0, 2],
      'the halves that are left come before unused GPUs',
    );
    const odd = admit(given.state, waiting(150, 20, 2, [1, 3]), order);
    if (typeof odd === 'string') throw new Error(odd);
    t.same(
      partsOf(odd.state, odd.allocation),
      [
        [1, 75, 10, true],
        [3, 75, 10, true],
      ],
      '75 cores of each, on the predicted GPUs',
    );
    const small = admit(given.state, waiting(60, 6, 3), order);
    if (typeof small === 'string') throw new Error(small);
    t.same(
      partsOf(small.state, small.allocation).map(([, cores]) => cores),
      [20, 20, 20],
    );
    t.end();
  });

  test(`requests that cannot be divided are refused with what to ask for, ${order[0]} first`, (t) => {
    const state = emptyLedger(nodeOf(2, 40));
    const refusal = (cores: number, blocks: number, gpus: number): string => {
      const given = admit(state, waiting(cores, blocks, gpus), order);
      return typeof given === 'string' ? given : 'admitted';
    };
    t.match(refusal(75, 32, 2), /vcuda-core: 75 cannot be divided evenly over 2 GPUs; ask for a multiple of 2/);
    t.match(refusal(100, 31, 2), /vcuda-memory: 31 cannot be divided evenly over 2 GPUs/);
    t.match(refusal(300, 32, 2), /vcuda-gpus is "2", but tencent.com\/vcuda-core: 300 is more than 2 whole GPUs/);
    t.match(refusal(100, 32, 4), /on each of 4 GPUs; 2 of 2 have room \(0, 1\)|on each of 4 GPUs/);
    t.equal(refusal(200, 32, 2), 'admitted', 'two whole GPUs');
    t.end();
  });
}

test('parts need memory, and a node that does not share GPUs has none', (t) => {
  const wanted = waiting(100, 0, 2);
  const state = emptyLedger(nodeOf(2, 40));
  t.match(preferred(state, 'core', wanted, [wanted]), { ok: false, reason: /50 is a part of a GPU and needs/ });
  const whole = emptyLedger({ ...nodeOf(2, 40), shareMode: false });
  const other = waiting(100, 32, 2);
  t.match(preferred(whole, 'core', other, [other]), { ok: false, reason: /this node does not share GPUs/ });
  t.end();
});

test('of containers that ask for the same amount, the ids tell which one gets parts of several GPUs', (t) => {
  const [plain, divided] = [{ ...waiting(100, 32, 1), podUid: 'plain' }, waiting(100, 32, 2)];
  const state = emptyLedger(nodeOf(3, 40));
  const ids = [0, 1].flatMap((at) => state.node.ids.all(state.node.gpus[at]?.gpu ?? never(), 'core').slice(0, 50));
  const answer = allocate(state, { kind: 'core', ids, pending: [plain, divided], now: 0 });
  if (!answer.ok || answer.allocation === null) throw new Error('refused');
  t.same(
    partsOf(answer.state, answer.allocation).map(([, cores]) => cores),
    [50, 50],
  );
  t.end();
});

for (const isNamed of [true, false])
  test(`after the loss of the checkpoint the kubelet's ids tell the parts, ${isNamed ? 'with' : 'without'} names of GPUs`, (t) => {
    const wanted = waiting(100, 32, 2);
    const given = admit(emptyLedger(nodeOf(2, 40)), wanted, ['core', 'memory']);
    if (typeof given === 'string') throw new Error(given);
    const { parts } = given.allocation;
    const answer = identify(
      emptyLedger(nodeOf(2, 40)),
      {
        container: { podUid: 'p', namespace: 'd', pod: 'p', container: 'main' },
        coreIds: parts.flatMap(({ coreIds }) => coreIds),
        memoryIds: parts.flatMap(({ memoryIds }) => memoryIds),
        gpuNames: isNamed ? parts.map(({ gpuUuid }) => gpuUuid) : [],
        isListed: true,
      },
      0,
    );
    if (!answer.ok) throw new Error(answer.reason);
    t.same(partsOf(answer.state, answer.allocation), partsOf(given.state, given.allocation));
    const read = decodeCheckpoint(encodeCheckpoint(answer.state));
    t.match(read, { ok: true });
    if (read.ok && read.format === 'current') t.same(read.content.allocations[0]?.parts, answer.allocation.parts);
    t.end();
  });

function never(): never {
  throw new Error('no such GPU');
}
