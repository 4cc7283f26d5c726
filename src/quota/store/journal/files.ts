import { mkdir, open, readFile, readdir, rename, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** What a journal does to its directory: replaced in tests by one that stops at any byte. */
export interface JournalFiles {
  /** Names of the files of the directory, which is made if it is not there. */
  list(): Promise<readonly string[]>;
  read(name: string): Promise<Buffer>;
  /** Makes a new, empty file. */
  create(name: string): Promise<JournalFile>;
  /** Renames a file and makes that durable. */
  rename(from: string, to: string): Promise<void>;
  remove(name: string): Promise<void>;
}

/** A file that is appended to. */
export interface JournalFile {
  append(bytes: Buffer): Promise<void>;
  /** Returns when what was appended is on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Real files of one directory. `durable` false leaves it to the system when they reach the disk; to read only, the
 * directory has to exist.
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
    read: (name) => readFile(join(directory, name)),
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
