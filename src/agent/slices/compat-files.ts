import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { encodePids, encodeVcudaConfig, type VcudaConfig } from '../../abi/vcuda-config.js';
import { writeFileAtomically } from '../../host/atomic-file.js';
import { RESERVED_NAMES } from './slice-directory.js';

/** A container id or a container's name: a file name that leads nowhere else. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/;

/**
 * A container is restarted under a new id each time, and all that it registers before the slice ends stays: enough is
 * enough.
 */
const MOST_CONTAINERS = 16;

export type NameRefusal = { readonly ok: false; readonly code: 'bad-name' | 'too-many'; readonly reason: string };

/** One directory of the original's layout. */
interface CompatDirectory {
  readonly path: string;
  pids: Buffer | null;
  config: Buffer | null;
}

/**
 * `<container>/vcuda.config` and `pids.config` in one slice's directory: what the control library of tkestack
 * vcuda-controller reads after it has registered. It reads them without a lock and at any time, so each is replaced
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

  /** Says why there will be no files for a container of that name, or null. */
  refusal(name: string): NameRefusal | null {
    if (!NAME.test(name) || RESERVED_NAMES.has(name))
      return { ok: false, code: 'bad-name', reason: `${JSON.stringify(name)} is no name of a container` };
    if (this.#containers.has(name) || this.#containers.size < MOST_CONTAINERS) return null;
    return {
      ok: false,
      code: 'too-many',
      reason: `${MOST_CONTAINERS} containers registered before in this allocation`,
    };
  }

  /**
   * Makes both files say what is given; the pids first, as the original did: who finds the limits finds the pids too. A
   * file that says so already is left alone, and so are the pids where they are null.
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

  /** Forgets all containers; their directories are removed by whoever owns the slice's. */
  clear(): void {
    this.#containers.clear();
  }
}

async function replace(path: string, before: Buffer | null, content: Buffer): Promise<Buffer> {
  if (before?.equals(content) === true) return before;
  await writeFileAtomically(path, content, { mode: 0o644, durable: false });
  return content;
}
