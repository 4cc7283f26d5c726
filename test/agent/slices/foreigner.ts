import { openSync, readFileSync, writeFileSync, writeSync, renameSync, unlinkSync, truncateSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

/**
 * Runs as a user unknown to the machine: prints, one word a line, which operations succeed in the directory of its
 * slice and in that of another. Arguments: user id, its own directory, the other one.
 */
const [uid = '', own = '', other = ''] = process.argv.slice(2);
process.setgroups?.([]);
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));

async function may(name: string, action: () => unknown): Promise<void> {
  try {
    await action();
    process.stdout.write(`${name}\n`);
  } catch {
    // Not allowed: says nothing.
  }
}

function reach(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}

const inOwn = (name: string): string => join(own, name);
await may('connect', () => reach(inOwn('vcuda.sock')));
await may('read-limits', () => readFileSync(inOwn('vgpu.limits')));
await may('write-usage', () => writeSync(openSync(inOwn('usage/vgpu.usage'), 'r+'), Buffer.of(1), 0, 1, 8_000));
await may('write-limits', () => writeFileSync(inOwn('vgpu.limits'), ''));
await may('truncate-limits', () => truncateSync(inOwn('vgpu.limits')));
await may('make-file', () => writeFileSync(inOwn('usage/other'), ''));
await may('make-file-above', () => writeFileSync(inOwn('other'), ''));
await may('unlink-usage', () => unlinkSync(inOwn('usage/vgpu.usage')));
await may('unlink-socket', () => unlinkSync(inOwn('vcuda.sock')));
await may('replace-usage', () => renameSync(inOwn('usage/vgpu.usage'), inOwn('usage/moved')));
await may('connect-other', () => reach(join(other, 'vcuda.sock')));
await may('read-other', () => readFileSync(join(other, 'vgpu.limits')));
