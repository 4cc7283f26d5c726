import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../../', import.meta.url));
const BUILD = join(repository, 'native/build');
/** Where a program finds the control library in front of the simulated driver. */
const MIRROR = join(BUILD, 'mirror');

/** Reason why no programs can run under the control library here; false where they can. */
export const tenantSkipReason: string | false = existsSync(join(MIRROR, 'libcuda.so.1'))
  ? false
  : 'the control library and the simulated driver are not built (npm run native)';

/** Compiles a C program of this repository that uses the driver; returns its path in `directory`. */
export function buildProgram(source: string, directory: string, name: string): string {
  const program = join(directory, name);
  execFileSync('cc', [
    '-O2',
    '-Wall',
    '-I',
    join(repository, 'native/include'),
    join(repository, source),
    '-o',
    program,
    join(BUILD, 'sim/libcuda.so.1'),
  ]);
  return program;
}

/** The simulated machine that a program runs on; see native/sim. */
export interface MachinePaths {
  readonly nodePath: string;
  readonly statePath: string;
}

/**
 * The environment of a process in a container: its GPU, the directory of its allocation, and the library before the
 * driver.
 */
export function tenantEnvironment(
  { nodePath, statePath }: MachinePaths,
  slice: { readonly directory: string; readonly gpu: number },
): NodeJS.ProcessEnv {
  return {
    ...process.env,
    GPU_SIM_STATE: statePath,
    GPU_SIM_NODE: nodePath,
    // The prefix of the default UUID of a simulated GPU. An ordinal would count the GPUs of the slice only.
    CUDA_VISIBLE_DEVICES: `GPU-${slice.gpu.toString(16).padStart(8, '0')}`,
    VGPU_SANDBOX_DIRECTORY: slice.directory,
    LD_LIBRARY_PATH: MIRROR,
  };
}

/** A process in a container. It ends when its standard input closes, and so with its parent. */
export class TenantProcess {
  readonly #child: ChildProcess;
  readonly #said: Promise<void>;
  #output = '';

  constructor(program: string, args: readonly string[], environment: NodeJS.ProcessEnv) {
    this.#child = spawn(program, args, { env: environment, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    this.#said =
      this.#child.stdout === null ? Promise.resolve() : once(this.#child.stdout, 'end').then(() => undefined);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** All output so far. */
  get output(): string {
    return this.#output;
  }

  /** All output, after the process has ended by itself. */
  async outcome(): Promise<string> {
    await this.#said;
    return this.#output;
  }

  /** Writes a line to its standard input. */
  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Ends the process and waits for its exit. */
  async kill(): Promise<void> {
    if (!this.alive) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
