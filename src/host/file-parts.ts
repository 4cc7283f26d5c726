import { readSync } from 'node:fs';
import type { CallList } from './call-list.js';
import { systemCallList, type SystemCall } from './system-calls.js';

/** Bytes of an open file. */
export interface FilePart {
  readonly fd: number;
  readonly position: number;
  readonly length: number;
}

/** Stands for a part that cannot be read. */
const NOTHING: FilePart = { fd: -1, position: 0, length: 1 };

/** Reads these parts; null stands for one that cannot be read. Uses the list `before` if it is of the same parts. */
export function readParts(before: FileParts, parts: readonly (FilePart | null)[]): FileParts {
  const fileParts = before.isOf(parts) ? before : new FileParts(parts);
  fileParts.read();
  return fileParts;
}

/**
 * Reads parts of many open files, over and over, in a single call: Node's own calls take several times as long. For
 * files of local file systems, where the call does not wait.
 */
export class FileParts {
  readonly #parts: readonly FilePart[];
  readonly #bytes: readonly Buffer[];
  /** Null: the parts are read one after another. */
  readonly #list: CallList | null;
  readonly #counts: number[] = [];

  /** `withLists`: false reads the parts one after another, as where lists of calls are not possible. */
  constructor(parts: readonly (FilePart | null)[], withLists = true) {
    this.#parts = parts.map((part) => part ?? NOTHING);
    const all = Buffer.alloc(this.#parts.reduce((sum, { length }) => sum + length, 0));
    let end = 0;
    this.#bytes = this.#parts.map(({ length }) => all.subarray(end, (end += length)));
    const calls = this.#parts.map(({ fd, position, length }, at): SystemCall => {
      return { name: 'pread', args: [fd, this.#bytes[at] ?? all, length, position] };
    });
    this.#list = withLists ? systemCallList(calls) : null;
  }

  /** Whether these are the same parts in the same order. */
  isOf(parts: readonly (FilePart | null)[]): boolean {
    return parts.length === this.#parts.length && parts.every((part, at) => isSame(part ?? NOTHING, this.#parts[at]));
  }

  /** Reads all parts. */
  read(): void {
    if (this.#list !== null) this.#list.run();
    else for (const [at, part] of this.#parts.entries()) this.#counts[at] = readPart(part, this.#bytes[at]);
  }

  /** The bytes of a part, until the next read; null if the last read did not find all of them. */
  bytes(at: number): Buffer | null {
    const bytes = this.#bytes[at];
    const count = this.#list === null ? this.#counts[at] : this.#list.result(at);
    return bytes !== undefined && count === bytes.length ? bytes : null;
  }
}

function isSame(a: FilePart, b: FilePart | undefined): boolean {
  return a.fd === b?.fd && a.position === b.position && a.length === b.length;
}

function readPart({ fd, position, length }: FilePart, into: Buffer | undefined): number {
  if (into === undefined) return -1;
  try {
    return readSync(fd, into, 0, length, position);
  } catch {
    return -1;
  }
}
