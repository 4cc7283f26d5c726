import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageFile } from '../../src/host/package-files.js';

const run = promisify(execFile);

/** The commands as the image has them, in one bundle. */
export class ShippedAgent {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async build(): Promise<ShippedAgent> {
    const directory = await mkdtemp(join(tmpdir(), 'gm-bundle-'));
    await run(process.execPath, [packageFile('scripts/bundle.mjs'), directory]);
    await mkdir(join(directory, 'native'));
    await symlink(packageFile('native/build'), join(directory, 'native/build'));
    return new ShippedAgent(directory);
  }

  /** The file that Node runs. */
  get main(): string {
    return join(this.#directory, 'dist/src/cli/main.js');
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true });
  }
}
