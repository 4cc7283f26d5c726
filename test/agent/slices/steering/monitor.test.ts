import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { silentLog } from '../../../../src/host/log.js';
import { Monitor } from '../../../../src/agent/slices/steering/monitor.js';
import { observeGpus, observeSlices, type DeviceObservation } from '../../../../src/agent/slices/observation.js';
import type { GpuProcess } from '../../../../src/gpu/sample.js';
import type { ContainerKnowledge } from '../../../../src/agent/runtimes/index.js';
import { ProcessOwners } from '../../../../src/agent/slices/process-owners.js';
import type { SliceSpec } from '../../../../src/agent/slices/slice.js';
import { ManualClock } from '../../../manual-clock.js';
import type { scratchDirectory } from '../../../scratch.js';
import { FakeContainer, FakeGpus, listed } from '../fake-gpu.js';
import { gpuLimits, IGNORANT, MIB, openSlices, sliceSpec } from '../node-slices.js';
import { greetingBytes, say } from '../container-client.js';
import { eventually } from '../../../harness/eventually.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const GPU = gpuLimits(0).uuid;
const A = 'aaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbb';
const PODS: Readonly<Record<string, string>> = { [A]: 'pod-a', [B]: 'pod-b' };
/** Pids that no process has: the kernel assigns numbers up to four million. */
const PID_A = 2_000_000_001;
const PID_B = 2_000_000_002;
const FOREIGN = 2_000_000_003;

/** The test assigns pids to containers. */
const BY_PID: ContainerKnowledge = {
  ...IGNORANT,
  placeOf: async (pid) =>
    ({ [PID_A]: { containerId: 'a', podUid: 'pod-a' }, [PID_B]: { containerId: 'b', podUid: 'pod-b' } })[pid] ?? null,
};

async function monitored(t: Teardown, knowledge: ContainerKnowledge = BY_PID) {
  const node = await openSlices(t, { knowledge });
  const gpus = new FakeGpus();
  const clock = new ManualClock();
  const start = process.hrtime.bigint();
  const startMs = clock.now();
  let wakes = 0;
  const monitor = new Monitor({
    slices: node.slices,
    owners: new ProcessOwners(node.slices, knowledge),
    source: gpus,
    gpus: () => [GPU],
    clock: {
      now: () => clock.now(),
      after: (delayMs, action) => clock.after(delayMs, action),
      every: (periodMs, action) =>
        clock.every(periodMs, () => {
          wakes += 1;
          action();
        }),
    },
    log: silentLog(),
    sampleMs: 1_000,
    monotonicNs: () => start + BigInt(clock.now() - startMs) * 1_000_000n,
  });
  monitor.start();
  t.teardown(async () => monitor.stop());
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const ticks = async (count: number, each: (tick: number) => void = () => undefined): Promise<void> => {
    for (let tick = 0; tick < count; tick += 1) {
      each(tick);
      clock.advance(100);
      await settle();
    }
  };
  const looked = (): number => monitor.gpus[0]?.samples ?? 0;
  return {
    node,
    gpus,
    monitor,
    /** Runs ticks; `each` runs before each of them. */
    ticks,
    /** Runs ticks, and counts how often the monitor's timer fires. */
    async wakeups(count: number, each?: () => void): Promise<number> {
      const before = wakes;
      await ticks(count, each);
      return wakes - before;
    },
    /** Runs ticks until the driver has answered so many more calls. */
    async samples(count: number): Promise<void> {
      for (const end = looked() + count; looked() < end;) await ticks(1);
    },
    async start(allocation: string, spec: Partial<SliceSpec> = {}): Promise<FakeContainer> {
      await node.slices.start(
        sliceSpec({
          allocation,
          owner: { podUid: PODS[allocation] ?? '', namespace: 'default', pod: allocation, container: 'main' },
          ...spec,
        }),
      );
      return new FakeContainer(node.base, allocation);
    },
    nowNs: () => start + BigInt(clock.now() - startMs) * 1_000_000n,
    device(allocation: string): DeviceObservation {
      const device = observeSlices(node.slices, monitor.gpus, () => []).find((slice) => slice.allocation === allocation)
        ?.devices[0];
      if (device === undefined) throw new Error(`nothing is seen of ${allocation}`);
      return device;
    },
    run(...processes: GpuProcess[]): void {
      gpus.running.set(GPU, processes);
    },
  };
}

test('the monitor sums the processes of the driver by container, and keeps foreign processes apart', async (t) => {
  const node = await monitored(t);
  await node.start(A);
  await node.start(B);
  node.run(listed(PID_A, 300 * MIB, 20), listed(PID_B, 100 * MIB, 5), listed(FOREIGN, 50 * MIB, 7));
  await node.ticks(11);
  t.match(node.device(A), { usedMemoryBytes: 300 * MIB, usedPercent: 20, pids: [PID_A] });
  t.match(node.device(B), { usedMemoryBytes: 100 * MIB, usedPercent: 5, pids: [PID_B] });
  t.match(node.monitor.gpus[0]?.state, { sample: { utilizationPercent: 50 }, foreignProcesses: [{ pid: FOREIGN }] });
});

test('a container is observed with its GPU from its start on, and no longer once it is removed', async (t) => {
  const node = await monitored(t);
  await node.ticks(11);
  await node.start(A);
  t.match(node.device(A), { share: Number, usedMemoryBytes: 0 }, 'before the next tick');
  t.match(observeGpus(node.monitor.gpus), [{ containers: 1 }]);
  await node.node.slices.remove(A);
  t.match(observeGpus(node.monitor.gpus), [{ containers: 0 }]);
});

test('a process that greeted belongs to its container, whatever its control group', async (t) => {
  const node = await monitored(t);
  await node.start(A);
  const socket = await say(node.node.socketPath(A), greetingBytes(1, 0));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.run(listed(process.pid, 10 * MIB, null));
  await node.ticks(11);
  t.match(node.device(A), { pids: [process.pid], usedMemoryBytes: 10 * MIB });
  socket.destroy();
});

test('in a pod with several containers the name of the container decides', async (t) => {
  const knowledge: ContainerKnowledge = {
    ...IGNORANT,
    placeOf: async () => ({ containerId: 'b', podUid: 'pod-a' }),
    nameOf: async (id) => (id === 'b' ? 'second' : null),
  };
  const node = await monitored(t, knowledge);
  await node.start(A);
  await node.start(B, { owner: { podUid: 'pod-a', namespace: 'default', pod: 'a', container: 'second' } });
  node.run(listed(PID_A, MIB, 1));
  await node.ticks(11);
  t.same(node.device(A).pids, []);
  t.same(node.device(B).pids, [PID_A]);
});

test('the container id from the runtime precedes the name, which is then not looked up', async (t) => {
  const knowledge: ContainerKnowledge = {
    ...IGNORANT,
    placeOf: async () => ({ containerId: 'b', podUid: 'pod-a' }),
    sliceOf: (id) => (id === 'b' ? B : null),
    nameOf: () => Promise.reject(new Error('nobody is to be asked')),
  };
  const node = await monitored(t, knowledge);
  await node.start(A);
  await node.start(B, { owner: { podUid: 'pod-a', namespace: 'default', pod: 'a', container: 'second' } });
  node.run(listed(PID_A, MIB, 1));
  await node.ticks(11);
  t.same(node.device(A).pids, []);
  t.same(node.device(B).pids, [PID_A]);
});

test('processes of a container that has ended disappear before the next sample', async (t) => {
  const node = await monitored(t);
  await node.start(A);
  node.run(listed(PID_A, 300 * MIB, 20));
  await node.ticks(11);
  t.match(node.device(A), { usedMemoryBytes: 300 * MIB, pids: [PID_A] });
  node.run();
  node.monitor.sampleNow(B);
  await new Promise((resolve) => setTimeout(resolve, 5));
  t.match(node.device(A), { pids: [PID_A] }, 'another slice causes no call to the driver');
  node.monitor.sampleNow(A);
  await eventually(() => node.device(A).pids.length === 0, 'the processes to be gone');
  t.equal(node.device(A).usedMemoryBytes, 0);
});

test('idle time is lent to a soft container and taken back in the tick in which its owner waits', async (t) => {
  const node = await monitored(t);
  const soft = await node.start(A, { devices: [gpuLimits(0, { share: 30, softLimit: 90 })] });
  const owner = await node.start(B, { devices: [gpuLimits(0, { share: 70 })] });
  node.run(listed(PID_A, MIB, null), listed(PID_B, MIB, null));
  await node.ticks(12);
  t.equal(soft.told(0).steering, null, 'an idle container gets no publication');
  let tick = 0;
  const work = (): void => {
    tick += 1;
    soft.count(0, { chargedNs: tick * 30_000_000, waits: tick, launches: tick });
  };
  await node.ticks(15, work);
  t.match(soft.told(0).steering, { grantPpm: 900_000, alone: true });
  t.equal(owner.told(0).steering, null);
  const before = soft.sequence;
  await node.ticks(1, () => {
    work();
    owner.count(0, { chargedNs: 1_000_000, waits: 1 });
  });
  t.match(soft.told(0).steering, { grantPpm: 300_000, alone: false });
  t.match(owner.told(0).steering, { grantPpm: null, alone: false });
  t.equal(soft.sequence, before + 1);
});

test('a new container gets back the lent part of its share in the first tick after its greeting', async (t) => {
  const node = await monitored(t);
  const soft = await node.start(A, { devices: [gpuLimits(0, { share: 30, softLimit: 90 })] });
  const owner = await node.start(B, { devices: [gpuLimits(0, { share: 70 })] });
  node.run(listed(PID_A, MIB, null));
  await node.ticks(12);
  let tick = 0;
  const work = (): void => {
    tick += 1;
    soft.count(0, { chargedNs: tick * 90_000_000, waits: tick });
  };
  await node.ticks(15, work);
  t.match(soft.told(0).steering, { grantPpm: 900_000, alone: true });
  const socket = await say(node.node.socketPath(B), greetingBytes(1, 0));
  t.teardown(() => socket.destroy());
  await eventually(() => node.node.slices.started.get(B)?.sessions.size === 1, 'the greeting');
  await node.ticks(1, () => {
    work();
    owner.count(0, { chargedNs: 40_000_000, levelAtNs: Number(node.nowNs()) + 1e9 });
  });
  t.match(soft.told(0).steering, { grantPpm: 300_000, alone: false });
});

test('a container reads the new value when the usage of the others has changed', async (t) => {
  const node = await monitored(t);
  const one = await node.start(A, { devices: [gpuLimits(0, { share: 30 })] });
  const other = await node.start(B, { devices: [gpuLimits(0, { share: 70 })] });
  node.run(listed(PID_A, MIB, null), listed(PID_B, MIB, null));
  await node.ticks(12);
  const charged = { one: 0, other: 0 };
  const work = (ms: number): void => {
    one.count(0, { chargedNs: (charged.one += 20_000_000) });
    other.count(0, { chargedNs: (charged.other += ms * 1_000_000) });
  };
  await node.ticks(30, () => work(50));
  t.ok(Math.abs((one.told(0).steering?.othersPpm ?? 0) - 500_000) < 20_000, `${one.told(0).steering?.othersPpm}`);
  t.ok(Math.abs((other.told(0).steering?.othersPpm ?? 0) - 200_000) < 20_000, `${other.told(0).steering?.othersPpm}`);
  await node.ticks(4, () => work(0));
  t.ok((one.told(0).steering?.othersPpm ?? 0) < 300_000, 'within a few ticks, not only when steering is renewed');
});

test('use by a process of no container counts against others from its second observation on', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 30 })] });
  let charged = 0;
  let company = false;
  const work = (): void => {
    container.count(0, { chargedNs: (charged += 30_000_000) });
    company ||= container.told(0).steering?.alone === false;
  };
  node.run(listed(PID_A, MIB, 30));
  await node.ticks(30, work);
  const before = node.monitor.gpus[0]?.samples ?? 0;
  await node.ticks(20, (tick) => {
    const seen = (node.monitor.gpus[0]?.samples ?? 0) > before;
    node.run(listed(PID_A, MIB, 30), ...(seen ? [] : [listed(FOREIGN, MIB, 60)]));
    if (tick > 0) work();
  });
  t.equal(company, false, 'the process was ending, or had not greeted yet');
  node.run(listed(PID_A, MIB, 30), listed(FOREIGN, MIB, 60));
  await node.ticks(30, work);
  t.match(container.told(0).steering, { alone: false, othersPpm: 500_000 });
});

test('steering is renewed while a container works, and expires when it stops', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 30 })] });
  node.run(listed(PID_A, MIB, null));
  await node.ticks(12);
  let charged = 0;
  const work = (): void => container.count(0, { chargedNs: (charged += 10_000_000) });
  await node.ticks(11, work);
  const [sequence, at] = [container.sequence, container.told(0).steering?.atNs ?? 0n];
  await node.ticks(34, work);
  t.equal(container.sequence, sequence + 2, 'before it is two seconds old, not ten times a second');
  t.ok((container.told(0).steering?.atNs ?? 0n) > at);
  await node.ticks(20);
  const after = container.sequence;
  await node.ticks(30);
  t.equal(container.sequence, after, 'an idle container gets no publication');
});

test('a container that waits because of the debt of a long kernel counts as waiting although no counter changes', async (t) => {
  const node = await monitored(t);
  const debtor = await node.start(B, { devices: [gpuLimits(0, { share: 10 })] });
  const soft = await node.start(A, { devices: [gpuLimits(0, { share: 30, softLimit: 100 })] });
  node.run(listed(PID_A, MIB, null), listed(PID_B, MIB, null));
  await node.ticks(12);
  let tick = 0;
  await node.ticks(10, () => {
    soft.count(0, { waits: ++tick, chargedNs: tick * 1_000_000 });
    debtor.count(0, { levelAtNs: node.nowNs() + 5_000_000_000n });
  });
  t.match(soft.told(0).steering, { grantPpm: 900_000, alone: false });
});

test('a container that returns what it borrows at each launch may use all that another one claims', async (t) => {
  const node = await monitored(t);
  const soft = { share: 50, softLimit: 100 };
  const service = await node.start(A, { devices: [gpuLimits(0, soft)] });
  const batch = await node.start(B, { devices: [gpuLimits(0, soft)] });
  for (const id of [A, B]) node.node.slices.started.get(id)?.tellPrecedence([{ believed: [100], floor: 5000 }]);
  node.run(listed(PID_A, MIB, null), listed(PID_B, MIB, null));
  await node.ticks(12);
  let tick = 0;
  const work = (borrowedNs: bigint | null): void => {
    tick += 1;
    service.count(0, { chargedNs: tick * 30_000_000, lentAtNs: node.nowNs() - 100_000_000n });
    const lentAtNs = borrowedNs === null ? 0n : node.nowNs() + borrowedNs;
    batch.count(0, { chargedNs: tick * 50_000_000, waits: tick, lentAtNs });
  };
  await node.ticks(10, () => work(200_000_000n));
  t.match(batch.told(0).steering, { grantPpm: 1_000_000 });
  await node.ticks(2, () => work(-1_000_000n));
  t.match(batch.told(0).steering, { grantPpm: 630_000 }, 'within its share it gives way to nobody');
  await node.ticks(10, () => work(200_000_000n));
  await node.ticks(2, () => work(null));
  t.match(batch.told(0).steering, { grantPpm: 630_000 }, 'a library of an earlier version returns nothing');
});

test('a container that uses what it says it lends is reserved what it uses', async (t) => {
  const node = await monitored(t);
  const soft = { share: 50, softLimit: 100 };
  const liar = await node.start(A, { devices: [gpuLimits(0, soft)] });
  const batch = await node.start(B, { devices: [gpuLimits(0, soft)] });
  for (const id of [A, B]) node.node.slices.started.get(id)?.tellPrecedence([{ believed: [100], floor: 5000 }]);
  node.run(listed(PID_A, MIB, null), listed(PID_B, MIB, null));
  await node.ticks(12);
  let tick = 0;
  await node.ticks(20, () => {
    tick += 1;
    liar.count(0, { chargedNs: tick * 80_000_000, lentAtNs: node.nowNs() - 100_000_000n });
    batch.count(0, { chargedNs: tick * 50_000_000, waits: tick, lentAtNs: node.nowNs() + 200_000_000n });
  });
  t.match(batch.told(0).steering, { grantPpm: 500_000 });
});

test('without driver reports on single processes charges are kept, and usage is the charged time', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 40 })] });
  node.run(listed(PID_A, null, null));
  let charged = 0;
  await node.ticks(200, () => container.count(0, { chargedNs: (charged += 25_000_000) }));
  t.match(node.device(A), { usedPercent: 25, correctionPpm: 1_000_000, controlErrorPpm: null });
});

test('charges that contradict the driver for a long time are corrected, and the control error is published', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 40 })] });
  node.run(listed(PID_A, MIB, 80));
  let tick = 0;
  const work = (): void => {
    tick += 1;
    container.count(0, { chargedNs: tick * 40_000_000, launches: tick * 200, waits: tick });
  };
  await node.ticks(70, work);
  t.equal(node.device(A).correctionPpm, 1_000_000, 'after one account');
  await node.ticks(50, work);
  const first = node.device(A).correctionPpm;
  t.ok(first > 1_100_000, `${first}`);
  t.ok(Math.abs((node.device(A).controlErrorPpm ?? 0) + 400_000) < 50_000, `${node.device(A).controlErrorPpm}`);
  await node.ticks(200, work);
  t.ok(node.device(A).correctionPpm > first);
  t.equal(container.told(0).steering?.correctionPpm, node.device(A).correctionPpm);
});

test('a share that is kept stays uncorrected, however few of its kernels a report covers', async (t) => {
  const kernelMs = 20;
  const windowMs = 1000 / 6;
  for (const share of [10, 30, 50, 70, 90]) {
    const node = await monitored(t);
    const container = await node.start(A, { devices: [gpuLimits(0, { share })] });
    const periodMs = (100 * kernelMs) / share;
    const busyMs = (ms: number): number => Math.floor(ms / periodMs) * kernelMs + Math.min(kernelMs, ms % periodMs);
    let worst = 0;
    await node.ticks(900, (tick) => {
      const nowMs = (tick + 1) * 100;
      const from = Math.floor(nowMs / windowMs - 1) * windowMs;
      node.run(listed(PID_A, MIB, Math.floor((100 * (busyMs(from + windowMs) - busyMs(from))) / windowMs)));
      const launches = Math.ceil(nowMs / periodMs);
      container.count(0, { chargedNs: launches * kernelMs * 1_000_000, launches, waits: launches });
      worst = Math.max(worst, Math.abs((container.told(0).steering?.correctionPpm ?? 1_000_000) - 1_000_000));
    });
    t.ok(worst < 10_000, `${share}: ${worst}`);
  }
});

test('the first moments of a container, for which the driver reports too little, correct nothing', async (t) => {
  const node = await monitored(t);
  // The GPU was sampled for a while: the accounts of all its containers end soon after this one begins.
  await node.ticks(31);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 90 })] });
  const socket = await say(node.node.socketPath(A), greetingBytes(1, 0));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  let charged = 0;
  let least = 1_000_000;
  const work = (): void => {
    container.count(0, { chargedNs: (charged += 90_000_000), waits: charged });
    least = Math.min(least, container.told(0).steering?.correctionPpm ?? least);
  };
  node.run(listed(process.pid, MIB, 20));
  await node.ticks(10, work);
  node.run(listed(process.pid, MIB, 90));
  await node.ticks(60, work);
  t.equal(least, 1_000_000);
  socket.destroy();
});

test('time that the driver reports beyond the charges appears as drift, and so does memory beyond the ledger', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 40 })] });
  node.run(listed(PID_A, 300 * MIB, 60));
  container.hold(0, 0, 100 * MIB);
  let charged = 0;
  await node.ticks(130, () => container.count(0, { chargedNs: (charged += 40_000_000) }));
  const { drift } = node.device(A);
  t.ok(Math.abs((drift.timePpm ?? 0) - 200_000) < 20_000, `${drift.timePpm}`);
  t.equal(drift.memoryBytes, 0, 'the published overhead is accounted for');
  container.hold(0, 0, 50 * MIB);
  t.equal(node.device(A).drift.memoryBytes, 50 * MIB);
  node.run(listed(PID_A, null, null));
  await node.ticks(70, () => container.count(0, { chargedNs: (charged += 40_000_000) }));
  t.same(
    node.device(A).drift,
    { timePpm: null, uncorrectableTimePpm: null, memoryBytes: null },
    'a driver without reports contradicts nothing',
  );
});

test('counters are current, paced or not, and increase over restarts of the container', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 100 })] });
  await node.ticks(1);
  t.match(node.device(A).counters, { launches: 0, throttledNs: 0, denied: { alloc: 0 } });
  container.count(0, { launches: 7, throttledNs: 1_000, denied: 3, peakBytes: 5 * MIB });
  t.match(node.device(A), {
    counters: { launches: 7, throttledNs: 1_000, denied: { alloc: 3, pitch: 0 } },
    peakMemoryBytes: 5 * MIB,
  });
  await node.start(A, { devices: [gpuLimits(0, { share: 100 })] });
  await node.ticks(1);
  t.match(node.device(A), { counters: { launches: 7, denied: { alloc: 3 } }, peakMemoryBytes: 0 });
  container.count(0, { launches: 2 });
  t.equal(node.device(A).counters.launches, 9);
  container.count(0, { launches: 1 });
  t.equal(node.device(A).counters.launches, 9, 'a smaller number decreases no sum');
  truncateSync(join(node.node.base, A, 'usage/vgpu.usage'), 0);
  t.match(node.device(A), { counters: { launches: 9 }, peakMemoryBytes: null });
});

test('the monitor counts samples, failed samples and foreign processes of every GPU', async (t) => {
  const node = await monitored(t);
  await node.start(A);
  await node.start(B);
  node.run(listed(PID_A, MIB, 1), listed(FOREIGN, MIB, 1));
  t.match(observeGpus(node.monitor.gpus), [{ gpuUuid: GPU, samples: 0, sample: null, containers: 2 }]);
  await node.samples(2);
  const [gpu] = observeGpus(node.monitor.gpus);
  t.match(gpu, {
    gpuUuid: GPU,
    samples: 2,
    failedSamples: 0,
    containers: 2,
    presentContainers: 1,
    foreignPids: [FOREIGN],
    adopted: [],
    processMemoryBytes: 2 * MIB,
    sample: { temperatureCelsius: 40 },
  });
  node.gpus.failure = new Error('the GPU fell off the bus');
  await node.samples(2);
  t.match(observeGpus(node.monitor.gpus), [
    { samples: 4, failedSamples: 2, sample: { atMs: gpu?.sample?.atMs }, foreignPids: [FOREIGN] },
  ]);
});

test('memory that the driver keeps for itself becomes part of the limit', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A);
  container.hold(0, 0, 100 * MIB);
  container.hold(0, 3, 50 * MIB);
  node.run(listed(PID_A, 450 * MIB, null));
  await node.samples(3);
  t.equal(container.told(0).driverOverheadBytes, 300 * MIB);
  const sequence = container.sequence;
  node.run(listed(PID_A, 450 * MIB + 1_000, null));
  await node.samples(2);
  t.equal(container.sequence, sequence, 'a few bytes cause no publication');
  container.hold(0, 0, 500 * MIB);
  await node.samples(2);
  t.equal(
    container.told(0).driverOverheadBytes,
    0,
    'memory that is held but not on the GPU causes no negative overhead',
  );
  container.hold(0, 0, 100 * MIB);
  await node.samples(2);
  t.equal(container.told(0).driverOverheadBytes, 300 * MIB + 1_000);
  node.run();
  await node.samples(2);
  t.equal(container.told(0).driverOverheadBytes, 0, 'ended processes leave no overhead');
});

test('an allocation during a call to the driver does not count as overhead', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A);
  container.hold(0, 0, 100 * MIB);
  node.run(listed(PID_A, 120 * MIB, null));
  await node.ticks(31);
  t.equal(container.told(0).driverOverheadBytes, 20 * MIB);
  let answer = (): void => undefined;
  node.gpus.hold = new Promise((resolve) => (answer = resolve));
  await node.ticks(10);
  container.hold(0, 0, 200 * MIB);
  node.run(listed(PID_A, 120 * MIB, null));
  answer();
  node.gpus.hold = null;
  await node.ticks(1);
  t.equal(container.told(0).driverOverheadBytes, 20 * MIB);
});

test('a driver that does not answer is called once, and steering continues without it', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 30, softLimit: 60 })] });
  node.run(listed(PID_A, MIB, null));
  await node.ticks(11);
  let answer = (): void => undefined;
  node.gpus.hold = new Promise((resolve) => (answer = resolve));
  const asked = node.gpus.asked.get(GPU) ?? 0;
  let tick = 0;
  await node.ticks(50, () => container.count(0, { chargedNs: ++tick * 30_000_000, waits: tick }));
  t.equal(node.gpus.asked.get(GPU), asked + 1);
  t.match(container.told(0).steering, { grantPpm: 600_000 });
  answer();
  node.gpus.hold = null;
  node.gpus.failure = new Error('the GPU fell off the bus');
  await node.ticks(30, () => container.count(0, { chargedNs: ++tick * 30_000_000, waits: tick }));
  t.match(node.device(A).pids, [PID_A], 'the last known values stay');
  node.gpus.failure = null;
  node.run();
  await node.ticks(11);
  t.same(node.device(A).pids, []);
});

test('a truncated usage file stops the counting and nothing else', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 30, softLimit: 60 })] });
  const other = await node.start(B, { devices: [gpuLimits(0, { share: 30, softLimit: 60 })] });
  node.run(listed(PID_A, MIB, null), listed(PID_B, MIB, null));
  await node.ticks(11);
  truncateSync(join(node.node.base, A, 'usage/vgpu.usage'), 0);
  let tick = 0;
  await node.ticks(10, () => other.count(0, { chargedNs: ++tick * 30_000_000, waits: tick }));
  t.equal(node.device(A).peakMemoryBytes, null);
  t.match(other.told(0).steering, { grantPpm: 600_000 });
  t.equal(container.told(0).share, 30);
});

test('the monitor follows slices that start, restart and end', async (t) => {
  const node = await monitored(t);
  const first = await node.start(A, { devices: [gpuLimits(0, { share: 30, softLimit: 60 })] });
  node.run(listed(PID_A, MIB, null));
  let tick = 0;
  const work = (): void => first.count(0, { chargedNs: ++tick * 30_000_000, waits: tick });
  await node.ticks(25, work);
  t.match(first.told(0).steering, { grantPpm: 600_000 });
  await node.start(A, { devices: [gpuLimits(0, { share: 50, softLimit: 55 })] });
  t.equal(first.told(0).steering, null);
  await node.ticks(25, work);
  t.match(first.told(0).steering, { grantPpm: 550_000 });
  await node.node.slices.remove(A);
  await node.ticks(11);
  t.same(
    observeSlices(node.node.slices, node.monitor.gpus, () => []),
    [],
  );
  t.match(node.monitor.gpus[0]?.state?.foreignProcesses, [{ pid: PID_A }]);
});

test('an unused GPU is sampled less often, until a process starts, ends or works', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 30 })] });
  node.gpus.utilizationPercent = 0;
  await node.ticks(20);
  const asked = async (ticks: number, each?: () => void): Promise<number> => {
    const before = node.gpus.sampled.get(GPU) ?? 0;
    await node.ticks(ticks, each);
    return (node.gpus.sampled.get(GPU) ?? 0) - before;
  };
  t.equal(await asked(80), 2, 'every four seconds');
  const socket = await say(node.node.socketPath(A), greetingBytes(1, 0));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  t.equal(await asked(14), 1, 'within a period and its delay after a process started');
  let charged = 0;
  await node.ticks(20, () => container.count(0, { chargedNs: (charged += 1_000_000) }));
  t.equal(
    await asked(40, () => container.count(0, { chargedNs: (charged += 1_000_000) })),
    4,
    'every second while the process works',
  );
  await node.ticks(40);
  t.equal(await asked(80), 2);
  socket.destroy();
  await eventually(() => node.node.slices.sessionOf(process.pid) === null, 'its end');
  t.equal(await asked(14), 1, 'within a period and its delay after the process ended');
});

test('the number of driver calls for a GPU does not grow with its containers', async (t) => {
  const node = await monitored(t);
  const ids = Array.from({ length: 32 }, (_, at) => (at + 1).toString(16).padStart(16, '0'));
  const containers: FakeContainer[] = [];
  for (const id of ids) containers.push(await node.start(id, { devices: [gpuLimits(0, { share: 3 })] }));
  const sockets = await Promise.all(ids.map((id) => say(node.node.socketPath(id), greetingBytes(1, 0))));
  await eventually(() => ids.every((id) => node.node.slices.started.get(id)?.sessions.size === 1), 'the greetings');
  await node.ticks(12);
  let charged = 0;
  const work = (): void => {
    charged += 1_000_000;
    for (const container of containers) container.count(0, { chargedNs: charged });
  };
  await node.ticks(24, work);
  const published = (): number => containers.reduce((sum, { sequence }) => sum + sequence, 0);
  const before = published();
  await node.ticks(40, work);
  t.ok(published() - before <= 5 * 32, `${published() - before} publications in five ticks of reading`);
  t.ok(
    containers.every((container) => container.told(0).steering !== null),
    'all containers have new values',
  );
  for (const socket of sockets) socket.destroy();
});

test('idle containers cause no reading and no publication', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A);
  const sequence = container.sequence;
  container.count(0, { chargedNs: 1e9 });
  await node.ticks(100);
  t.equal(container.sequence, sequence);
  t.ok((node.gpus.asked.get(GPU) ?? 0) <= 20, 'the driver is asked for processes twice a second');
  t.ok((node.gpus.sampled.get(GPU) ?? 0) <= 10, 'and for the rest once');
});

test('at rest the monitor is woken once a second, and at once when a process comes', async (t) => {
  const node = await monitored(t);
  const container = await node.start(A, { devices: [gpuLimits(0, { share: 30 })] });
  node.gpus.utilizationPercent = 0;
  await node.ticks(60);
  t.equal(await node.wakeups(40), 4);
  const socket = await say(node.node.socketPath(A), greetingBytes(1, 0));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  t.not(await node.wakeups(2), 0, 'a process came');
  let charged = 0;
  const work = (): void => container.count(0, { chargedNs: (charged += 1_000_000) });
  await node.ticks(20, work);
  t.equal(await node.wakeups(20, work), 20, 'while the process works');
  await node.ticks(60);
  t.equal(await node.wakeups(40), 4, 'after its work');
  socket.destroy();
});
