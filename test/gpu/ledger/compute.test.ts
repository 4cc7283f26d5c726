import fc from 'fast-check';
import { test } from 'tap';
import { DeviceIds } from '../../../src/gpu/device-id.js';
import type { Gpu } from '../../../src/gpu/gpu.js';
import { ANY_GPUS } from '../../../src/gpu/gpu-selection.js';
import { allocate } from '../../../src/gpu/ledger/allocate.js';
import { allocationId } from '../../../src/gpu/ledger/allocation.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../../src/gpu/ledger/checkpoint.js';
import { identify } from '../../../src/gpu/ledger/identify.js';
import type { PendingContainer } from '../../../src/gpu/ledger/pending.js';
import { prefer } from '../../../src/gpu/ledger/prefer.js';
import { releaseEnded } from '../../../src/gpu/ledger/release.js';
import { emptyLedger, pluginSlots, type LedgerNode, type LedgerState } from '../../../src/gpu/ledger/state.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';
import { cases } from '../../cases.js';

const GPUS = 3;

/** A node whose GPUs with these indexes are shared in multiprocessors. */
function nodeOf(smGpus: readonly number[]): LedgerNode {
  const gpus = Array.from({ length: GPUS }, (_, index): Gpu => ({
    index,
    minor: index,
    uuid: `GPU-${index}0000000`,
    pciBusId: `00000000:0${index}:00.0`,
    model: 'NVIDIA H200',
    memoryBytes: 4 * 2 ** 30,
    numaNode: null,
    ...(smGpus.includes(index) ? { compute: 'sm' } : {}),
  }));
  return {
    gpus: gpus.map((gpu) => ({ gpu, usable: true, processCount: 0 })),
    topology: uniformTopology(GPUS),
    ids: new DeviceIds(gpus),
    shareMode: true,
    wholeInstances: false,
  };
}

type Step =
  | {
      readonly do: 'pod';
      readonly cores: number;
      readonly blocks: number;
      readonly sm: boolean;
      readonly memoryFirst: boolean;
    }
  | { readonly do: 'end'; readonly at: number }
  | { readonly do: 'restart'; readonly smGpus: readonly number[] };

const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('pod' as const),
        cores: fc.constantFrom(10, 30, 50, 90, 100),
        blocks: fc.integer({ min: 1, max: 16 }),
        sm: fc.boolean(),
        memoryFirst: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const), at: fc.nat({ max: 5 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('restart' as const), smGpus: fc.subarray([0, 1, 2]) }),
    },
  ),
  { maxLength: 40 },
);

interface HeldPod {
  readonly uid: string;
  readonly sm: boolean;
  readonly coreIds: readonly string[];
  readonly memoryIds: readonly string[];
}

class World {
  state: LedgerState;
  readonly pods: HeldPod[] = [];
  readonly refused: string[] = [];
  #next = 0;

  constructor(smGpus: readonly number[] = [0]) {
    this.state = emptyLedger(nodeOf(smGpus));
  }

  run(step: Step): void {
    if (step.do === 'pod') this.#admit(step);
    else if (step.do === 'end') {
      const [pod] = this.pods.splice(step.at % Math.max(1, this.pods.length), 1);
      if (pod !== undefined) this.state = releaseEnded(this.state, new Set([pod.uid])).state;
    } else {
      const decoded = decodeCheckpoint(encodeCheckpoint(this.state));
      if (!decoded.ok || decoded.format !== 'current') throw new Error('the checkpoint is not read back');
      const allocations = new Map(decoded.content.allocations.map((entry) => [entry.id, entry]));
      this.state = { ...emptyLedger(nodeOf(step.smGpus)), allocations };
    }
  }

  /** The kubelet offers what is free by its own account, and takes the preferred ids. */
  #admit({ cores, blocks, sm, memoryFirst }: Extract<Step, { do: 'pod' }>): void {
    const uid = `pod-${(this.#next += 1)}`;
    const container: PendingContainer = {
      podUid: uid,
      container: 'main',
      cores,
      memoryBlocks: blocks,
      hint: [],
      ...(sm ? { selection: { ...ANY_GPUS, compute: 'sm' as const } } : {}),
    };
    const held = new Set(this.pods.flatMap((pod) => [...pod.coreIds, ...pod.memoryIds]));
    const before = this.state;
    const ids = { core: [] as readonly string[], memory: [] as readonly string[] };
    for (const kind of memoryFirst ? (['memory', 'core'] as const) : (['core', 'memory'] as const)) {
      const size = kind === 'core' ? cores : blocks;
      const { node } = this.state;
      const available = node.gpus.flatMap(({ gpu }) => node.ids.all(gpu, kind)).filter((id) => !held.has(id));
      const request = { kind, available, mustInclude: [], size, pending: [container] };
      const preferred = available.length < size ? null : prefer(this.state, request);
      const chosen = preferred?.ok === true ? preferred.ids : [];
      const taken =
        chosen.length === size
          ? allocate(this.state, { kind, ids: chosen, pending: [container], now: 0 })
          : preferred?.ok === false
            ? preferred
            : null;
      if (taken === null || !taken.ok || !('state' in taken)) {
        if (taken !== null && !taken.ok) this.refused.push(taken.reason);
        this.state = { ...before, open: null };
        return;
      }
      this.state = taken.state;
      ids[kind] = chosen;
    }
    const owner = { podUid: uid, namespace: 'team', pod: uid, container: 'main' };
    const holder = { container: owner, coreIds: ids.core, memoryIds: ids.memory, gpuNames: [], isListed: true };
    const started = identify(this.state, holder, 0);
    if (!started.ok) throw new Error(started.reason);
    this.state = started.state;
    this.pods.push({ uid, sm, coreIds: ids.core, memoryIds: ids.memory });
  }

  faults(): string[] {
    const faults: string[] = [];
    const ways = new Map<string, Set<boolean>>();
    for (const pod of this.pods) {
      const allocation = this.state.allocations.get(allocationId(pod.coreIds));
      if (allocation === undefined) faults.push(`${pod.uid} has no allocation`);
      if ((allocation?.compute === 'sm') !== pod.sm) faults.push(`${pod.uid} shares in another way than it asked for`);
      for (const { gpuUuid } of allocation?.parts ?? [])
        ways.set(gpuUuid, (ways.get(gpuUuid) ?? new Set<boolean>()).add(pod.sm));
    }
    for (const [uuid, both] of ways) if (both.size > 1) faults.push(`${uuid} is shared in time and in multiprocessors`);
    return faults;
  }
}

test('no history of pods and restarts with other GPUs mixes time and multiprocessors on a GPU', (t) => {
  let admitted = 0;
  fc.assert(
    fc.property(steps, (history) => {
      const world = new World();
      for (const step of history) {
        world.run(step);
        const faults = world.faults();
        if (faults.length > 0) throw new Error(`${JSON.stringify(step)}: ${faults.join(', ')}`);
      }
      admitted += world.pods.filter(({ sm }) => sm).length;
    }),
    { numRuns: cases(200, 2_000) },
  );
  t.ok(admitted > 100, `${admitted} pods share multiprocessors at the end`);
  t.end();
});

test('a GPU whose way of sharing changes gets no new containers until those of the other way have ended', (t) => {
  const world = new World([]);
  const pod = { do: 'pod', cores: 30, blocks: 4, memoryFirst: false } as const;
  world.run({ ...pod, sm: false });
  world.run({ do: 'restart', smGpus: [0] });
  t.same(
    pluginSlots(world.state).map(({ usable }) => usable),
    [false, true, true],
  );
  world.run({ ...pod, sm: true });
  t.match(world.refused, [/0 is unhealthy or excluded.*annotation tencent.com\/vcuda-compute: sm/]);
  world.run({ do: 'end', at: 0 });
  world.run({ ...pod, sm: true });
  t.equal(world.pods.length, 1);
  world.run({ do: 'restart', smGpus: [] });
  t.same(
    pluginSlots(world.state).map(({ usable }) => usable),
    [false, true, true],
  );
  t.end();
});

test('a container that shares multiprocessors has one GPU at most', (t) => {
  const world = new World([0, 1]);
  world.run({ do: 'pod', cores: 200, blocks: 16, sm: true, memoryFirst: false });
  t.match(world.refused, [/vcuda-compute is "sm", which is for one GPU per container, but .*: 200 is on 2 GPUs/]);
  world.run({ do: 'pod', cores: 100, blocks: 16, sm: true, memoryFirst: false });
  t.equal(world.pods.length, 1);
  t.end();
});
