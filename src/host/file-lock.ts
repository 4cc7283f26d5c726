import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import koffi from 'koffi';
import { openStateFile } from './state-file.js';

// flock(2), and its error when another process holds the lock; numbers of Linux.
const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;
const EWOULDBLOCK = 11;

type Flock = (fd: number, operation: number) => number;

let bound: Flock | null = null;

/** A file lock that the kernel releases when the process ends, however it ends. */
export class FileLock {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /**
   * The lock, or null while another process holds it. Rejects if the file cannot be opened or its file system has no
   * locks.
   */
  static async tryAcquire(path: string): Promise<FileLock | null> {
    const file = await openStateFile(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600);
    bound ??= koffi.load('libc.so.6').func('flock', 'int', ['int', 'int']) as Flock;
    if (bound(file.fd, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) === 0) return new FileLock(file);
    const errno = koffi.errno();
    await file.close();
    if (errno === EWOULDBLOCK) return null;
    throw new Error(`${path} cannot be locked: errno ${errno}`);
  }

  async release(): Promise<void> {
    await this.#file.close();
  }
}
