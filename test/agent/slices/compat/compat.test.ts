import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { systemClock } from '../../../../src/host/clock.js';
import type { ContainerKnowledge } from '../../../../src/agent/runtimes/index.js';
import { ALLOCATION, gpuLimits, IGNORANT, MIB, openSlices, sliceSpec, type TestSlices } from '../node-slices.js';
import { greetingBytes, register, say } from '../container-client.js';
import { eventually } from '../../../harness/eventually.js';

const CONTAINER_ID = 'd1f0'.repeat(16);

const fileOf = (node: TestSlices, container: string, name: string): string =>
  join(node.base, ALLOCATION, container, name);

async function pidsIn(node: TestSlices, container: string): Promise<number[]> {
  const content = await readFile(fileOf(node, container, 'pids.config'));
  return Array.from({ length: content.length / 4 }, (_, at) => content.readInt32LE(at * 4));
}

/** A container whose processes the test names; every process of this machine is in it. */
function containerOf(pids: { current: readonly number[] }): ContainerKnowledge {
  return {
    placeOf: async () => ({ containerId: CONTAINER_ID, podUid: null }),
    pidsOf: async (id) => (id === CONTAINER_ID ? pids.current : []),
    sliceOf: () => null,
    nameOf: async () => null,
  };
}

/** A container that holds this process and no other. */
const SELF = containerOf({ current: [process.pid] });

test('a container registered by id finds vcuda.config with the exact bytes and its pids sorted', async (t) => {
  const node = await openSlices(t, { knowledge: containerOf({ current: [4_000_000, 17, process.pid, 300] }) });
  await node.slices.start(sliceSpec({ devices: [gpuLimits(0, { memoryBytes: 0x1122_3344_5566, share: 50 })] }));
  await register(node.socketPath(), { pod_uid: 'whatever it says', container_id: CONTAINER_ID });
  const config = await readFile(fileOf(node, CONTAINER_ID, 'vcuda.config'));
  t.equal(config.length, 8_240);
  t.equal(config.toString('latin1', 0, 37), '11111111-2222-3333-4444-555555555555\0');
  t.equal(config.toString('latin1', 4_096, 4_101), 'main\0');
  t.equal(
    config.subarray(0x2010).toString('hex'),
    '6655443322110000' + '32000000' + '01000000' + '3a020000' + '56000000' + '01000000' + '00000000',
  );
  t.same(
    await pidsIn(node, CONTAINER_ID),
    [17, 300, 4_000_000, process.pid].sort((a, b) => a - b),
  );
  for (const name of ['vcuda.config', 'pids.config'])
    t.equal((await stat(fileOf(node, CONTAINER_ID, name))).mode & 0o777, 0o644);
  t.equal((await stat(join(node.base, ALLOCATION, CONTAINER_ID))).mode & 0o777, 0o755);
});

test('a soft limit is written as by the original, and registration by name serves the older library', async (t) => {
  const node = await openSlices(t, { knowledge: SELF });
  await node.slices.start(sliceSpec({ devices: [gpuLimits(0, { share: 30, softLimit: 80 })] }));
  await register(node.socketPath(), { pod_uid: sliceSpec().owner.podUid, container_name: 'main' });
  const config = await readFile(fileOf(node, 'main', 'vcuda.config'));
  t.equal(config.readInt32LE(48), 80, 'limit');
  t.equal(config.readInt32LE(8_220), 0, 'not a hard limit');
  t.same(await pidsIn(node, 'main'), [process.pid]);
});

for (const [what, knowledge] of [
  ['outside of any container', IGNORANT],
  ['of a container whose runtime does not answer', containerOf({ current: [] })],
  ['of a container that the runtime reports with other processes', containerOf({ current: [1, 2] })],
] as const) {
  test(`a process ${what} is refused: the library of the original limits only the pids in its list`, async (t) => {
    const node = await openSlices(t, { knowledge });
    await node.slices.start(sliceSpec());
    const before = (await readdir(join(node.base, ALLOCATION))).sort();
    await t.rejects(register(node.socketPath(), { container_id: CONTAINER_ID }), {
      code: 9,
      details: /the processes of the container of process \d+ are not known/,
    });
    t.same((await readdir(join(node.base, ALLOCATION))).sort(), before);
  });
}

test('the id decides when both id and name are given', async (t) => {
  const node = await openSlices(t, { knowledge: SELF });
  await node.slices.start(sliceSpec());
  await register(node.socketPath(), { container_id: CONTAINER_ID, container_name: 'main' });
  t.same(
    (await readdir(join(node.base, ALLOCATION))).sort(),
    [CONTAINER_ID, 'high', 'usage', 'vcuda.sock', 'vgpu.limits'].sort(),
  );
});

test('changes of pids and limits are written while the container lives', async (t) => {
  const pids = { current: [10, 20, process.pid] };
  const node = await openSlices(t, { knowledge: containerOf(pids) });
  await node.slices.start(sliceSpec());
  await register(node.socketPath(), { container_id: CONTAINER_ID });
  pids.current = [20, 30];
  await eventually(async () => (await pidsIn(node, CONTAINER_ID)).join() === '20,30', 'the new pids');
  const slice = node.slices.started.get(ALLOCATION);
  slice?.limits.publish(slice.limits.live.map((live) => ({ ...live, memoryBytes: 77 * MIB })));
  await eventually(
    async () =>
      (await readFile(fileOf(node, CONTAINER_ID, 'vcuda.config'))).readBigUInt64LE(8_208) === BigInt(77 * MIB),
    'the new limit',
  );
  pids.current = [];
  const before = await stat(fileOf(node, CONTAINER_ID, 'pids.config'));
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  const after = await stat(fileOf(node, CONTAINER_ID, 'pids.config'));
  t.equal(after.ino, before.ino, 'the files of an ended container stay as they were');
  t.same(await pidsIn(node, CONTAINER_ID), [20, 30]);
});

test('a reader always sees a complete file, however often it is written', async (t) => {
  const pids = { current: [1, 2, 3, process.pid] };
  const node = await openSlices(t, {
    knowledge: containerOf(pids),
    clock: { ...systemClock, every: (_, action) => systemClock.every(2, action) },
  });
  await node.slices.start(sliceSpec());
  await register(node.socketPath(), { container_id: CONTAINER_ID });
  const sizes = new Set<number>();
  for (let round = 0; round < 400; round += 1) {
    pids.current = round % 2 === 0 ? [1, 2, 3] : Array.from({ length: 500 }, (_, at) => at + 1);
    sizes.add((await readFile(fileOf(node, CONTAINER_ID, 'pids.config'))).length);
  }
  t.same(
    [...sizes].filter((size) => ![12, 16, 2_000].includes(size)),
    [],
    'three pids, four or all',
  );
});

test('processes that greeted are among the pids', async (t) => {
  const node = await openSlices(t, { knowledge: SELF });
  await node.slices.start(sliceSpec());
  const script = `const s = require('node:net').connect(process.argv[1]); s.write(Buffer.from(process.argv[2], 'hex'));`;
  const child = spawn(process.execPath, ['-e', script, node.socketPath(), greetingBytes(1, 0).toString('hex')], {
    stdio: 'ignore',
  });
  t.teardown(async () => void child.kill('SIGKILL'));
  await eventually(() => node.slices.sessionOf(child.pid ?? 0) !== null, 'the process');
  await register(node.socketPath(), { container_name: 'main' });
  t.same(
    await pidsIn(node, 'main'),
    [process.pid, child.pid ?? 0].sort((a, b) => a - b),
  );
  child.kill('SIGKILL');
  await once(child, 'exit');
});

for (const name of [
  '',
  '.',
  '..',
  '../other',
  'a/b',
  '/etc',
  'usage',
  'vgpu.limits',
  'vcuda.sock',
  '.hidden',
  'x'.repeat(300),
  'a\0b',
]) {
  test(`the name ${JSON.stringify(name.slice(0, 20))} makes no directory`, async (t) => {
    const node = await openSlices(t);
    await node.slices.start(sliceSpec());
    const before = (await readdir(join(node.base, ALLOCATION))).sort();
    await t.rejects(register(node.socketPath(), { container_id: name }), {
      code: 3,
      details: /is not a valid container name/,
    });
    t.same((await readdir(join(node.base, ALLOCATION))).sort(), before);
    t.same(await readdir(node.base), [ALLOCATION]);
  });
}

test('the number of directories that a container can create with invented ids is limited', async (t) => {
  const node = await openSlices(t, { knowledge: SELF });
  await node.slices.start(sliceSpec());
  for (let count = 0; count < 16; count += 1) await register(node.socketPath(), { container_id: `c${count}` });
  await t.rejects(register(node.socketPath(), { container_id: 'c16' }), { code: 8 });
  await register(node.socketPath(), { container_id: 'c3' });
  await node.slices.start(sliceSpec());
  t.same(
    (await readdir(join(node.base, ALLOCATION))).sort(),
    ['high', 'usage', 'vcuda.sock', 'vgpu.limits'],
    'the count starts anew at the next start of the container',
  );
  await register(node.socketPath(), { container_id: 'c16' });
});

test('after a restart of the agent the pids of a registered container are kept up to date', async (t) => {
  const pids = { current: [process.pid] };
  const first = await openSlices(t, { knowledge: containerOf(pids) });
  await first.slices.start(sliceSpec());
  await register(first.socketPath(), { container_id: CONTAINER_ID });
  await first.slices.close();
  pids.current = [process.pid, 42];
  const second = await first.again();
  await second.slices.restore(sliceSpec());
  t.same(
    await pidsIn(second, CONTAINER_ID),
    [42, process.pid].sort((a, b) => a - b),
  );
});

test('directories of ended or unknown containers are left alone after a restart', async (t) => {
  const first = await openSlices(t, { knowledge: containerOf({ current: [5] }) });
  await first.slices.start(sliceSpec());
  await first.slices.close();
  for (const name of ['gone', 'empty']) await mkdir(join(first.base, ALLOCATION, name));
  await writeFile(fileOf(first, 'gone', 'pids.config'), Buffer.from([0xff, 0xff, 0xff, 0x7f]));
  const second = await first.again();
  await second.slices.restore(sliceSpec());
  t.same(await readdir(join(first.base, ALLOCATION, 'empty')), []);
  t.same(await pidsIn(second, 'gone'), [0x7fff_ffff]);
});

test('a registration while the slice ends leaves no directory behind', async (t) => {
  const node = await openSlices(t, { knowledge: containerOf({ current: [5] }) });
  await node.slices.start(sliceSpec());
  const calls = Array.from({ length: 8 }, (_, at) =>
    register(node.socketPath(), { container_id: `c${at}` }).catch(() => undefined),
  );
  await new Promise((resolve) => setTimeout(resolve, 5));
  await node.slices.remove(ALLOCATION);
  await Promise.all(calls);
  t.same(await readdir(node.base), []);
});

test('a process with a silent connection does not delay others', async (t) => {
  const node = await openSlices(t, { knowledge: SELF });
  await node.slices.start(sliceSpec());
  const silent = await Promise.all(Array.from({ length: 40 }, () => say(node.socketPath(), new Uint8Array())));
  await register(node.socketPath(), { container_id: CONTAINER_ID });
  t.same((await readdir(join(node.base, ALLOCATION, CONTAINER_ID))).sort(), ['pids.config', 'vcuda.config']);
  for (const socket of silent) socket.destroy();
});
