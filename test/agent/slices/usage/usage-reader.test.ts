import { execFile } from 'node:child_process';
import { mkdir, rename, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'tap';
import { encodeUsage, ledgerRange } from '../../../../src/abi/usage-file.js';
import {
  DEVICE_USAGE,
  LEDGER_ENTRY,
  MAX_PROCESSES,
  PROCESS_SLOT,
  SHARED_OBJECT,
  USAGE_HEADER,
  USAGE_LAYOUT,
} from '../../../../src/abi/vgpu-abi.js';
import { UsageReader } from '../../../../src/agent/slices/usage/usage-reader.js';
import { scratchDirectory } from '../../../scratch.js';

const run = promisify(execFile);

type Teardown = Parameters<typeof scratchDirectory>[0];

async function usageFile(
  t: Teardown,
  content = encodeUsage(),
): Promise<{ readonly path: string; readonly reader: UsageReader }> {
  const path = join(await scratchDirectory(t), 'vgpu.usage');
  await writeFile(path, content);
  const opened = UsageReader.open(path);
  if (!opened.ok) throw new Error(opened.reason);
  t.teardown(async () => opened.reader.close());
  return { path, reader: opened.reader };
}

test('the counters of one GPU are read separately and together with all others', async (t) => {
  const content = encodeUsage();
  content.writeBigUInt64LE(7n, USAGE_LAYOUT.devices + 2 * DEVICE_USAGE.structSize + DEVICE_USAGE.launches);
  const { reader } = await usageFile(t, content);
  t.equal(reader.device(2)?.launches, 7);
  t.equal(reader.device(0)?.launches, 0);
  const all = reader.all();
  t.equal(all.ok && all.usage.devices[2]?.launches, 7);
  t.equal(reader.problem(), null);
});

test('truncating a file while it is read is a finding, and reading continues', async (t) => {
  const { path, reader } = await usageFile(t);
  await truncate(path, 300);
  t.equal(reader.device(0), null);
  t.match(reader.all(), { ok: false, code: 'truncated' });
  t.match(reader.problem(), { code: 'truncated' });
});

test('growing, removing and replacing a file is noticed, and the open file is still read', async (t) => {
  const { path, reader } = await usageFile(t);
  await truncate(path, USAGE_LAYOUT.structSize + 1);
  t.match(reader.problem(), { code: 'grown' });
  await rename(path, `${path}.moved`);
  t.match(reader.problem(), { code: 'missing' });
  await writeFile(path, encodeUsage());
  t.match(reader.problem(), { code: 'replaced' });
  await unlink(`${path}.moved`);
  t.equal(reader.device(0)?.launches, 0);
});

for (const [what, make] of [
  ['a directory', (path: string) => mkdir(path)],
  ['a link to a file of the host', (path: string) => symlink('/etc/hostname', path)],
  ['a pipe, which would wait for a writer', (path: string) => run('mkfifo', [path])],
  ['a socket', (path: string) => new Promise<void>((resolve) => createServer().listen(path, resolve).unref())],
] as const) {
  test(`${what} in place of the file is refused at once`, async (t) => {
    const path = join(await scratchDirectory(t), 'vgpu.usage');
    await make(path);
    t.match(UsageReader.open(path), { ok: false, code: 'not-a-file' });
  });
}

test('a missing file is reported as missing', async (t) => {
  t.match(UsageReader.open(join(await scratchDirectory(t), 'x')), { ok: false, code: 'missing' });
});

test(
  'a device node in place of the file is not opened',
  { skip: process.getuid?.() === 0 ? false : 'making device nodes needs root' },
  async (t) => {
    const path = join(await scratchDirectory(t), 'vgpu.usage');
    await run('mknod', [path, 'c', '1', '3']);
    t.match(UsageReader.open(path), { ok: false, code: 'not-a-file' });
  },
);

/** Object 3: `bytes` on the GPU with index 1, held by the processes in these slots. */
function withObject(content: Buffer, bytes: bigint, slots: readonly number[], descriptors = 0): Buffer {
  const object = 3;
  const at = USAGE_LAYOUT.slots + object * PROCESS_SLOT.structSize + PROCESS_SLOT.object;
  content.writeUInt32LE(object + 1, USAGE_HEADER.objectHigh);
  content.writeUInt32LE(MAX_PROCESSES, USAGE_HEADER.slotHigh);
  content.writeBigUInt64LE(bytes, at + SHARED_OBJECT.bytes);
  content.writeUInt32LE(1, at + SHARED_OBJECT.device);
  content.writeUInt32LE(descriptors, at + SHARED_OBJECT.descriptors);
  for (const slot of slots) {
    const word = ledgerRange(Math.floor(slot / 64), MAX_PROCESSES).position + object * LEDGER_ENTRY.structSize;
    const position = word + LEDGER_ENTRY.objectHolders;
    content.writeBigUInt64LE(content.readBigUInt64LE(position) | (1n << BigInt(slot % 64)), position);
  }
  return content;
}

test('shared memory counts once, while a living process or a descriptor may hold it', async (t) => {
  const { reader } = await usageFile(t, withObject(encodeUsage(), 4096n, [2, 70]));
  t.equal(reader.held(1), 4096);
  t.equal(reader.held(0), 0);
  t.equal(reader.held(1, new Set([2])), 4096);
  t.equal(reader.held(1, new Set([2, 70])), 0);
  const all = reader.all();
  t.equal(all.ok && all.usage.heldBytes[1], 4096);
  const kept = await usageFile(t, withObject(encodeUsage(), 4096n, [], 1));
  t.equal(kept.reader.held(1), 4096);
});
