import * as nodeFs from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** The file system calls that an atomic write makes; a test passes one that fails where it wants. */
export type AtomicWriteFs = Pick<typeof nodeFs, 'open' | 'rename' | 'rm'>;

export interface AtomicWriteOptions {
  /** Permission bits of the new file, whatever the umask; 0640 unless given. */
  readonly mode?: number;
  /** False for what a power loss makes worthless anyway: it is not waited for the disk then. */
  readonly durable?: boolean;
  readonly fs?: AtomicWriteFs;
}

const TEMPORARY_NAME = /^\..+\.\d+\.tmp$/;

/** Removes partial files that interrupted writes left in `directory`; must be called before the first write there. */
export async function removeHalfWritten(directory: string): Promise<void> {
  for (const name of await nodeFs.readdir(directory)) {
    if (TEMPORARY_NAME.test(name)) await nodeFs.rm(join(directory, name), { force: true });
  }
}

/**
 * Replaces `path` by `content` so that every reader, and every later start after a crash or power loss, sees the old
 * file or the new one whole: written beside it, synced, renamed over it, and the directory synced.
 * Rejects with the file system's error; the old file is then untouched, and no temporary file is left if it can be removed.
 */
export async function writeFileAtomically(
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  const fs = options.fs ?? nodeFs;
  const directory = dirname(path);
  const temporary = join(directory, `.${basename(path)}.${process.pid}.tmp`);
  const { mode = 0o640, durable = true } = options;
  try {
    const file = await fs.open(temporary, 'w', mode);
    try {
      await file.chmod(mode);
      await file.writeFile(content);
      if (durable) await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(temporary, path);
  } catch (error) {
    // On a disk that fails, this may fail too: the first error is the one that tells.
    await fs.rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  if (!durable) return;
  const entry = await fs.open(directory, 'r');
  try {
    await entry.sync();
  } finally {
    await entry.close();
  }
}
