import * as nodeFs from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** The file system calls of an atomic write; a test passes calls that fail at a chosen point. */
export type AtomicWriteFs = Pick<typeof nodeFs, 'open' | 'rename' | 'rm'>;

export interface AtomicWriteOptions {
  /** Permission bits of the new file, independent of the umask; default 0640. */
  readonly mode?: number;
  /** False for content that is useless after a power loss, which is not synced. */
  readonly durable?: boolean;
  readonly fs?: AtomicWriteFs;
}

const TEMPORARY_NAME = /^\.(.+)\.\d+\.tmp$/;

/**
 * Removes incomplete files of interrupted writes from `directory`; must be called before the first write there. In a
 * directory that other programs use too, `isOurs` says which of the files are this program's.
 */
export async function removeHalfWritten(
  directory: string,
  isOurs: (name: string) => boolean = () => true,
): Promise<void> {
  for (const name of await nodeFs.readdir(directory)) {
    const [, file] = TEMPORARY_NAME.exec(name) ?? [];
    if (file !== undefined && isOurs(file)) await nodeFs.rm(join(directory, name), { force: true });
  }
}

/**
 * Replaces `path` by `content` so that every reader, even after a crash or power loss, sees the complete old file or
 * the complete new file: the content is written to a temporary file, synced, renamed over `path`, and the directory
 * synced. Rejects with the file system's error; the old file is then unchanged, and the temporary file is removed if
 * possible.
 */
export async function writeFileAtomically(
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  await (await createFileAtomically(path, content, options)).close();
}

/** Like `writeFileAtomically`; returns the new file, open for reading and writing since its creation. */
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
    // This may also fail if the disk fails: the first error is the relevant one.
    await fs.rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Never opens an existing file: a process that can read it may hold a lease on it, which would block the open. */
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
