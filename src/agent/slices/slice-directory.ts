import { chmod, chown, lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LIMITS_FILE, SOCKET_FILE, USAGE_FILE } from '../../abi/vgpu-abi.js';
import { encodeUsage } from '../../abi/usage-file.js';
import type { UsageTmpfs } from './usage-tmpfs.js';
import { removeHalfWritten, writeFileAtomically } from '../../host/atomic-file.js';

const OPERATOR_FILE_NAME = 'operator.json';
const ALLOCATION_NAME = /^[0-9a-f]{16}$/;

/** Names in a slice's directory that are spoken for; a container may not be called so in it. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  LIMITS_FILE,
  SOCKET_FILE,
  OPERATOR_FILE_NAME,
  dirname(USAGE_FILE),
]);

/**
 * `<base>/<allocation id>/`: what a container sees as /etc/vcuda, read-only. It belongs to the agent. The container's
 * user, whichever that is, may write only the usage file. That file is mounted by itself, so it can neither be removed
 * nor replaced; the agent treats its content as untrusted.
 */
export class SliceDirectories {
  readonly #base: string;
  readonly #tmpfs: UsageTmpfs | null;

  /** `tmpfs`: where usage files are kept in memory; null: on the disk, beside the rest. */
  constructor(base: string, tmpfs: UsageTmpfs | null = null) {
    this.#base = base;
    this.#tmpfs = tmpfs;
  }

  /** True where the size of new usage files is bounded by themselves. */
  get bounded(): boolean {
    return this.#tmpfs !== null;
  }

  pathOf(allocationId: string): string {
    return join(this.#base, allocationId);
  }

  limitsPathOf(allocationId: string): string {
    return join(this.pathOf(allocationId), LIMITS_FILE);
  }

  usagePathOf(allocationId: string): string {
    return join(this.pathOf(allocationId), USAGE_FILE);
  }

  socketPathOf(allocationId: string): string {
    return join(this.pathOf(allocationId), SOCKET_FILE);
  }

  /** Read by the agent alone; the container may see that it is there. */
  operatorPathOf(allocationId: string): string {
    return join(this.pathOf(allocationId), OPERATOR_FILE_NAME);
  }

  /**
   * Makes the directory that all others are in, on the node for root alone, and clears away what an earlier life did
   * not finish.
   */
  async open(): Promise<void> {
    await mkdir(this.#base, { recursive: true });
    await chmod(this.#base, 0o750);
    for (const id of await this.list()) {
      for (const directory of [this.pathOf(id), dirname(this.usagePathOf(id))])
        await removeHalfWritten(directory).catch(() => undefined);
    }
  }

  /**
   * Makes the directory with a usage file, which has to be there before it can be mounted. With `anew` the file is an
   * empty one, also where there is one already: its processes are gone.
   */
  async make(allocationId: string, anew = false): Promise<void> {
    const path = this.usagePathOf(allocationId);
    await mkdir(dirname(path), { recursive: true });
    // Whatever umask the agent has: any user in the container has to get here.
    for (const directory of [this.pathOf(allocationId), dirname(path)]) await chmod(directory, 0o755);
    const there = await lstat(path).catch(() => null);
    // In memory only until the node restarts: what lies below is empty.
    if (!anew && there?.isFile() === true && there.size > 0) return;
    if (this.#tmpfs !== null) {
      if (there?.isFile() !== true) await writeFileAtomically(path, '', { mode: 0o644, durable: false });
      await this.#tmpfs.place(allocationId, path, encodeUsage());
      return;
    }
    // Written out in full, not as a hole: on a full disk the container's first write to a mapped hole would end it.
    await writeFileAtomically(path, encodeUsage(), { mode: 0o666, durable: false });
    if (process.getuid?.() === 0) await chown(path, 0, 0);
  }

  /** Removes what was made for single containers of the allocation (see `CompatFiles`). */
  async removeContainers(allocationId: string): Promise<void> {
    const directory = this.pathOf(allocationId);
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (entry.isDirectory() && !RESERVED_NAMES.has(entry.name))
        await rm(join(directory, entry.name), { recursive: true, force: true });
    }
  }

  async remove(allocationId: string): Promise<void> {
    await this.#tmpfs?.remove(allocationId, this.usagePathOf(allocationId));
    await rm(this.pathOf(allocationId), { recursive: true, force: true });
  }

  /** Allocation ids with a directory. Whatever else lies there is not ours and is left alone. */
  async list(): Promise<string[]> {
    const names = await readdir(this.#base).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names.filter((name) => ALLOCATION_NAME.test(name));
  }
}
