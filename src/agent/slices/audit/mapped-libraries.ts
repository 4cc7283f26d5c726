import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '../../../host/clock.js';
import { mappedFiles, mappedNameOf, type MappedFile } from '../../../host/mapped-files.js';

/** How long a result is cached: a process may unmap the library. */
const KNOWN_MS = 60_000;

interface Known {
  readonly startTicks: number;
  readonly atMs: number;
}

/**
 * Tells whether processes have a control library of this node mapped, by the identity of the file, which no process can
 * forge, not by its name. A read takes about a millisecond, so a process that has the library is read once a minute.
 */
export class MappedLibraries {
  readonly #paths: () => readonly string[];
  readonly #clock: Clock;
  readonly #processes: string;
  /** By path and file identity (stat). */
  readonly #names = new Map<string, MappedFile | null>();
  /** Processes that had the library at their last read. */
  readonly #known = new Map<number, Known>();

  /**
   * `paths` returns the control libraries that containers of this node were given; if there are none, nothing is known.
   */
  constructor(paths: () => readonly string[], clock: Clock, processes = '/proc') {
    this.#paths = paths;
    this.#clock = clock;
    this.#processes = processes;
  }

  /** Null if it is unknown: no library is known, or the process cannot be read. */
  has(pid: number, startTicks: number): boolean | null {
    const now = this.#clock.now();
    const known = this.#known.get(pid);
    if (known?.startTicks === startTicks && now - known.atMs < KNOWN_MS) return true;
    const libraries = this.#libraries();
    if (libraries.length === 0) return null;
    let files: ReadonlySet<MappedFile>;
    try {
      files = mappedFiles(readFileSync(`${this.#processes}/${pid}/maps`, 'latin1'));
    } catch {
      return null;
    }
    // A process that is ending has no mappings left.
    if (files.size === 0) return null;
    for (const [other, { atMs }] of this.#known) if (now - atMs >= KNOWN_MS) this.#known.delete(other);
    if (!libraries.some((library) => files.has(library))) return false;
    this.#known.set(pid, { startTicks, atMs: now });
    return true;
  }

  #libraries(): readonly MappedFile[] {
    return this.#paths().flatMap((path) => {
      try {
        const { ino, dev, ctimeMs } = statSync(path);
        const key = `${path} ${dev} ${ino} ${ctimeMs}`;
        if (!this.#names.has(key)) this.#names.set(key, mappedNameOf(path));
        return this.#names.get(key) ?? [];
      } catch {
        return [];
      }
    });
  }
}
