import { execFile } from 'node:child_process';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Major and minor number of /dev/null: opening such a node has no effect. */
const NULL_DEVICE = ['1', '3'] as const;

/**
 * Creates a device node without function, for a simulated GPU, or an empty file if device nodes are not permitted (no
 * root, no CAP_MKNOD); returns which of the two it created.
 */
export async function makeHarmlessNode(path: string): Promise<'device' | 'file'> {
  const existing = await stat(path).catch(() => null);
  if (existing?.isCharacterDevice() === true) return 'device';
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  try {
    await run('mknod', ['-m', '666', path, 'c', ...NULL_DEVICE]);
    return 'device';
  } catch {
    await writeFile(path, '');
    return 'file';
  }
}
