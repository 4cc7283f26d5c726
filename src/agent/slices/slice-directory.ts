import { chmod, chown, lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { HIGH_DIRECTORY, LIMITS_FILE, SOCKET_FILE, USAGE_FILE } from '../../abi/vgpu-abi.js';
import { encodeUsage } from '../../abi/usage-file.js';
import { ActivityFiles } from './usage/activity-files.js';
import type { UsageTmpfs } from './usage/usage-tmpfs.js';
import { removeHalfWritten, writeFileAtomically } from '../../host/atomic-file.js';

const OPERATOR_FILE_NAME = 'operator.json';
const SUSPENSION_FILE_NAME = 'suspended.json';
const ALLOCATION_NAME = /^[0-9a-f]{16}$/;

/** Reserved names in a slice's directory: no container directory may have such a name. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  LIMITS_FILE,
  SOCKET_FILE,
  OPERATOR_FILE_NAME,
  SUSPENSION_FILE_NAME,
  dirname(USAGE_FILE),
  HIGH_DIRECTORY,
]);

/**
 * `<base>/<allocation id>/`: the directory that a container sees read-only as /etc/vcuda. It belongs to the agent. The
 * container's user may write only the usage file and the activity file. Each of them is a separate mount, so containers
 * can neither remove nor replace them; the agent treats their content as untrusted.
 */
export class SliceDirectories {
  readonly #base: string;
  readonly #tmpfs: UsageTmpfs | null;
  readonly activity: ActivityFiles;

  /**
   * `tmpfs`: keeps usage files in memory; null: they are on the disk, beside the other files. `activityTmpfs`: the
   * directory of a file system for activity files; null: the same.
   */
  constructor(base: string, tmpfs: UsageTmpfs | null = null, activityTmpfs: string | null = null) {
    this.#base = base;
    this.#tmpfs = tmpfs;
    this.activity = new ActivityFiles((id) => this.pathOf(id), activityTmpfs);
  }

  /** True when new usage files are on file systems of a fixed size. */
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

  /** Only the agent reads this file; the container can see that it exists. */
  operatorPathOf(allocationId: string): string {
    return join(this.pathOf(allocationId), OPERATOR_FILE_NAME);
  }

  /** The same for what happens to a suspended container. */
  suspensionPathOf(allocationId: string): string {
    return join(this.pathOf(allocationId), SUSPENSION_FILE_NAME);
  }

  /**
   * Creates the base directory, which only root can enter on the node, and removes unfinished files of an earlier run.
   */
  async open(): Promise<void> {
    await mkdir(this.#base, { recursive: true });
    await chmod(this.#base, 0o750);
    this.activity.open();
    for (const id of await this.list()) {
      for (const directory of [this.pathOf(id), dirname(this.usagePathOf(id))])
        await removeHalfWritten(directory).catch(() => undefined);
    }
  }

  /**
   * Creates the directory with a usage file, which must exist before it can be mounted. With `anew` an existing usage
   * file is replaced by an empty one: its processes have ended.
   */
  async make(allocationId: string, anew = false): Promise<void> {
    const path = this.usagePathOf(allocationId);
    await mkdir(dirname(path), { recursive: true });
    // Every user in the container must be able to enter the directory, independent of the agent's umask.
    for (const directory of [this.pathOf(allocationId), dirname(path)]) await chmod(directory, 0o755);
    await this.activity.make(allocationId, anew);
    const there = await lstat(path).catch(() => null);
    // A restart of the node empties the tmpfs: the file below the mount is empty.
    if (!anew && there?.isFile() === true && there.size > 0) return;
    if (this.#tmpfs !== null) {
      if (there?.isFile() !== true) await writeFileAtomically(path, '', { mode: 0o644, durable: false });
      await this.#tmpfs.place(allocationId, path, encodeUsage());
      return;
    }
    // The file is written in full, without holes: on a full disk, a write to a mapped hole would kill the container's
    // process.
    await writeFileAtomically(path, encodeUsage(), { mode: 0o666, durable: false });
    if (process.getuid?.() === 0) await chown(path, 0, 0);
  }

  /** Removes the directories of single containers of the allocation (see `CompatFiles`). */
  async removeContainers(allocationId: string): Promise<void> {
    const directory = this.pathOf(allocationId);
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (entry.isDirectory() && !RESERVED_NAMES.has(entry.name))
        await rm(join(directory, entry.name), { recursive: true, force: true });
    }
  }

  async remove(allocationId: string): Promise<void> {
    await this.#tmpfs?.remove(allocationId, this.usagePathOf(allocationId));
    await this.activity.remove(allocationId);
    await rm(this.pathOf(allocationId), { recursive: true, force: true });
  }

  /** Allocation ids that have a directory. Other entries are not the agent's and are left alone. */
  async list(): Promise<string[]> {
    const names = await readdir(this.#base).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names.filter((name) => ALLOCATION_NAME.test(name));
  }
}
