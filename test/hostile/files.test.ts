/** What root in a container can do to the agent through the files that both can open. */
import { chmod, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { encodeUsage } from '../../src/abi/usage-file.js';
import { USAGE_LAYOUT } from '../../src/abi/vgpu-abi.js';
import { Auditor } from '../../src/agent/slices/audit/auditor.js';
import { Monitor } from '../../src/agent/slices/steering/monitor.js';
import { ProcessOwners } from '../../src/agent/slices/process-owners.js';
import type { SliceNote } from '../../src/agent/slices/ports.js';
import { UsageTmpfs } from '../../src/agent/slices/usage/usage-tmpfs.js';
import { writeFileAtomically } from '../../src/host/atomic-file.js';
import { silentLog } from '../../src/host/log.js';
import { FakeGpus } from '../agent/slices/fake-gpu.js';
import { ALLOCATION, gpuLimits, IGNORANT, openSlices, sliceSpec } from '../agent/slices/node-slices.js';
import { ManualClock } from '../manual-clock.js';
import { scratchDirectory } from '../scratch.js';
import { gripper, gripSkipReason } from './gripper.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

const skip = gripSkipReason;
/**
 * How long the kernel lets an open wait for a lease (fs.lease-break-time), and a part of it that an open without a
 * lease never takes.
 */
const LEASE_BREAK_MS = 45_000;
const SOON_MS = LEASE_BREAK_MS / 3;

/** Fails if `action` waits for a lease; the test's own timeout replaces a fixed figure. */
async function soon<T>(action: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it waits for the lease')), SOON_MS);
  });
  try {
    return await Promise.race([action, late]);
  } finally {
    clearTimeout(timer);
  }
}

for (const way of ['lease', 'own'] as const) {
  test(`the agent starts beside files on which a container holds a lease (${way})`, { skip }, async (t) => {
    const grip = await gripper(t);
    const first = await openSlices(t);
    await first.slices.start(sliceSpec());
    await first.operator.set(ALLOCATION, { memoryBytes: null, share: 10, softLimit: null });
    await first.slices.close();
    const directory = join(first.base, ALLOCATION);
    for (const name of ['vgpu.limits', 'usage/vgpu.usage', 'operator.json'])
      t.equal(await grip.take([way, join(directory, name)]), 'held', name);
    // A blocked open stops the whole process, including this timer: only the clock shows it.
    const began = process.hrtime.bigint();
    const second = await first.again();
    await soon(second.slices.restore(sliceSpec()));
    t.ok(Number(process.hrtime.bigint() - began) / 1e6 < SOON_MS, 'the start waited for no lease');
    const slice = second.slices.started.get(ALLOCATION);
    slice?.limits.change(0, { share: 20 });
    t.equal(slice?.limits.live[0]?.share, 20, "the agent can publish the slice's limits");
    t.equal(
      await grip.take(['lease', join(directory, 'vgpu.limits')]),
      'refused',
      'a container gets no lease on files that the agent keeps open',
    );
  });
}

test('a container that the agent started gets no lease on its files', { skip }, async (t) => {
  const grip = await gripper(t);
  const node = await openSlices(t);
  await node.slices.start(sliceSpec());
  for (const name of ['vgpu.limits', 'usage/vgpu.usage'])
    for (const way of ['lease', 'own'])
      t.equal(await grip.take([way, join(node.base, ALLOCATION, name)]), 'refused', `${way} ${name}`);
});

test('the agent replaces a partly written file under a lease without opening it', { skip }, async (t) => {
  const grip = await gripper(t);
  const directory = await scratchDirectory(t);
  await writeFile(join(directory, `.x.${process.pid}.tmp`), 'left behind');
  t.equal(await grip.take(['lease', join(directory, `.x.${process.pid}.tmp`)]), 'held');
  await soon(writeFileAtomically(join(directory, 'x'), 'new'));
  t.equal(await readFile(join(directory, 'x'), 'utf8'), 'new');
});

async function audited(t: Teardown, restored = false) {
  const clock = new ManualClock();
  const gpus = new FakeGpus();
  let node = await openSlices(t, { clock });
  await node.slices.start(sliceSpec());
  const usage = join(node.base, ALLOCATION, 'usage/vgpu.usage');
  const open = async () => {
    if (restored) {
      node = await node.again();
      await node.slices.restore(sliceSpec());
    }
    const owners = new ProcessOwners(node.slices, IGNORANT);
    const log = silentLog();
    const monitor = new Monitor({
      slices: node.slices,
      owners,
      source: gpus,
      gpus: () => [gpuLimits(0).uuid],
      clock,
      log,
      sampleMs: 1_000,
    });
    const notes: SliceNote[] = [];
    const auditor = new Auditor({
      slices: node.slices,
      usageBounded: false,
      gpus: () => monitor.gpus,
      owners,
      notices: { note: (_, note) => void notes.push(note) },
      evictor: { evict: () => undefined },
      policy: 'report',
      clock,
      log,
    });
    monitor.start();
    auditor.start();
    t.teardown(async () => {
      auditor.stop();
      monitor.stop();
    });
    return { auditor, notes };
  };
  if (restored) await node.slices.close();
  return {
    clock,
    usage,
    open,
    pass: async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 100) {
        clock.advance(100);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

test('a usage file cannot be executed while the agent has it open', { skip }, async (t) => {
  const grip = await gripper(t);
  const { usage, open, pass } = await audited(t);
  const { notes } = await open();
  await writeFile(usage, await readFile(grip.program));
  await chmod(usage, 0o777);
  await t.rejects(grip.take(['wait'], usage), { code: 'ETXTBSY' });
  await truncate(usage, 2 ** 31);
  await pass(100);
  t.equal((await stat(usage)).size, USAGE_LAYOUT.structSize, 'the agent truncates the file at the next tick');
  t.match(notes, [{ reason: 'GPUAudit', message: /it used 2147483648 bytes/ }], 'the agent logs it once');
  await pass(20_000);
  t.equal(notes.filter(({ message }) => message.includes('it used')).length, 1);
});

for (const [what, hold] of [
  ['runs as a program', async (grip, usage) => grip.take(['wait'], usage)],
  ['is leased', async (grip, usage) => grip.take(['lease', usage])],
] as readonly (readonly [string, (grip: Awaited<ReturnType<typeof gripper>>, usage: string) => Promise<string>])[]) {
  test(`a usage file that ${what} when the agent starts becomes a finding`, { skip }, async (t) => {
    const grip = await gripper(t);
    const { usage, open, pass } = await audited(t, true);
    // The file has its proper size, so that only the lease or the execution is wrong.
    const content = Buffer.alloc(USAGE_LAYOUT.structSize);
    if (what.startsWith('runs')) {
      const program = await readFile(grip.program);
      await writeFile(
        usage,
        program.length >= content.length ? program : Buffer.concat([program, content.subarray(program.length)]),
        { mode: 0o777 },
      );
      await chmod(usage, 0o777);
    } else await writeFile(usage, encodeUsage());
    t.equal(await hold(grip, usage), 'held');
    const { notes } = await open();
    await pass(25_000);
    t.match(notes, [{ reason: 'GPUAudit', message: /the usage file was changed from within the container/ }]);
  });
}

test('the agent frees blocks beyond the end of a usage file at the next tick', { skip }, async (t) => {
  const grip = await gripper(t);
  const { usage, open, pass } = await audited(t);
  const { notes } = await open();
  const said = await grip.take(['fill', usage]);
  if (said !== 'held') {
    t.comment(`this file system does not reserve blocks: ${said}`);
    return;
  }
  t.ok((await stat(usage)).blocks * 512 > 60 * 2 ** 20);
  await pass(100);
  t.ok((await stat(usage)).blocks * 512 < 2 * 2 ** 20, 'the agent frees the blocks');
  t.match(notes, [{ reason: 'GPUAudit', message: /it used \d{8} bytes/ }]);
});

test('a usage file in a file system of its own takes no more than its size', { skip }, async (t) => {
  const grip = await gripper(t);
  const directory = await scratchDirectory(t);
  const tmpfs = new UsageTmpfs(join(directory, '.usage'));
  const problem = tmpfs.problem();
  if (problem !== null) {
    t.comment(`skipped: ${problem}`);
    return;
  }
  const path = join(directory, 'vgpu.usage');
  await writeFile(path, '');
  t.teardown(() => tmpfs.remove('a', path));
  await tmpfs.place('a', path, encodeUsage());
  t.same(await readFile(path), encodeUsage());
  for (const way of ['grow', 'fill']) t.equal(await grip.take([way, path]), 'refused', way);
  t.equal((await stat(path)).mode & 0o777, 0o666);
  await tmpfs.place('a', path, encodeUsage());
  t.equal((await stat(path)).size, USAGE_LAYOUT.structSize, 'the new file has its proper size');
  await tmpfs.remove('a', path);
  t.equal((await stat(path)).size, 0, 'the folder below the mount is empty');
});
