import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditPolicy } from '../../../../src/agent/slices/audit/findings.js';
import { PROCESS_SLOT, USAGE_HEADER, USAGE_LAYOUT } from '../../../../src/abi/vgpu-abi.js';
import { silentLog } from '../../../../src/host/log.js';
import { Auditor } from '../../../../src/agent/slices/audit/auditor.js';
import { Monitor } from '../../../../src/agent/slices/steering/monitor.js';
import type { ContainerKnowledge } from '../../../../src/agent/runtimes/index.js';
import type { SliceNote, SliceOwner } from '../../../../src/agent/slices/ports.js';
import type { SliceSpec } from '../../../../src/agent/slices/slice.js';
import { ProcessOwners, type AdoptedContainer } from '../../../../src/agent/slices/process-owners.js';
import { ManualClock } from '../../../manual-clock.js';
import type { scratchDirectory } from '../../../scratch.js';
import { FakeGpus } from '../fake-gpu.js';
import { ALLOCATION, gpuLimits, IGNORANT, openSlices, sliceSpec } from '../node-slices.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

export const GPU = gpuLimits(0).uuid;
export const OTHER_GPU = gpuLimits(1).uuid;

/** Every process of this machine is in the one pod. */
const ONE_POD: ContainerKnowledge = {
  ...IGNORANT,
  placeOf: async () => ({ containerId: 'c', podUid: sliceSpec().owner.podUid }),
};

/** A node with one slice that an auditor checks, on a clock that the test moves. */
export async function audited(
  t: Teardown,
  policy: AuditPolicy = 'report',
  usersOf: (spec: SliceSpec) => readonly SliceOwner[] = ({ owner }) => [owner],
  freeBytes: () => number | null = () => null,
  usageBounded = false,
  knowledge = ONE_POD,
  adopted: readonly AdoptedContainer[] = [],
) {
  const node = await openSlices(t, { knowledge });
  const gpus = new FakeGpus();
  const clock = new ManualClock();
  const owners = new ProcessOwners(node.slices, knowledge, usersOf, () => adopted);
  const monitor = new Monitor({
    slices: node.slices,
    owners,
    source: gpus,
    gpus: () => [GPU, OTHER_GPU],
    clock,
    log: silentLog(),
    sampleMs: 1_000,
    onSample: (gpu) => auditor.sampled(gpu),
    monotonicNs: () => BigInt(clock.now()) * 1_000_000n,
  });
  const notes: SliceNote[] = [];
  const told: string[] = [];
  const evicted: string[] = [];
  const auditor: Auditor = new Auditor({
    slices: node.slices,
    usageBounded,
    freeBytes,
    gpus: () => monitor.gpus,
    owners,
    notices: {
      note: (owner, note) => {
        notes.push(note);
        told.push(owner.pod);
      },
    },
    evictor: { evict: (owner, why) => void evicted.push(`${owner.pod}: ${why}`) },
    policy,
    clock,
    log: silentLog(),
  });
  monitor.start();
  auditor.start();
  t.teardown(async () => {
    auditor.stop();
    monitor.stop();
  });
  await node.slices.start(sliceSpec());
  const usage = join(node.base, ALLOCATION, 'usage/vgpu.usage');
  return {
    node,
    gpus,
    auditor,
    notes,
    told,
    evicted,
    usage,
    codes: () => auditor.findings(ALLOCATION).map(({ code }) => code),
    /** One turn of the checks of files. */
    turn: () => clock.advance(100),
    async seconds(count: number): Promise<void> {
      for (let second = 0; second < count; second += 1) {
        clock.advance(1_000);
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      }
    },
    /** Runs steps of 100 ms. */
    async steps(count: number, turns = 10): Promise<void> {
      for (let step = 0; step < count; step += 1) {
        clock.advance(100);
        for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      }
    },
    /** Writes the slot of a process that passed its self test, as the library does. */
    register(slot: number, pid: number, startTicks: number, selfTest = 0b11111): void {
      const file = readFileSync(usage);
      const at = USAGE_LAYOUT.slots + slot * PROCESS_SLOT.structSize;
      file.writeUInt32LE(slot + 1, USAGE_HEADER.slotHigh);
      file.writeBigUInt64LE((BigInt(startTicks) << 24n) | (BigInt(pid) << 2n) | 1n, at + PROCESS_SLOT.owner);
      file.writeUInt32LE(selfTest, at + PROCESS_SLOT.selfTest);
      file.write('test', at + PROCESS_SLOT.name);
      writeFileSync(usage, file);
    },
  };
}
