import { spawn } from 'node:child_process';
import { statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { ACTIVITY, ACTIVITY_FILE, USAGE_LAYOUT } from '../../../../src/abi/vgpu-abi.js';
import { systemClock } from '../../../../src/host/clock.js';
import { silentLog } from '../../../../src/host/log.js';
import { LegacyPods } from '../../../../src/agent/slices/compat/legacy-pods.js';
import type { ContainerKnowledge } from '../../../../src/agent/runtimes/index.js';
import { listed } from '../fake-gpu.js';
import { ALLOCATION, IGNORANT, MIB, NO_LIMIT_ANNOTATIONS, sliceSpec } from '../node-slices.js';
import { greetingBytes, ownStartTicks, say } from '../container-client.js';
import { eventually } from '../../../harness/eventually.js';
import { audited, GPU, OTHER_GPU } from './audited-node.js';

test('a process that greeted with its own slot has no finding', async (t) => {
  const node = await audited(t);
  node.register(3, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 3, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
  await node.seconds(30);
  t.same(node.codes(), []);
  t.same(node.notes, []);
  socket.destroy();
});

test('a GPU process without the library is reported once while it lives, and no pod is evicted', async (t) => {
  const node = await audited(t);
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 5)]);
  await node.seconds(60);
  t.same(node.codes(), ['no-library']);
  t.match(node.notes, [
    {
      type: 'Warning',
      reason: 'GPUAudit',
      message: /^main: sleep \(\d+\) use the GPU, and no process of the container has loaded the control library/,
    },
  ]);
  t.match(node.auditor.counts, { raised: { 'no-library': 1, tampered: 0 }, evictions: 0 });
  t.same(node.evicted, []);
  node.gpus.running.set(GPU, []);
  await node.seconds(10);
  t.same(node.codes(), []);
});

test('with eviction enabled its pod is evicted, and again if the eviction was refused', async (t) => {
  const node = await audited(t, 'evict');
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 5)]);
  await node.seconds(20);
  t.match(node.evicted, [/^trainer: sleep/]);
  await node.seconds(60);
  t.equal(node.evicted.length, 2);
  t.equal(node.auditor.counts.evictions, 2);
});

test('in a claim that pods share, a bypass of any of them is found, and all of them are told and evicted', async (t) => {
  const { owner } = sliceSpec();
  const first = { ...owner, podUid: 'of-another-pod', pod: 'server' };
  const node = await audited(t, 'evict', () => [first, owner, { ...owner, container: 'sidecar' }]);
  await node.node.slices.start(sliceSpec({ owner: first }));
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 5)]);
  await node.seconds(20);
  t.same(node.codes(), ['no-library']);
  t.same(node.told, ['server', 'trainer', 'trainer']);
  t.match(node.notes, [{ message: /^main: sleep/ }, { message: /^main: sleep/ }, { message: /^sidecar: sleep/ }]);
  t.match(node.evicted, [/^server: sleep/, /^trainer: sleep/]);
  t.equal(node.evicted.length, 2);
});

test('a process from before a restart of the agent is known by its slot while it is idle', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 0)]);
  await node.seconds(30);
  t.same(node.codes(), []);
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 30)]);
  await node.seconds(15);
  t.same(node.codes(), ['unregistered', 'not-enforcing'], 'its time is not charged either');
});

test('a library that does not enforce limits is reported with the reason', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks(), 0b11101);
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  await node.seconds(15);
  t.same(node.codes(), ['not-enforcing']);
  t.match(node.notes, [{ message: /hands out functions of the driver that it does not recognise/ }]);
  socket.destroy();
});

test('a process that claims the slot of another is reported', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 7, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  await node.seconds(15);
  t.same(node.codes(), ['tampered']);
  socket.destroy();
});

test('overwriting, truncating and growing the usage file are reported, and a grown file is truncated', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
  truncateSync(node.usage, 10 * MIB);
  await node.seconds(5);
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize);
  writeFileSync(node.usage, Buffer.alloc(USAGE_LAYOUT.structSize, 0xff));
  await node.seconds(15);
  t.ok(
    node.codes().every((code) => code === 'tampered'),
    node.codes().join(),
  );
  t.match(node.notes.map(({ message }) => message).join(), /not a usage file/);
  truncateSync(node.usage, 0);
  await node.seconds(15);
  t.match(
    node.auditor
      .findings(ALLOCATION)
      .map(({ message }) => message)
      .join(),
    /0 bytes instead of/,
  );
  socket.destroy();
});

test('a container without a process on a GPU can neither fill the disk with its usage file nor forge it unnoticed', async (t) => {
  const node = await audited(t);
  await node.seconds(20);
  t.same(node.codes(), []);
  truncateSync(node.usage, 10 * MIB);
  await node.seconds(1);
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize);
  t.match(node.notes, [{ message: /it used 10485760 bytes/ }], 'reported at once');
  writeFileSync(node.usage, Buffer.alloc(USAGE_LAYOUT.structSize, 0xff));
  await node.seconds(15);
  t.same(node.codes(), ['tampered', 'tampered']);
  t.match(node.notes, [{}, { message: /not a usage file/ }]);
});

test('a file that the agent does not check in every turn is checked once the disk has less free space', async (t) => {
  let free = 100 * MIB;
  const node = await audited(t, 'report', undefined, () => free);
  const activity = join(node.node.base, ALLOCATION, ACTIVITY_FILE);
  await node.seconds(1);
  node.turn();
  const growFile = (): void => {
    truncateSync(activity, MIB);
    node.turn();
  };
  growFile();
  t.equal(statSync(activity).size, MIB, 'the disk is as full as before');
  await node.seconds(1);
  t.equal(statSync(activity).size, ACTIVITY.structSize, 'every second, all files are checked');
  growFile();
  free -= 4 * MIB;
  node.turn();
  t.equal(statSync(activity).size, ACTIVITY.structSize);
  growFile();
  free += 8 * MIB;
  node.turn();
  t.equal(statSync(activity).size, MIB, 'more free space than before');
  truncateSync(node.usage, 2 ** 31);
  node.turn();
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize, 'the length of usage files is checked in every turn');
});

test('where usage files cannot grow, all files are checked when activity files take other memory, and every five seconds', async (t) => {
  let free = 60 * MIB;
  const node = await audited(t, 'report', undefined, () => free, true);
  const activity = join(node.node.base, ALLOCATION, ACTIVITY_FILE);
  await node.seconds(1);
  truncateSync(activity, 0);
  await node.seconds(1);
  t.equal(statSync(activity).size, 0, 'as much free memory as before');
  free += 4_096;
  await node.seconds(1);
  t.equal(statSync(activity).size, ACTIVITY.structSize);
  truncateSync(activity, MIB);
  truncateSync(node.usage, USAGE_LAYOUT.structSize + 1);
  await node.seconds(5);
  t.equal(statSync(activity).size, ACTIVITY.structSize, 'a hole takes no memory');
  t.equal(statSync(node.usage).size, USAGE_LAYOUT.structSize);
});

test('on an unused GPU the finding takes longer', async (t) => {
  const node = await audited(t);
  node.gpus.utilizationPercent = 0;
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  node.gpus.running.set(GPU, [listed(child.pid ?? 0, 100 * MIB, 0)]);
  await node.seconds(40);
  t.same(node.codes(), ['no-library']);
});

test('a container on a GPU that was not allocated to it is reported', async (t) => {
  const node = await audited(t);
  node.gpus.running.set(OTHER_GPU, [listed(process.pid, 100 * MIB, 5)]);
  await node.seconds(20);
  t.same(node.codes(), ['wrong-gpu']);
  t.match(node.notes, [{ message: new RegExp(`uses ${OTHER_GPU}, which is not allocated to the container`) }]);
});

test('memory that the driver reports beyond the limit is a finding', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 4_000 * MIB, 5)]);
  await node.seconds(20);
  t.same(node.codes(), ['over-limit']);
  socket.destroy();
});

test('in an unenforced container a bypass is no finding, and memory beyond its allocation is one that evicts', async (t) => {
  const { node, gpus, notes, evicted, ...container } = await audited(t, 'evict');
  await node.slices.start({ ...sliceSpec(), unenforced: true });
  gpus.running.set(GPU, [listed(process.pid, 512 * MIB, 30)]);
  await container.seconds(30);
  t.same(container.codes(), []);
  gpus.running.set(GPU, [listed(process.pid, 2048 * MIB, 90)]);
  await container.seconds(30);
  t.same(container.codes(), ['over-limit', 'over-share']);
  t.match(notes, [
    { reason: 'GPUAudit', message: /^main: 2048 MiB in use on GPU-\S+, the limit is 1024 MiB$/ },
    {
      reason: 'GPUAudit',
      message: /^main: 90 % of the time of GPU-\S+ in use, 30 % are allocated; the container is unenforced$/,
    },
  ]);
  t.match(evicted, [/^trainer: 2048 MiB in use/]);
});

for (const [on, rest] of [
  [2, 20],
  [4, 5.5],
  [8, 7],
] as const) {
  test(`a program that bypasses the library for ${on} s and rests ${rest} s is reported and evicted at its second occurrence`, async (t) => {
    const node = await audited(t, 'evict');
    node.gpus.utilizationPercent = 0;
    const occur = async (): Promise<void> => {
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
      t.teardown(async () => void child.kill('SIGKILL'));
      node.gpus.running.set(GPU, [listed(child.pid ?? 0, 200 * MIB, 80)]);
      await node.seconds(on);
      node.gpus.running.set(GPU, []);
      child.kill('SIGKILL');
    };
    await node.seconds(10);
    await occur();
    await node.seconds(rest);
    await occur();
    await node.seconds(Math.max(0, 10 - on));
    t.same(node.evicted.length > 0, true, 'evicted');
    t.match(node.notes, [{ reason: 'GPUAudit', message: /sleep \(\d+\) use/ }]);
  });
}

test('memory beyond the limit between two audits is reported at once when it is gross', async (t) => {
  const node = await audited(t);
  node.register(0, process.pid, ownStartTicks());
  const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
  await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
  node.gpus.running.set(GPU, [listed(process.pid, 500 * MIB, 5)]);
  await node.seconds(11);
  node.gpus.running.set(GPU, [listed(process.pid, 1_500 * MIB, 5)]);
  await node.seconds(2);
  node.gpus.running.set(GPU, [listed(process.pid, 500 * MIB, 5)]);
  await node.seconds(5);
  t.match(node.notes, [{ message: /1500 MiB in use/ }]);
  socket.destroy();
});

test('a process whose greeting arrives after the driver lists it, or that has just ended, is no finding', async (t) => {
  const node = await audited(t, 'evict');
  for (let round = 0; round < 5; round += 1) {
    node.register(0, process.pid, ownStartTicks());
    node.gpus.running.set(GPU, [listed(process.pid, 100 * MIB, 5)]);
    await node.seconds(1);
    const socket = await say(node.node.socketPath(), greetingBytes(process.pid, 0, ownStartTicks()));
    await eventually(() => node.node.slices.sessionOf(process.pid) !== null, 'the greeting');
    await node.seconds(6);
    node.gpus.running.set(GPU, []);
    socket.destroy();
    await eventually(() => node.node.slices.sessionOf(process.pid) === null, 'the end');
    await node.seconds(6);
  }
  t.same(node.notes, []);
  t.same(node.evicted, []);
});

test("a pod that the original's own library serves has no findings and is not evicted, whatever it uses", async (t) => {
  const podUid = '99999999-2222-3333-4444-555555555555';
  const knowledge: ContainerKnowledge = { ...IGNORANT, placeOf: async () => ({ containerId: 'old', podUid }) };
  const node = await audited(t, 'evict', undefined, undefined, undefined, knowledge);
  const legacy = new LegacyPods({
    path: node.node.base,
    knowledge,
    limitAnnotations: NO_LIMIT_ANNOTATIONS,
    driverVersion: () => '570.86.10',
    clock: systemClock,
    log: silentLog(),
  });
  t.teardown(() => legacy.close());
  await legacy.open([{ podUid, container: 'main', cores: 30, memoryBytes: 1024 * MIB, gpuUuids: [GPU] }]);
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  t.teardown(async () => void child.kill('SIGKILL'));
  for (const gpu of [GPU, OTHER_GPU]) node.gpus.running.set(gpu, [listed(child.pid ?? 0, 8_000 * MIB, 100)]);
  await node.seconds(120);
  t.same(node.notes, []);
  t.same(node.evicted, []);
  t.match(node.auditor.counts, { evictions: 0 });
});
