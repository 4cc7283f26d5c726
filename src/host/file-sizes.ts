import { fstatSync, statSync, type Stats } from 'node:fs';
import type { CallList } from './call-list.js';
import { systemCallList, type SystemCall } from './system-calls.js';

/** A file by its descriptor or its path. */
export type SizedFile = number | string;

// statx(2): numbers and layout of Linux, the same on every architecture.
const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
const STATX_SIZE_AND_BLOCKS = 0x200 | 0x400;
const STATX_BYTES = 256;
const SIZE_OFFSET = 40;
const BLOCKS_OFFSET = 48;
/** The unit of blocks, in statx(2) and stat(2). */
const BLOCK_BYTES = 512;

const EMPTY_PATH = Buffer.alloc(1);

/**
 * Reads the sizes of many files, over and over, in a single call: Node's own calls take several times as long, and
 * create an object for each file. For files of local file systems, where the call does not wait.
 */
export class FileSizes {
  readonly #files: readonly SizedFile[];
  readonly #answers: Buffer;
  /** Null: the files are read one after another. */
  readonly #list: CallList | null;
  readonly #stats: (Stats | undefined)[] = [];

  /** `withLists`: false reads the files one after another, as where lists of calls are not possible. */
  constructor(files: readonly SizedFile[], withLists = true) {
    this.#files = files;
    this.#answers = Buffer.alloc(files.length * STATX_BYTES);
    this.#list = withLists ? systemCallList(callsOf(files, this.#answers)) : null;
  }

  /** Whether these are the same files in the same order. */
  isOf(files: readonly SizedFile[]): boolean {
    return files.length === this.#files.length && files.every((file, at) => file === this.#files[at]);
  }

  /** Reads the sizes of all files. */
  read(): void {
    if (this.#list !== null) this.#list.run();
    else for (const [at, file] of this.#files.entries()) this.#stats[at] = statOf(file);
  }

  /** Bytes of the file at the last read; null if it could not be read. */
  size(at: number): number | null {
    if (this.#list === null) return this.#stats[at]?.size ?? null;
    return this.#list.result(at) === 0 ? this.#number(at, SIZE_OFFSET) : null;
  }

  /** Bytes of disk that the file took at the last read, also behind its end; null if it could not be read. */
  diskBytes(at: number): number | null {
    const blocks = this.#list === null ? this.#stats[at]?.blocks : this.#blocks(at, this.#list);
    return blocks === undefined ? null : blocks * BLOCK_BYTES;
  }

  #blocks(at: number, list: CallList): number | undefined {
    return list.result(at) === 0 ? this.#number(at, BLOCKS_OFFSET) : undefined;
  }

  #number(at: number, offset: number): number {
    const position = at * STATX_BYTES + offset;
    return this.#answers.readUInt32LE(position) + this.#answers.readUInt32LE(position + 4) * 2 ** 32;
  }
}

function callsOf(files: readonly SizedFile[], answers: Buffer): SystemCall[] {
  return files.map((file, at) => {
    const [directory, path, flags] =
      typeof file === 'number' ? [file, EMPTY_PATH, AT_EMPTY_PATH] : [AT_FDCWD, Buffer.from(`${file}\0`), 0];
    const answer = answers.subarray(at * STATX_BYTES, (at + 1) * STATX_BYTES);
    return { name: 'statx', args: [directory, path, flags, STATX_SIZE_AND_BLOCKS, answer] };
  });
}

function statOf(file: SizedFile): Stats | undefined {
  try {
    return typeof file === 'number' ? fstatSync(file) : statSync(file);
  } catch {
    return undefined;
  }
}
