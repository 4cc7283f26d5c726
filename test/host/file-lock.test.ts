import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { FileLock } from '../../src/host/file-lock.js';
import { scratchDirectory } from '../scratch.js';

const MODULE = fileURLToPath(new URL('../../src/host/file-lock.js', import.meta.url));

test('one process holds the lock, and the next process gets it after the release', async (t) => {
  const path = join(await scratchDirectory(t), 'lock');
  const first = await FileLock.tryAcquire(path);
  t.ok(first);
  t.equal(await FileLock.tryAcquire(path), null);
  await first?.release();
  const second = await FileLock.tryAcquire(path);
  t.ok(second);
  await second?.release();
});

test('the lock of a killed process is free', async (t) => {
  const path = join(await scratchDirectory(t), 'lock');
  const program = `
    const { FileLock } = await import(${JSON.stringify(MODULE)});
    await FileLock.tryAcquire(${JSON.stringify(path)});
    console.log('held');
    setInterval(() => undefined, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  t.equal(await FileLock.tryAcquire(path), null, 'another process holds the lock');
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const lock = await FileLock.tryAcquire(path);
  t.ok(lock);
  await lock?.release();
});

test('the lock reports a folder that does not exist', async (t) => {
  await t.rejects(FileLock.tryAcquire(join(await scratchDirectory(t), 'absent/lock')), { code: 'ENOENT' });
});
