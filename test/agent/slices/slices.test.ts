import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { test } from 'tap';
import { decodeLimits } from '../../../src/abi/limits-file.js';
import { LIMITS_FILE, USAGE_FILE, USAGE_LAYOUT } from '../../../src/abi/vgpu-abi.js';
import { decodeUsage } from '../../../src/abi/usage-file.js';
import { scratchDirectory } from '../../scratch.js';
import { FakeContainer } from './fake-gpu.js';
import { ALLOCATION, gpuLimits, MIB, openSlices, sliceSpec, type TestSlices } from './node-slices.js';
import { closed, greetingBytes, ownStartTicks, say } from './container-client.js';
import { eventually } from '../../harness/eventually.js';

const run = promisify(execFile);
const OTHER = 'ffeeddccbbaa9988';

async function limitsOf(node: TestSlices, allocation = ALLOCATION) {
  const decoded = decodeLimits(await readFile(join(node.base, allocation, LIMITS_FILE)));
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.limits;
}

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

test('a prepared slice has the mounted files, a started one has all files, with the modes that a container needs', async (t) => {
  const node = await openSlices(t);
  const before = process.umask(0o077);
  t.teardown(() => void process.umask(before));
  await node.slices.prepare(ALLOCATION, true);
  const at = (name: string): string => join(node.base, ALLOCATION, name);
  t.equal((await stat(at(USAGE_FILE))).size, USAGE_LAYOUT.structSize);
  t.ok(
    (await stat(at(USAGE_FILE))).blocks * 512 >= USAGE_LAYOUT.structSize,
    'the disk space of the usage file is allocated',
  );
  await node.slices.start(sliceSpec());
  t.same((await readdir(join(node.base, ALLOCATION))).sort(), ['high', 'usage', 'vcuda.sock', 'vgpu.limits']);
  t.equal(await modeOf(node.base), '750');
  t.equal(await modeOf(at('.')), '755');
  t.equal(await modeOf(at('usage')), '755');
  t.equal(await modeOf(at(USAGE_FILE)), '666');
  t.equal(await modeOf(at(LIMITS_FILE)), '644');
  t.equal(await modeOf(at('vcuda.sock')), '666');
  t.match(await limitsOf(node), { allocation: ALLOCATION, devices: [{ memoryBytes: 1024 * MIB, share: 30 }] });
});

/** The test acts as another user, who sees the directory of the slice under another path, as a container does. */
const mountable = async (): Promise<string | false> => {
  if (process.getuid?.() !== 0) return 'playing another user and mounting needs root';
  return run('unshare', ['--mount', 'true']).then(
    () => false as const,
    (error: Error) => `mounting is not possible here: ${error.message}`,
  );
};

test(
  'any user of the container can connect and write the usage file, and change nothing else',
  { skip: await mountable() },
  async (t) => {
    const node = await openSlices(t);
    await node.slices.start(sliceSpec());
    await node.slices.start(sliceSpec({ allocation: OTHER }));
    const view = join(await scratchDirectory(t), 'etc-vcuda');
    await mkdir(view);
    await run('mount', ['--bind', join(node.base, ALLOCATION), view]);
    t.teardown(() => run('umount', [view]).then(() => undefined));
    await run('chmod', ['755', join(view, '..')]);
    const program = fileURLToPath(new URL('foreigner.js', import.meta.url));
    const { stdout } = await run(process.execPath, [program, '65534', view, join(node.base, OTHER)]);
    t.same(stdout.trim().split('\n'), ['connect', 'read-limits', 'write-usage']);
  },
);

test('a process that greets is known by its pid until it ends, even when it is killed', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  const script = `const s = require('node:net').connect(process.argv[1]); s.write(Buffer.from(process.argv[2], 'hex'));`;
  const child = spawn(process.execPath, ['-e', script, node.socketPath(), greetingBytes(1, 5).toString('hex')], {
    stdio: 'ignore',
  });
  t.teardown(async () => void child.kill('SIGKILL'));
  const pid = child.pid ?? 0;
  await eventually(() => node.slices.sessionOf(pid) !== null, 'the process');
  t.match(node.slices.sessionOf(pid), { allocation: ALLOCATION, pid, uid: process.getuid?.(), greeting: { slot: 5 } });
  child.kill('SIGKILL');
  await once(child, 'exit');
  await eventually(() => node.slices.sessionOf(pid) === null, 'the end of the process');
});

test('the memory of a process counts until the process is dead, not only until it disconnects', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  const slice = node.slices.started.get(ALLOCATION);
  const container = new FakeContainer(node.base, ALLOCATION);
  const script = `const s = require('node:net').connect(process.argv[1]); s.write(Buffer.from(process.argv[2], 'hex'), () => process.stdin.once('data', () => s.destroy()));`;
  const child = spawn(process.execPath, ['-e', script, node.socketPath(), greetingBytes(7, 5, 77).toString('hex')], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  t.teardown(async () => void child.kill('SIGKILL'));
  container.register(5, 7, 77);
  container.register(6, 8, 78);
  container.hold(0, 5, 100 * MIB);
  container.hold(0, 6, 10 * MIB);
  await eventually(() => slice?.sessions.size === 1, 'the greeting');
  t.equal(slice?.held(0), 110 * MIB);
  child.stdin?.write('leave');
  await eventually(() => slice?.sessions.size === 0, 'the end of the connection');
  t.equal(slice?.held(0), 110 * MIB, 'the process still lives');
  child.kill('SIGKILL');
  await eventually(() => slice?.held(0) === 10 * MIB, 'its end');
  container.register(5, 9, 79);
  t.equal(slice?.held(0), 110 * MIB, 'its slot has another owner');
});

test('a process that replaces its connection stays known', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  const first = await say(node.socketPath(), greetingBytes(1, 0));
  await eventually(() => node.slices.sessionOf(process.pid)?.greeting.slot === 0, 'the first connection');
  const second = await say(node.socketPath(), greetingBytes(1, 1));
  await eventually(() => node.slices.sessionOf(process.pid)?.greeting.slot === 1, 'the second connection');
  first.destroy();
  await eventually(() => node.slices.started.get(ALLOCATION)?.sessions.size === 1, 'the end of the first connection');
  t.equal(node.slices.sessionOf(process.pid)?.greeting.slot, 1);
  t.equal(node.slices.sessionOf(process.pid)?.startTicks, ownStartTicks());
  second.destroy();
});

test('limits and usage remain when the agent ends, and the next agent continues with them', async (t) => {
  const first = await openSlices(t);
  await first.slices.start(sliceSpec());
  const before = {
    limits: await stat(join(first.base, ALLOCATION, LIMITS_FILE)),
    usage: await stat(join(first.base, ALLOCATION, USAGE_FILE)),
  };
  const slice = first.slices.started.get(ALLOCATION);
  const live = slice?.limits.live[0];
  if (slice === undefined || live === undefined) throw new Error('no slice');
  slice.limits.publish([{ ...live, memoryBytes: 512 * MIB, generation: 1 }]);
  await first.slices.close();
  t.same(await first.slices.list(), [ALLOCATION]);

  const second = await first.again();
  await second.slices.restore(sliceSpec());
  const after = {
    limits: await stat(join(first.base, ALLOCATION, LIMITS_FILE)),
    usage: await stat(join(first.base, ALLOCATION, USAGE_FILE)),
  };
  t.equal(after.limits.ino, before.limits.ino, 'processes that mapped the limits see later publications');
  t.equal(after.usage.ino, before.usage.ino);
  t.match(
    (await limitsOf(second)).devices,
    [{ memoryBytes: 512 * MIB, generation: 1 }],
    'a changed limit stays changed',
  );
  t.equal((await limitsOf(second)).sequence, 2, 'processes see that an agent is present');
  const socket = await say(second.socketPath(), greetingBytes(1, 0));
  await eventually(() => second.slices.sessionOf(process.pid) !== null, 'the process to be known again');
  const again = second.slices.started.get(ALLOCATION);
  again?.limits.publish(again.limits.live.map((device) => ({ ...device, share: 20 })));
  t.match(await limitsOf(second), { sequence: 3, devices: [{ share: 20 }] });
  socket.destroy();
});

test('restoring twice, and restoring a running slice, changes nothing', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  const socket = await say(node.socketPath(), greetingBytes(1, 0));
  await eventually(() => node.slices.sessionOf(process.pid) !== null, 'the process');
  const before = (await stat(node.socketPath())).ino;
  await node.slices.restore(sliceSpec());
  await node.slices.restore(sliceSpec());
  t.equal((await stat(node.socketPath())).ino, before);
  t.equal(socket.destroyed, false);
  socket.destroy();
});

for (const [what, spoil] of [
  ['missing', (path: string) => rm(path)],
  ['truncated', (path: string) => truncate(path, 100)],
  ['empty', (path: string) => writeFile(path, '')],
  ['of other GPUs', null],
] as const) {
  test(`limits that are ${what} after a restart are written again`, async (t) => {
    const first = await openSlices(t);
    await first.slices.start(spoil === null ? sliceSpec({ devices: [gpuLimits(5)] }) : sliceSpec());
    await first.slices.close();
    await spoil?.(join(first.base, ALLOCATION, LIMITS_FILE));
    const second = await first.again();
    await second.slices.restore(sliceSpec());
    t.match((await limitsOf(second)).devices, [{ uuid: gpuLimits(0).uuid, share: 30 }]);
  });
}

test('a container that starts again finds an empty usage file and the same socket', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  const socketBefore = (await stat(node.socketPath())).ino;
  const path = join(node.base, ALLOCATION, USAGE_FILE);
  await writeFile(path, Buffer.alloc(USAGE_LAYOUT.structSize, 0xab));
  await node.slices.start(sliceSpec({ devices: [gpuLimits(0, { memoryBytes: 256 * MIB, softLimit: 60 })] }));
  t.match(decodeUsage(await readFile(path)), { ok: true, usage: { processes: [] } });
  t.match((await limitsOf(node)).devices, [{ memoryBytes: 256 * MIB, softLimit: 60 }]);
  t.equal((await stat(node.socketPath())).ino, socketBefore);
  t.match(node.slices.started.get(ALLOCATION)?.usage, { ok: true });
});

test('the end of a slice removes its connections, socket and directory', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  await node.slices.start(sliceSpec({ allocation: OTHER }));
  const socket = await say(node.socketPath(), greetingBytes(1, 0));
  await eventually(() => node.slices.sessionOf(process.pid) !== null, 'the process');
  await node.slices.remove(ALLOCATION);
  await closed(socket);
  t.equal(node.slices.sessionOf(process.pid), null);
  t.same(await readdir(node.base), [OTHER]);
  await node.slices.remove(ALLOCATION);
});

test('preparing a name again removes all files of an earlier slice', async (t) => {
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  await writeFile(join(node.base, ALLOCATION, 'left-over'), '');
  await node.slices.prepare(ALLOCATION, true);
  t.same((await readdir(join(node.base, ALLOCATION))).sort(), ['high', 'usage']);
  await writeFile(join(node.base, ALLOCATION, 'mine'), '');
  await node.slices.prepare(ALLOCATION, false);
  t.same((await readdir(join(node.base, ALLOCATION))).sort(), ['high', 'mine', 'usage']);
});

test('a base path of any length works with sockets', async (t) => {
  const base = join(await scratchDirectory(t), 'a-very-long-name-of-a-directory/'.repeat(8), 'vm');
  const node = await openSlices(t, { base });
  await node.slices.start(sliceSpec());
  t.ok(node.socketPath().length > 250);
  t.ok((await stat(node.socketPath())).isSocket());
  // As a container sees it: under a short path of its own.
  const view = join(await scratchDirectory(t), 'v');
  await symlink(join(base, ALLOCATION), view);
  const socket = await say(join(view, 'vcuda.sock'), greetingBytes(1, 0));
  await eventually(() => node.slices.sessionOf(process.pid) !== null, 'the process');
  socket.destroy();
  await node.slices.close();
  t.same((await readdir(join(base, ALLOCATION))).sort(), ['high', 'usage', 'vgpu.limits']);
});

test('unrelated directories below the base are left alone', async (t) => {
  const node = await openSlices(t);
  for (const name of ['11111111-2222-3333-4444-555555555555', 'lost+found', '00112233445566AA'])
    await mkdir(join(node.base, name));
  await node.slices.prepare(ALLOCATION, true);
  t.same(await node.slices.list(), [ALLOCATION]);
});

test('a socket that cannot be opened does not delay the container, and opens as soon as possible', async (t) => {
  const node = await openSlices(t);
  await node.slices.prepare(ALLOCATION, true);
  await mkdir(join(node.socketPath(), 'in-the-way'), { recursive: true });
  await node.slices.start(sliceSpec());
  t.match(await limitsOf(node), { devices: [{ share: 30 }] });
  await rm(node.socketPath(), { recursive: true });
  await eventually(async () => (await stat(node.socketPath()).catch(() => null))?.isSocket() === true, 'the socket');
  const socket = connect(node.socketPath());
  await once(socket, 'connect');
  socket.destroy();
});
