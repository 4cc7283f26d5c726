import koffi from 'koffi';
import { packageFile } from './package-files.js';

/** Makes C calls one after another; see native/calls/call_list.c, also for the layout of a call. */
const CALL_LIST = packageFile('native/build/libcall-list.so');
/** Calls with more arguments cannot be in a list. */
export const CALL_ARGUMENTS = 6;
const CALL_BYTES = 8 * (1 + CALL_ARGUMENTS + 1);
const RESULT_OFFSET = CALL_BYTES - 8;

/** A call of a C function that returns an int; its arguments are integers, and buffers that it reads or writes. */
export interface Call {
  readonly address: bigint;
  readonly args: readonly (bigint | number | Buffer)[];
}

interface Entry {
  (list: Buffer, count: number): void;
  async(list: Buffer, count: number, done: (error: unknown) => void): void;
}

/** The library that makes lists of calls. */
export class CallListLibrary {
  readonly #entry: Entry;

  private constructor(entry: Entry) {
    this.#entry = entry;
  }

  /** Null if this package was installed without it. */
  static open(path = CALL_LIST): CallListLibrary | null {
    try {
      return new CallListLibrary(koffi.load(path).func('call_list', 'void', ['void *', 'uint32_t']) as Entry);
    } catch {
      return null;
    }
  }

  list(calls: readonly Call[]): CallList {
    return new CallList(this.#entry, calls);
  }
}

/** Calls that are prepared once and made in this order, any number of times. */
export class CallList {
  readonly #entry: Entry;
  /** Keeps the buffers among the arguments alive. */
  readonly #calls: readonly Call[];
  readonly #bytes: Buffer;

  constructor(entry: Entry, calls: readonly Call[]) {
    this.#entry = entry;
    this.#calls = calls;
    this.#bytes = Buffer.alloc(calls.length * CALL_BYTES);
    for (const [at, { address, args }] of calls.entries()) {
      if (args.length > CALL_ARGUMENTS) throw new RangeError(`a call has ${args.length} arguments`);
      this.#bytes.writeBigUInt64LE(address, at * CALL_BYTES);
      for (const [index, value] of args.entries()) {
        const word = typeof value === 'object' ? koffi.address(value) : BigInt(value);
        this.#bytes.writeBigUInt64LE(BigInt.asUintN(64, word), at * CALL_BYTES + 8 * (1 + index));
      }
    }
  }

  /** Makes the calls on this thread: for calls that never wait. */
  run(): void {
    if (this.#calls.length > 0) this.#entry(this.#bytes, this.#calls.length);
  }

  /** Makes the calls on one thread of Node's pool: entering a thread costs more than most calls. */
  async runOnPool(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#entry.async(this.#bytes, this.#calls.length, (error) => {
        // Naming the calls here keeps their buffers alive for as long as C may write to them.
        if (error !== null && error !== undefined)
          reject(new Error(`a list of ${this.#calls.length} functions cannot be called`, { cause: error }));
        else resolve();
      });
    });
  }

  /** The result of a call in the last run. */
  result(at: number): number {
    return this.#bytes.readInt32LE(at * CALL_BYTES + RESULT_OFFSET);
  }
}
