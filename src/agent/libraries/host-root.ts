import { lstat, readFile, readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Linux follows at most this many symbolic links on one path. */
const MAX_LINKS = 40;

/** Directories in which a shell of the host searches programs. */
const PROGRAM_DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Top-level directories that are links into /usr on distributions with a merged /usr. */
const MERGED = new Set(['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']);

/**
 * The host's file system as the agent sees it: at `/`, or mounted elsewhere. Host paths are absolute paths as the
 * host's programs use them; every link is followed within the host's file system, wherever that is mounted.
 */
export interface HostRoot {
  /** Its path for the agent. */
  readonly path: string;
  /** `whole`: the host's `/`. `usr`: only its `/usr`, as the original's DaemonSet mounts it at `/usr/local/host`. */
  readonly extent: 'whole' | 'usr';
  /** The agent's path of the file that `hostPath` leads to; null if it does not exist, or lies outside the mount. */
  resolve(hostPath: string): Promise<string | null>;
  /** Names in a directory of the host, sorted; empty if it does not exist. */
  list(hostPath: string): Promise<string[]>;
  /** Bytes of a file of the host; null if it does not exist. */
  read(hostPath: string): Promise<Buffer | null>;
  /** The agent's path of the program that a shell of the host would start; null if there is none. */
  which(program: string): Promise<string | null>;
}

/** Opens the host's file system at `path`; rejects if it is neither a root file system nor a `/usr`. */
export async function openHostRoot(path: string): Promise<HostRoot> {
  const names = new Set(await readdir(path));
  // `etc` decides nothing: some distributions have one below /usr as well.
  if (names.has('usr')) return new MountedRoot(path, 'whole');
  if (names.has('lib') || names.has('lib64')) return new MountedRoot(path, 'usr');
  throw new Error(`${path} is neither the root directory of a host nor its /usr`);
}

class MountedRoot implements HostRoot {
  readonly path: string;
  readonly extent: 'whole' | 'usr';

  constructor(path: string, extent: 'whole' | 'usr') {
    this.path = path;
    this.extent = extent;
  }

  async resolve(hostPath: string): Promise<string | null> {
    const ahead = hostPath
      .split('/')
      .filter((part) => part !== '' && part !== '.')
      .reverse();
    let done: string[] = [];
    let links = 0;
    for (let part = ahead.pop(); part !== undefined; part = ahead.pop()) {
      if (part === '..') {
        done.pop();
        continue;
      }
      const target = await this.#linkTarget([...done, part]);
      if (target === undefined) return null;
      if (target === null) {
        done.push(part);
        continue;
      }
      links += 1;
      if (links > MAX_LINKS) return null;
      if (target.startsWith('/')) done = [];
      ahead.push(
        ...target
          .split('/')
          .filter((step) => step !== '' && step !== '.')
          .reverse(),
      );
    }
    return this.#side(done);
  }

  async list(hostPath: string): Promise<string[]> {
    const path = await this.resolve(hostPath);
    return path === null ? [] : (await readdir(path)).sort();
  }

  async read(hostPath: string): Promise<Buffer | null> {
    const path = await this.resolve(hostPath);
    return path === null ? null : readFile(path);
  }

  async which(program: string): Promise<string | null> {
    if (program.includes('/')) return null;
    for (const directory of PROGRAM_DIRECTORIES) {
      const path = await this.resolve(`${directory}/${program}`);
      if (path === null) continue;
      const entry = await stat(path);
      if (entry.isFile() && (entry.mode & 0o111) !== 0) return path;
    }
    return null;
  }

  /** Target of a link; null if it is not a link, undefined if it does not exist. */
  async #linkTarget(parts: readonly string[]): Promise<string | null | undefined> {
    if (this.extent === 'usr' && parts.length === 1) {
      const top = parts[0] ?? '';
      if (top === 'usr') return null;
      return MERGED.has(top) ? `/usr/${top}` : undefined;
    }
    const path = this.#side(parts);
    try {
      return (await lstat(path)).isSymbolicLink() ? await readlink(path) : null;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      throw error;
    }
  }

  #side(parts: readonly string[]): string {
    return join(this.path, ...(this.extent === 'usr' ? parts.slice(1) : parts));
  }
}
