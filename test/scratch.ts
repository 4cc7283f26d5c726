import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A fresh directory with a short path (socket names fit below it), removed when the test ends. */
export async function scratchDirectory(t: { teardown(action: () => Promise<void>): void }): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'gm-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** The same on a memory file system, where there is one: for tests that are not about the disk. */
export async function fastDirectory(t: { teardown(action: () => Promise<void>): void }): Promise<string> {
  const directory = await mkdtemp(existsSync('/dev/shm') ? '/dev/shm/gm-' : '/tmp/gm-');
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}
