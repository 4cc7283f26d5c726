import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { encodePids, encodeVcudaConfig, type VcudaConfig } from '../../../abi/vcuda-config.js';
import { writeFileAtomically } from '../../../host/atomic-file.js';
import { RESERVED_NAMES } from '../slice-directory.js';

/** A container id or a container's name: a file name without a path. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/;

/**
 * A container registers under a new id after each restart, and its files stay until the slice ends; this bounds their
 * number.
 */
const MAX_CONTAINERS = 16;

export type NameRefusal = { readonly ok: false; readonly code: 'bad-name' | 'too-many'; readonly reason: string };

/** One directory of the original's layout. */
interface CompatDirectory {
  readonly path: string;
  pids: Buffer | null;
  config: Buffer | null;
}

/**
 * `<container>/vcuda.config` and `pids.config` in one slice's directory: the control library of tkestack
 * vcuda-controller reads them after it has registered, without a lock and at any time, so each file is replaced as a
 * whole.
 */
export class CompatFiles {
  readonly #directory: string;
  readonly #containers = new Map<string, CompatDirectory>();

  constructor(sliceDirectory: string) {
    this.#directory = sliceDirectory;
  }

  /** Names of the containers that registered. */
  get names(): readonly string[] {
    return [...this.#containers.keys()];
  }

  /** The reason why a container of that name gets no files, or null. */
  refusal(name: string): NameRefusal | null {
    if (!NAME.test(name) || RESERVED_NAMES.has(name))
      return { ok: false, code: 'bad-name', reason: `${JSON.stringify(name)} is not a valid container name` };
    if (this.#containers.has(name) || this.#containers.size < MAX_CONTAINERS) return null;
    return {
      ok: false,
      code: 'too-many',
      reason: `${MAX_CONTAINERS} containers are registered in this allocation already`,
    };
  }

  /**
   * Updates both files; the pids first, as the original does, so that a reader of the limits finds the pids too. A file
   * that is up to date is not written, nor are pids that are null.
   */
  async write(name: string, pids: readonly number[] | null, config: VcudaConfig): Promise<void> {
    const path = join(this.#directory, name);
    let container = this.#containers.get(name);
    if (container === undefined) {
      await mkdir(path, { recursive: true });
      await chmod(path, 0o755);
      container = { path, pids: null, config: null };
      this.#containers.set(name, container);
    }
    if (pids !== null) container.pids = await replace(join(path, 'pids.config'), container.pids, encodePids(pids));
    container.config = await replace(join(path, 'vcuda.config'), container.config, encodeVcudaConfig(config));
  }

  /** Forgets all containers; the owner of the slice's directory removes their directories. */
  clear(): void {
    this.#containers.clear();
  }
}

async function replace(path: string, before: Buffer | null, content: Buffer): Promise<Buffer> {
  if (before?.equals(content) === true) return before;
  await writeFileAtomically(path, content, { mode: 0o644, durable: false });
  return content;
}
