import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Architecture } from './architecture.js';
import { readElfFile, readExports } from './elf-file.js';
import type { ElfFacts, ElfResult } from './elf.js';
import type { HostRoot } from './host-root.js';
import { parseLdSoCache } from './ld-so-cache.js';

/** A file of the host that a mirror may contain. */
export interface HostFile {
  /** Name of the file after all links. */
  readonly fileName: string;
  /** Path of the file for the agent. */
  readonly path: string;
  /** Size and time of the last change, to detect a changed file. */
  readonly identity: string;
}

/** A library that the host's dynamic linker finds. */
export interface HostLibrary extends HostFile {
  /** Name under which the linker finds it. */
  readonly name: string;
  readonly facts: ElfFacts;
  /** The names that programs find in it; null if they were not requested or cannot be read. */
  readonly exports: ReadonlySet<string> | null;
}

export interface HostBinary extends HostFile {
  readonly name: string;
}

/** The requested libraries and programs that the host has. */
export interface HostInventory {
  /** Source of the list of libraries: the host's ld.so.cache, or its library directories. */
  readonly source: 'ld.so.cache' | 'directories';
  /** In the order in which the host's dynamic linker tries them. */
  readonly libraries: readonly HostLibrary[];
  readonly binaries: readonly HostBinary[];
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
}

export interface InventoryRequest {
  readonly wantsLibrary: (name: string) => boolean;
  readonly binaries: readonly string[];
  /** SONAMEs of the libraries whose exports are needed. */
  readonly exportsOf?: readonly string[];
}

const CACHE = '/etc/ld.so.cache';

/** Searched if there is no cache: only `/usr` is mounted, or the host has none. */
const LIBRARY_DIRECTORIES = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/lib64',
  '/usr/lib',
  '/usr/lib/i386-linux-gnu',
  '/usr/lib32',
];

/** Finds libraries and programs of a host; caches the facts of a file until the file changes. */
export class Inventory {
  readonly #root: HostRoot;
  readonly #elfs = new FileFacts(readElfFile);
  readonly #exports = new FileFacts(readExports);

  constructor(root: HostRoot) {
    this.#root = root;
  }

  async take(request: InventoryRequest): Promise<HostInventory> {
    const unreadable: { path: string; reason: string }[] = [];
    const listed = (await this.#cachedNames(unreadable)) ?? (await this.#namesInDirectories());
    const libraries: HostLibrary[] = [];
    for (const { name, hostPath } of listed.names) {
      if (!request.wantsLibrary(name)) continue;
      const file = await this.#file(hostPath);
      if (file === null) continue;
      const elf = await this.#elfs.of(file);
      if (!elf.ok) {
        unreadable.push({ path: file.path, reason: elf.reason });
        continue;
      }
      const wanted = elf.value.soname !== null && request.exportsOf?.includes(elf.value.soname) === true;
      const exports = wanted ? await this.#exports.of(file) : null;
      libraries.push({ ...file, name, facts: elf.value, exports: exports?.ok === true ? exports.value : null });
    }
    return { source: listed.source, libraries, binaries: await this.#programs(request.binaries), unreadable };
  }

  async #cachedNames(unreadable: { path: string; reason: string }[]) {
    const bytes = await this.#root.read(CACHE);
    if (bytes === null) return null;
    const cache = parseLdSoCache(bytes);
    if (!cache.ok) {
      unreadable.push({ path: CACHE, reason: cache.reason });
      return null;
    }
    // Libraries in a directory for certain processors come last: a mirror serves every container of the node.
    const everywhere = cache.entries.filter((entry) => entry.hardware === null);
    const somewhere = cache.entries.filter((entry) => entry.hardware !== null);
    return {
      source: 'ld.so.cache' as const,
      names: [...everywhere, ...somewhere].map(({ name, path }) => ({ name, hostPath: path })),
    };
  }

  async #namesInDirectories() {
    const names: { name: string; hostPath: string }[] = [];
    for (const directory of LIBRARY_DIRECTORIES) {
      for (const name of await this.#root.list(directory)) {
        if (name.includes('.so')) names.push({ name, hostPath: `${directory}/${name}` });
      }
    }
    return { source: 'directories' as const, names };
  }

  async #programs(names: readonly string[]): Promise<HostBinary[]> {
    const found: HostBinary[] = [];
    for (const name of names) {
      const path = await this.#root.which(name);
      if (path !== null) found.push({ ...(await describe(path)), name });
    }
    return found;
  }

  async #file(hostPath: string): Promise<HostFile | null> {
    const path = await this.#root.resolve(hostPath);
    if (path === null || !(await stat(path)).isFile()) return null;
    return describe(path);
  }
}

/** Cached contents of files, until the files change. */
class FileFacts<T> {
  readonly #read: (path: string) => Promise<ElfResult<T>>;
  readonly #known = new Map<string, { readonly identity: string; readonly result: ElfResult<T> }>();

  constructor(read: (path: string) => Promise<ElfResult<T>>) {
    this.#read = read;
  }

  async of({ path, identity }: HostFile): Promise<ElfResult<T>> {
    const known = this.#known.get(path);
    if (known?.identity === identity) return known.result;
    const result = await this.#read(path);
    this.#known.set(path, { identity, result });
    return result;
  }
}

/** The agent's path of the library that host programs load by this name; null if the host has none. */
export async function findHostLibrary(
  root: HostRoot,
  name: string,
  architecture: Architecture,
): Promise<string | null> {
  const { libraries } = await new Inventory(root).take({
    wantsLibrary: (candidate) => candidate === name,
    binaries: [],
  });
  return libraries.find((library) => library.facts.architecture === architecture)?.path ?? null;
}

async function describe(path: string): Promise<HostFile> {
  const entry = await stat(path, { bigint: true });
  return { fileName: basename(path), path, identity: `${entry.size}:${entry.mtimeNs}` };
}
