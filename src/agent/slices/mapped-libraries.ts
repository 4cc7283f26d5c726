import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '../../host/clock.js';
import { mappedFiles, mappedNameOf, type MappedFile } from '../../host/mapped-files.js';

/** What was found of a process holds for so long: it may unmap the library. */
const KNOWN_MS = 60_000;

interface Known {
  readonly startTicks: number;
  readonly atMs: number;
}

/**
 * Whether processes have one of the control libraries of this node mapped: the file itself, which no process can
 * choose, whatever it is called. Reading that takes about a millisecond, so a process that has it is read once a
 * minute.
 */
export class MappedLibraries {
  readonly #paths: () => readonly string[];
  readonly #clock: Clock;
  readonly #processes: string;
  /** By path and what stat says of it. */
  readonly #names = new Map<string, MappedFile | null>();
  /** Processes that had it. */
  readonly #known = new Map<number, Known>();

  /** `paths`: the control libraries that containers of this node were given; none: nothing is known. */
  constructor(paths: () => readonly string[], clock: Clock, processes = '/proc') {
    this.#paths = paths;
    this.#clock = clock;
    this.#processes = processes;
  }

  /** Null where it cannot be told: no library is known, or the process may not be looked at. */
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
    // A process that is ending has no memory left.
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
