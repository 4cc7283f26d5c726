import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { chmod, chown, link, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ACTIVITY, ACTIVITY_FILE, HIGH_DIRECTORY } from '../../../abi/vgpu-abi.js';
import { writeFileAtomically } from '../../../host/atomic-file.js';
import { NEVER_WAIT } from '../../../host/reachable-file.js';
import { bindMount, mountTmpfs, remountReadOnly, unmount } from '../../../host/mounts.js';

const TMPFS_BYTES = 64 * 2 ** 20;
const TMPFS_FILES = 65_536;
const TMPFS_MARK = '.mounted';
/** The unit of `blocks` in stat(2). */
export const BLOCK_BYTES = 512;
/** The space that an activity file may take: file systems round up and add metadata. */
const MOST_BYTES = 2 ** 16;

/**
 * The activity file of each slice, which its container may write, and a directory of links to the activity files of the
 * slices to which it gives way. The container may only read these. `directoryOf` names the directory of a slice.
 *
 * In memory (`tmpfs`), all of them are on one small file system, since a link cannot lead to another one. The file and
 * the directory of a slice are then mounted separately into the slice's directory.
 */
export class ActivityFiles {
  readonly #directoryOf: (allocation: string) => string;
  readonly #tmpfs: string | null;
  /** Files on which no container can take a lease: they are open for writing. */
  readonly #open = new Map<string, number>();
  /** Slices whose links are being changed. A removal waits for it. */
  readonly #linking = new Map<string, Promise<void>>();

  constructor(directoryOf: (allocation: string) => string, tmpfs: string | null) {
    this.#directoryOf = directoryOf;
    this.#tmpfs = tmpfs;
  }

  /** The root of their file system in memory; null: they are on the disk. */
  get root(): string | null {
    return this.#tmpfs;
  }

  #pathOf(allocation: string): string {
    return join(this.#directoryOf(allocation), ACTIVITY_FILE);
  }

  /** Mounts the file system, unless an earlier agent did. */
  open(): void {
    if (this.#tmpfs === null || existsSync(join(this.#tmpfs, TMPFS_MARK))) return;
    mkdirSync(this.#tmpfs, { recursive: true, mode: 0o700 });
    mountTmpfs(this.#tmpfs, TMPFS_BYTES, TMPFS_FILES);
    writeFileSync(join(this.#tmpfs, TMPFS_MARK), '');
  }

  /**
   * With `anew`, the file is emptied: it claims nothing. The file itself is kept: other slices have links to it.
   */
  async make(allocation: string, anew: boolean): Promise<void> {
    const path = this.#pathOf(allocation);
    const directory = join(this.#directoryOf(allocation), HIGH_DIRECTORY);
    await mkdir(directory, { recursive: true });
    const there = await lstat(path).catch(() => null);
    if (there?.isFile() === true && there.size > 0) {
      this.cut(allocation);
      if (anew) this.#write(allocation, writeEmpty);
      return;
    }
    if (this.#tmpfs === null) {
      await chmod(directory, 0o755);
      await writeActivity(path);
      return;
    }
    await this.remove(allocation);
    await mkdir(this.#linksOf(allocation), { recursive: true });
    await chmod(this.#linksOf(allocation), 0o755);
    await writeActivity(this.#fileOf(allocation));
    if (there?.isFile() !== true) await writeFileAtomically(path, '', { mode: 0o644, durable: false });
    bindMount(this.#fileOf(allocation), path);
    bindMount(this.#linksOf(allocation), directory);
    remountReadOnly(directory);
  }

  /**
   * Empties the file, because the processes of the slice have ended. Slices with a link to the file stop giving way to
   * it.
   */
  clear(allocation: string): void {
    if (this.#open.has(allocation)) this.#write(allocation, writeEmpty);
  }

  /** Brings a file back to its size; returns a text about the file that it found instead, if any. */
  cut(allocation: string): string | null {
    const found = statSync(this.#pathOf(allocation), { throwIfNoEntry: false });
    if (found === undefined) return null;
    const { size, blocks } = found;
    if (size === ACTIVITY.structSize && blocks * BLOCK_BYTES <= MOST_BYTES) return null;
    this.#write(allocation, (fd) => {
      // Only its end is missing in a file of an agent that knew less to put in it.
      const missing = Math.max(0, ACTIVITY.structSize - size);
      writeSync(fd, Buffer.alloc(missing), 0, missing, size);
      ftruncateSync(fd, ACTIVITY.structSize);
    });
    return `the activity file has ${size} bytes and ${blocks} blocks instead of ${ACTIVITY.structSize} bytes`;
  }

  /** Closes all files, which stay on disk. */
  close(): void {
    for (const fd of this.#open.values()) closeSync(fd);
    this.#open.clear();
  }

  /**
   * Null where it cannot be opened now: its container has a lease on it, which other slices do not wait for either, or
   * the agent has no descriptor left.
   */
  #openFile(allocation: string): number | null {
    try {
      return openSync(this.#pathOf(allocation), constants.O_RDWR | NEVER_WAIT);
    } catch {
      return null;
    }
  }

  #write(allocation: string, write: (fd: number) => void): void {
    const held = this.#open.get(allocation);
    const fd = held ?? this.#openFile(allocation);
    if (fd === null) return;
    try {
      write(fd);
    } finally {
      if (held === undefined) closeSync(fd);
    }
  }

  /** Keeps the container of a slice from taking a lease on its file, which would hide what it claims. */
  hold(allocation: string): void {
    if (this.#open.has(allocation)) return;
    const fd = this.#openFile(allocation);
    if (fd !== null) this.#open.set(allocation, fd);
  }

  #release(allocation: string): void {
    const fd = this.#open.get(allocation);
    if (fd !== undefined) closeSync(fd);
    this.#open.delete(allocation);
  }

  /**
   * Links a slice to those whose activity it reads: for each of its GPUs their allocations in order, and no others. All
   * of them exist; fails if one is removed meanwhile.
   */
  async linkClaimants(allocation: string, claimants: readonly (readonly string[])[]): Promise<void> {
    const linking = this.#link(allocation, claimants);
    this.#linking.set(allocation, linking);
    try {
      await linking;
    } finally {
      this.#linking.delete(allocation);
    }
  }

  async #link(allocation: string, claimants: readonly (readonly string[])[]): Promise<void> {
    const directory = this.#linksOf(allocation);
    const wanted = new Map(
      claimants.flatMap((others, gpu) => others.map((id, number) => [linkName(gpu, number), id] as const)),
    );
    for (const name of await readdir(directory)) if (!wanted.has(name)) await rm(join(directory, name));
    for (const [name, id] of wanted) {
      // A reader finds the old file or the new one at any time.
      const fresh = join(directory, `${name}.new`);
      await link(this.#fileOf(id), fresh);
      await rename(fresh, join(directory, name));
      // The rename does nothing if both names already are links to one file.
      await rm(fresh, { force: true });
    }
  }

  async remove(allocation: string): Promise<void> {
    // A link that appears while the directory is being removed would keep it.
    await this.#linking.get(allocation)?.catch(() => undefined);
    this.#release(allocation);
    if (this.#tmpfs === null) return;
    unmount(this.#pathOf(allocation));
    unmount(join(this.#directoryOf(allocation), HIGH_DIRECTORY));
    await rm(dirname(this.#fileOf(allocation)), { recursive: true, force: true });
  }

  #fileOf(allocation: string): string {
    return this.#tmpfs === null ? this.#pathOf(allocation) : join(this.#tmpfs, allocation, 'activity');
  }

  #linksOf(allocation: string): string {
    return this.#tmpfs === null
      ? join(this.#directoryOf(allocation), HIGH_DIRECTORY)
      : join(this.#tmpfs, allocation, HIGH_DIRECTORY);
  }
}

function writeEmpty(fd: number): void {
  writeSync(fd, Buffer.alloc(ACTIVITY.structSize), 0, ACTIVITY.structSize, 0);
}

const linkName = (gpu: number, number: number): string => `${String(gpu).padStart(2, '0')}.${number}`;

/** Written in full: a write to a mapped hole would kill the container's process on a full disk. */
async function writeActivity(path: string): Promise<void> {
  await writeFileAtomically(path, Buffer.alloc(ACTIVITY.structSize), { mode: 0o666, durable: false });
  if (process.getuid?.() === 0) await chown(path, 0, 0);
}
