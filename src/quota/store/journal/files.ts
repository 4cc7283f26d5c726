import { mkdir, open, readdir, rename, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { readRegularFile } from '../regular-file.js';

/** File operations of a journal; tests replace them with ones that stop at any byte. */
export interface JournalFiles {
  /** Names of the files in the directory, which is created if missing. */
  list(): Promise<readonly string[]>;
  read(name: string): Promise<Uint8Array>;
  /** Creates an empty file. */
  create(name: string): Promise<JournalFile>;
  /** Renames a file durably. */
  rename(from: string, to: string): Promise<void>;
  remove(name: string): Promise<void>;
}

/** An append-only file. */
export interface JournalFile {
  append(bytes: Uint8Array): Promise<void>;
  /** Resolves when all appended data is on disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Real files of one directory. With `durable` false, the system decides when data reaches the disk. A read-only
 * directory must exist.
 */
export function directoryFiles(directory: string, durable: boolean, isReadOnly = false): JournalFiles {
  const syncDirectory = async (): Promise<void> => {
    if (!durable) return;
    const handle = await open(directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  };
  return {
    async list() {
      if (!isReadOnly) await mkdir(directory, { recursive: true, mode: 0o750 });
      return readdir(directory);
    },
    read: (name) => readRegularFile(join(directory, name)),
    async create(name) {
      const handle = await open(join(directory, name), 'wx', 0o640);
      await syncDirectory();
      return fileOf(handle, durable);
    },
    async rename(from, to) {
      await rename(join(directory, from), join(directory, to));
      await syncDirectory();
    },
    remove: (name) => unlink(join(directory, name)),
  };
}

function fileOf(handle: FileHandle, durable: boolean): JournalFile {
  return {
    async append(bytes) {
      for (let at = 0; at < bytes.length;) at += (await handle.write(bytes, at)).bytesWritten;
    },
    sync: async () => {
      if (durable) await handle.datasync();
    },
    close: () => handle.close(),
  };
}
