import koffi, { type LibraryHandle } from 'koffi';
import { DriverError } from '../driver.js';

/**
 * Default paths of the driver's library: the dynamic linker's, then those of distributions, driver containers and cloud
 * images.
 */
export const LIBRARY_PATHS: readonly string[] = [
  'libnvidia-ml.so.1',
  'libnvidia-ml.so',
  '/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1',
  '/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1',
  '/usr/lib64/libnvidia-ml.so.1',
  '/usr/local/nvidia/lib64/libnvidia-ml.so.1',
  '/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1',
  '/run/nvidia/driver/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1',
  '/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1',
  '/home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.1',
  '/usr/lib/wsl/lib/libnvidia-ml.so.1',
];

/**
 * Parameter types of C functions. `handle` is an opaque pointer of the driver, kept as a number; `memory` is a buffer
 * that the function reads or writes, whose layout the caller knows.
 */
export type Parameter = 'handle' | 'uint' | 'ulong' | 'memory';
export type Argument = bigint | number | Buffer;

const C_TYPE: Readonly<Record<Parameter, string>> = {
  handle: 'uint64_t',
  uint: 'uint32_t',
  ulong: 'uint64_t',
  memory: 'void *',
};

/** Address of a buffer, for structures that point to it. Valid as long as something refers to the buffer. */
export function addressOf(buffer: Buffer): bigint {
  return BigInt(koffi.address(buffer));
}

type AsyncFunction = (...args: [...Argument[], (error: unknown, code: number) => void]) => void;

/** The opened driver library. A function is bound at its first call; a missing one is no error before that. */
export class Library {
  readonly path: string;
  readonly #handle: LibraryHandle;
  readonly #bound = new Map<string, AsyncFunction | null>();

  private constructor(path: string, handle: LibraryHandle) {
    this.path = path;
    this.#handle = handle;
  }

  /** Opens the first existing file of `paths`. */
  static open(paths: readonly string[]): Library {
    const failures: string[] = [];
    for (const path of paths) {
      try {
        return new Library(path, koffi.load(path));
      } catch (error) {
        failures.push(`${path}: ${(error as Error).message}`);
      }
    }
    const where = paths.length === 1 ? failures.join('') : `looked for ${paths.join(', ')}`;
    throw new DriverError('unreachable', `the NVIDIA management library cannot be opened (${where})`, failures);
  }

  has(name: string, parameters: readonly Parameter[]): boolean {
    return this.#bind(name, parameters) !== null;
  }

  /**
   * Calls a function that returns `nvmlReturn_t`, on a thread of Node's pool; null if the library lacks the function.
   * Buffers among the arguments must not be touched until the answer.
   */
  async call(name: string, parameters: readonly Parameter[], args: readonly Argument[]): Promise<number | null> {
    const bound = this.#bind(name, parameters);
    if (bound === null) return null;
    return new Promise((resolve, reject) => {
      bound(...args, (error, code) => {
        // Naming the buffers here keeps them alive for as long as C may write to them.
        if (error !== null && error !== undefined)
          reject(new DriverError('failed', `${name} cannot be called with ${args.length} arguments`, error));
        else resolve(code);
      });
    });
  }

  #bind(name: string, parameters: readonly Parameter[]): AsyncFunction | null {
    const known = this.#bound.get(name);
    if (known !== undefined) return known;
    let bound: AsyncFunction | null = null;
    try {
      const types = parameters.map((parameter) => C_TYPE[parameter]);
      bound = this.#handle.func(name, 'int', types).async as AsyncFunction;
    } catch {
      // koffi throws if the symbol is missing, as in an older driver.
    }
    this.#bound.set(name, bound);
    return bound;
  }
}
