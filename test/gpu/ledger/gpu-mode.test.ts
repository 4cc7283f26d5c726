import fc from 'fast-check';
import { test } from 'tap';
import { DeviceIds } from '../../../src/gpu/device-id.js';
import type { Gpu } from '../../../src/gpu/gpu.js';
import { allocate } from '../../../src/gpu/ledger/allocate.js';
import { chargeUnit, withoutUnits } from '../../../src/gpu/ledger/charge-unit.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../../src/gpu/ledger/checkpoint.js';
import type { ClaimUnit } from '../../../src/gpu/ledger/claim-unit.js';
import { isOffered, type ClaimGpus } from '../../../src/gpu/ledger/gpu-mode.js';
import { handOver } from '../../../src/gpu/ledger/hand-over.js';
import { prefer } from '../../../src/gpu/ledger/prefer.js';
import { releaseEnded } from '../../../src/gpu/ledger/release.js';
import { emptyLedger, slots, usage, type LedgerNode, type LedgerState } from '../../../src/gpu/ledger/state.js';
import { uniformTopology } from '../../../src/gpu/topology/topology.js';
import { cases } from '../../cases.js';

const GPUS: readonly Gpu[] = [0, 1].map((index) => ({
  index,
  minor: index,
  uuid: `GPU-${index}0000000`,
  pciBusId: `00000000:0${index}:00.0`,
  model: 'NVIDIA H200',
  memoryBytes: 4 * 2 ** 30,
  numaNode: null,
}));

const NODE: LedgerNode = {
  gpus: GPUS.map((gpu) => ({ gpu, usable: true, processCount: 0 })),
  topology: uniformTopology(2),
  ids: new DeviceIds(GPUS),
  shareMode: true,
  wholeInstances: false,
};

const unit = (id: number, gpu: number, cores: number, blocks: number): ClaimUnit => ({
  id: `unit-${id}`,
  claim: { uid: `claim-${id}`, namespace: 'team', name: `c${id}` },
  request: 'gpu',
  devices: [
    {
      request: 'gpu',
      pool: 'p',
      device: `d${gpu}`,
      shareId: null,
      gpuUuid: GPUS[gpu]?.uuid ?? '',
      cores,
      memoryBlocks: blocks,
    },
  ],
  admin: false,
  softLimit: null,
  slice: `unit-${id}`,
  consumers: [],
  phase: 'prepared',
  chargedAt: 0,
  missingSince: null,
});

type Step =
  | { readonly do: 'claim'; readonly id: number; readonly gpu: number; readonly cores: number; readonly blocks: number }
  | { readonly do: 'unclaim'; readonly id: number }
  | { readonly do: 'pod'; readonly cores: number; readonly blocks: number }
  | { readonly do: 'end'; readonly at: number }
  | { readonly do: 'restart'; readonly gpus: ClaimGpus; readonly checkpoint: boolean }
  | { readonly do: 'hand-over'; readonly answers: boolean };

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('claim' as const),
        id: fc.nat({ max: 5 }),
        gpu: fc.nat({ max: 1 }),
        cores: fc.integer({ min: 1, max: 100 }),
        blocks: fc.integer({ min: 1, max: 16 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('unclaim' as const), id: fc.nat({ max: 5 }) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('pod' as const),
        cores: fc.integer({ min: 1, max: 100 }),
        blocks: fc.integer({ min: 1, max: 16 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const), at: fc.nat({ max: 5 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('restart' as const),
        gpus: fc.constantFrom<ClaimGpus>('none', 'every', new Set([GPUS[0]?.uuid ?? ''])),
        checkpoint: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('hand-over' as const), answers: fc.boolean() }) },
  ),
  { maxLength: 40 },
);

/**
 * A node whose kubelet and scheduler each keep their own account: what they hold is the truth, whatever the agent
 * forgets.
 */
class World {
  state: LedgerState = emptyLedger(NODE);
  readonly claims = new Map<number, ClaimUnit>();
  readonly pods: {
    readonly uid: string;
    readonly coreIds: readonly string[];
    readonly memoryIds: readonly string[];
  }[] = [];
  #next = 0;

  run(step: Step): void {
    switch (step.do) {
      case 'claim': {
        if (this.claims.has(step.id)) return;
        const wanted = unit(step.id, step.gpu, step.cores, step.blocks);
        const charged = chargeUnit(this.state, wanted);
        if (!charged.ok) return;
        this.state = charged.state;
        this.claims.set(step.id, wanted);
        return;
      }
      case 'unclaim':
        this.claims.delete(step.id);
        this.state = withoutUnits(this.state, [`unit-${step.id}`]);
        return;
      case 'pod':
        this.#admit(step.cores, step.blocks);
        return;
      case 'end': {
        const [pod] = this.pods.splice(step.at % Math.max(1, this.pods.length), 1);
        if (pod !== undefined) this.state = releaseEnded(this.state, new Set([pod.uid])).state;
        return;
      }
      case 'restart':
        this.#restart(step.gpus, step.checkpoint);
        return;
      case 'hand-over': {
        const allocated = new Set(
          [...this.claims.values()].flatMap(({ devices }) => devices.map(({ gpuUuid }) => gpuUuid)),
        );
        const free = new Set(GPUS.map(({ uuid }) => uuid).filter((uuid) => !allocated.has(uuid)));
        this.state = handOver(this.state, { freeOfClaims: step.answers ? free : null });
      }
    }
  }

  /** The kubelet offers its free ids of the node and takes the preferred ones. */
  #admit(cores: number, blocks: number): void {
    const held = new Set(this.pods.flatMap((pod) => [...pod.coreIds, ...pod.memoryIds]));
    const offered = (kind: 'core' | 'memory'): string[] =>
      GPUS.filter(({ uuid }) => isOffered(this.state, uuid, 'plugin')).flatMap((gpu) =>
        NODE.ids.all(gpu, kind).filter((id) => !held.has(id)),
      );
    const before = this.state;
    const uid = `pod-${(this.#next += 1)}`;
    const ids = { core: [] as readonly string[], memory: [] as readonly string[] };
    for (const [kind, size] of [
      ['core', cores],
      ['memory', blocks],
    ] as const) {
      const available = offered(kind);
      if (available.length < size) {
        this.state = before;
        return;
      }
      const preferred = prefer(this.state, { kind, available, mustInclude: [], size, pending: null });
      const chosen = preferred.ok ? preferred.ids : [];
      const taken = chosen.length === size ? allocate(this.state, { kind, ids: chosen, pending: null, now: 0 }) : null;
      if (taken?.ok !== true) {
        this.state = { ...before, open: null };
        return;
      }
      this.state = taken.state;
      ids[kind] = chosen;
    }
    const owner = { podUid: uid, namespace: 'team', pod: uid, container: 'main' };
    const allocations = new Map(
      [...this.state.allocations].map(([id, allocation]) =>
        allocation.owners.length === 0
          ? [id, { ...allocation, owners: [owner], phase: 'started' as const }]
          : [id, allocation],
      ),
    );
    this.state = { ...this.state, allocations, open: null };
    this.pods.push({ uid, coreIds: ids.core, memoryIds: ids.memory });
  }

  /** The agent restarts, with its checkpoint or with what the kubelet and the API server report. */
  #restart(claimGpus: ClaimGpus, checkpoint: boolean): void {
    const decoded = decodeCheckpoint(encodeCheckpoint(this.state));
    if (!decoded.ok || decoded.format !== 'current') throw new Error('the checkpoint is not read back');
    const { allocations, units, modes } = decoded.content;
    this.state = {
      ...emptyLedger(NODE, claimGpus),
      allocations: new Map(allocations.map((entry) => [entry.id, entry])),
      units: new Map(units.map((entry) => [entry.id, entry])),
      modes: checkpoint ? modes : new Map(),
    };
  }

  faults(): string[] {
    const faults: string[] = [];
    for (const { uuid } of GPUS) {
      const parts = [...this.claims.values()].flatMap(({ devices }) =>
        devices.filter(({ gpuUuid }) => gpuUuid === uuid),
      );
      const claimed = parts.reduce((sum, { cores }) => sum + cores, 0);
      const claimedBlocks = parts.reduce((sum, { memoryBlocks }) => sum + memoryBlocks, 0);
      const held = usage(this.state).get(uuid);
      if (claimed + (held?.coreIds.size ?? 0) > 100) faults.push(`${uuid}: ${claimed} and ${held?.coreIds.size} cores`);
      if (claimedBlocks + (held?.memoryIds.size ?? 0) > 16)
        faults.push(`${uuid}: ${claimedBlocks} and ${held?.memoryIds.size} blocks`);
      if (isOffered(this.state, uuid, 'plugin') && isOffered(this.state, uuid, 'claims'))
        faults.push(`${uuid} goes both ways`);
    }
    if (this.state.units.size !== this.claims.size) faults.push('a claim is forgotten');
    if (slots(this.state).some(({ freeCores, freeMemoryBytes }) => freeCores < 0 || freeMemoryBytes < 0))
      faults.push('less than nothing is free');
    return faults;
  }
}

test('no GPU is allocated beyond its capacity, for any order of claims, device plugin requests and restarts', (t) => {
  fc.assert(
    fc.property(steps, (history) => {
      const world = new World();
      for (const step of history) {
        world.run(step);
        const faults = world.faults();
        if (faults.length > 0) throw new Error(`${JSON.stringify(step)}: ${faults.join(', ')}`);
      }
    }),
    { numRuns: cases(400, 3_000) },
  );
  t.end();
});

test('a GPU changes its mode when no container holds it, and is offered in no mode before that', (t) => {
  const world = new World();
  world.run({ do: 'pod', cores: 30, blocks: 4 });
  const [pod] = world.pods;
  const uuid = NODE.ids.decode(pod?.coreIds[0] ?? '')?.gpuUuid ?? '';
  world.run({ do: 'restart', gpus: 'every', checkpoint: true });
  world.run({ do: 'hand-over', answers: false });
  t.notOk(isOffered(world.state, uuid, 'claims'));
  t.notOk(isOffered(world.state, uuid, 'plugin'));
  world.run({ do: 'end', at: 0 });
  world.run({ do: 'hand-over', answers: false });
  t.ok(isOffered(world.state, uuid, 'claims'));
  world.run({ do: 'restart', gpus: 'none', checkpoint: true });
  world.run({ do: 'hand-over', answers: false });
  t.notOk(isOffered(world.state, uuid, 'plugin'), 'the GPU keeps its mode while the API server may still list a claim');
  world.run({ do: 'hand-over', answers: true });
  t.ok(isOffered(world.state, uuid, 'plugin'));
  t.end();
});

test('a refusal names the holder of the GPU', (t) => {
  const state: LedgerState = handOver(emptyLedger(NODE, 'every'), { freeOfClaims: null });
  const first = chargeUnit(state, unit(1, 0, 80, 8));
  t.ok(first.ok);
  const second = chargeUnit(first.ok ? first.state : state, unit(2, 0, 30, 8));
  t.match(second, {
    ok: false,
    reason:
      'claim team/c2 asks for 30 cores and 2 GiB of GPU GPU-00000000; claim team/c1 holds 80 of 100 cores and 2 GiB there and has not been released',
  });
  t.match(chargeUnit(emptyLedger(NODE), unit(1, 0, 1, 1)), {
    ok: false,
    reason: /belongs to the device plugin on this node/,
  });
  t.end();
});
