import { mkdirSync, rmSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { USAGE_LAYOUT } from '../../../abi/vgpu-abi.js';
import { bindMount, isSeenByHost, mountTmpfs, unmount } from '../../../host/mounts.js';

const PAGE_BYTES = 4_096;
const SIZE_BYTES = Math.ceil(USAGE_LAYOUT.structSize / PAGE_BYTES) * PAGE_BYTES;
const FILE_NAME = 'vgpu.usage';

/**
 * A small file system in memory for each usage file: a container cannot make its file larger than that. The file is
 * bind-mounted over the file in the slice's directory, so that paths stay the same and the container can write nothing
 * else.
 */
export class UsageTmpfs {
  readonly #base: string;

  /** `base`: a directory that only root can enter on the node. */
  constructor(base: string) {
    this.#base = base;
  }

  /**
   * The reason why it does not work on this node, or null: mounting is not allowed, or containers would not see the
   * mounts.
   */
  problem(): string | null {
    const probe = join(this.#base, 'probe');
    try {
      mkdirSync(probe, { recursive: true, mode: 0o700 });
      mountTmpfs(probe, PAGE_BYTES, 1);
      return isSeenByHost(probe)
        ? null
        : 'the host does not see what the agent mounts: the volume needs mountPropagation Bidirectional, and the agent hostPID';
    } catch (error) {
      return (error as Error).message;
    } finally {
      unmount(probe);
      rmSync(probe, { recursive: true, force: true });
    }
  }

  /** Creates a file with this content and mounts it over the existing file at `path`. */
  async place(allocation: string, path: string, content: Buffer): Promise<void> {
    await this.remove(allocation, path);
    const directory = join(this.#base, allocation);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    mountTmpfs(directory, SIZE_BYTES, 1);
    const file = join(directory, FILE_NAME);
    await writeFile(file, content, { flag: 'wx' });
    await chmod(file, 0o666);
    await chown(file, 0, 0);
    bindMount(file, path);
  }

  async remove(allocation: string, path: string): Promise<void> {
    unmount(path);
    const directory = join(this.#base, allocation);
    unmount(directory);
    await rm(directory, { recursive: true, force: true });
  }

  /** Allocations that have such a file. */
  async list(): Promise<readonly string[]> {
    return readdir(this.#base).catch(() => []);
  }
}
