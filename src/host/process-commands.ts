import { open } from 'node:fs/promises';
import type { Clock } from './clock.js';
import { within } from './within.js';

/** Bytes of a command line that are read. */
const MAX_BYTES = 1_024;

/** A longer read waits for a lock that the process itself can hold for any time. */
const TIMEOUT_MS = 500;

class Late extends Error {}

/**
 * Reads command lines of processes that are not trusted. The kernel takes them from the memory of the process, under a
 * lock that the process can hold, so at most one read is under way: while one hangs, the others are not known.
 */
export class ProcessCommands {
  readonly #clock: Clock;
  readonly #proc: string;
  #queue: Promise<unknown> = Promise.resolve();
  #hanging = false;

  constructor(clock: Clock, proc = '/proc') {
    this.#clock = clock;
    this.#proc = proc;
  }

  /** Arguments separated by spaces; empty for a process without, null for one that has ended or does not answer. */
  async of(pid: number): Promise<string | null> {
    const mine = this.#queue.then(() => (this.#hanging ? null : this.#read(pid)));
    this.#queue = mine;
    return mine;
  }

  async #read(pid: number): Promise<string | null> {
    const read = readStart(`${this.#proc}/${pid}/cmdline`).finally(() => (this.#hanging = false));
    this.#hanging = true;
    try {
      return await within(read, TIMEOUT_MS, this.#clock, () => new Late());
    } catch (error) {
      // The file system reports only "no such process" and "not permitted"; the command is unknown in both cases.
      if (error instanceof Late) read.catch(() => undefined);
      return null;
    }
  }
}

async function readStart(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, null);
    const text = buffer.subarray(0, bytesRead).toString('utf8');
    // Each argument ends with a NUL; programs that write their own title may leave many of them.
    return text.replace(/\0+$/u, '').replaceAll('\0', ' ');
  } finally {
    await file.close();
  }
}
