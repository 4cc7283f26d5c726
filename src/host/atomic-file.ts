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
 * file or the new one whole: written beside it, synced, renamed over it, and the directory synced. Rejects with the
 * file system's error; the old file is then untouched, and no temporary file is left if it can be removed.
 */
export async function writeFileAtomically(
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  await (await createFileAtomically(path, content, options)).close();
}

/** The same, and answers the new file, open for reading and writing ever since it was made. */
export async function createFileAtomically(
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<nodeFs.FileHandle> {
  const fs = options.fs ?? nodeFs;
  const directory = dirname(path);
  const temporary = join(directory, `.${basename(path)}.${process.pid}.tmp`);
  const { mode = 0o640, durable = true } = options;
  let file: nodeFs.FileHandle | null = null;
  try {
    file = await openNew(fs, temporary, mode);
    await file.chmod(mode);
    await file.writeFile(content);
    if (durable) await file.sync();
    await fs.rename(temporary, path);
    if (durable) await syncDirectory(fs, directory);
    return file;
  } catch (error) {
    await file?.close().catch(() => undefined);
    // On a disk that fails, this may fail too: the first error is the one that tells.
    await fs.rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Never opens a file that is there: whoever can read it may have a lease on it, and would make us wait. */
async function openNew(fs: AtomicWriteFs, path: string, mode: number): Promise<nodeFs.FileHandle> {
  try {
    return await fs.open(path, 'wx+', mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await fs.rm(path, { force: true });
    return fs.open(path, 'wx+', mode);
  }
}

async function syncDirectory(fs: AtomicWriteFs, directory: string): Promise<void> {
  const entry = await fs.open(directory, 'r');
  try {
    await entry.sync();
  } finally {
    await entry.close();
  }
}
