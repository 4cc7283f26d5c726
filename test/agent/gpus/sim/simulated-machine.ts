import { execFile, execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseSimNode, printSimNode, type SimNode } from '../../../../src/agent/gpus/sim/node.js';
import { simLibraryDriver } from '../../../../src/agent/gpus/sim/library-driver.js';
import type { Driver } from '../../../../src/agent/gpus/driver.js';
import type { MigUse } from '../../../../src/agent/gpus/nvidia/session.js';

const built = fileURLToPath(new URL('../../../../../native/build/sim', import.meta.url));
export const libraryPath = join(built, 'libnvidia-ml.so.1');
const control = join(built, '../gpu-sim');

/** Reason why no simulated machine can run here; false where one can. */
export const notBuilt: string | false =
  existsSync(libraryPath) && existsSync(control) ? false : 'the simulated driver is not built (npm run native)';

/** Reason why no program can be built for it; false where one can. */
export const noCompiler: string | false = spawnSync('gcc', ['--version']).status === 0 ? false : 'gcc is not installed';

const programSource = fileURLToPath(new URL('../../../../../test/agent/gpus/sim/busy-program.c', import.meta.url));

/** A simulated machine of its own for each test file: the library has one for each process. */
export class SimulatedMachine {
  readonly node: SimNode;
  readonly nodePath: string;
  readonly statePath: string;
  readonly #directory: string;

  /** `simulation`: what the libraries assume, under that name in the description. */
  constructor(description: string, simulation: object = {}) {
    const parsed = parseSimNode(description);
    if (!parsed.ok) throw new Error(parsed.reason);
    this.node = parsed.node;
    this.#directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gm-sim-'));
    this.nodePath = join(this.#directory, 'node.json');
    this.statePath = join(this.#directory, 'state');
    writeFileSync(this.nodePath, JSON.stringify({ ...JSON.parse(printSimNode(parsed.node)), simulation }));
    process.on('exit', () => rmSync(this.#directory, { recursive: true, force: true }));
  }

  open(options: { readonly callTimeoutMs?: number; readonly tickMs?: number; readonly mig?: MigUse } = {}): Driver {
    return simLibraryDriver({ libraryPath, nodePath: this.nodePath, statePath: this.statePath, ...options });
  }

  /** Starts a program that holds 64 MiB of the first GPU and keeps it busy; it ends with the test. */
  startProgram(t: { teardown(action: () => void): void }, environment: NodeJS.ProcessEnv = {}): ChildProcess {
    const program = join(this.#directory, 'busy');
    execFileSync('gcc', [
      '-O1',
      '-Wall',
      '-o',
      program,
      programSource,
      '-L',
      built,
      '-l:libcuda.so.1',
      `-Wl,-rpath,${built}`,
    ]);
    const child = spawn(program, {
      stdio: 'inherit',
      env: { ...process.env, ...environment, GPU_SIM_STATE: this.statePath, GPU_SIM_NODE: this.nodePath },
    });
    t.teardown(() => void child.kill('SIGKILL'));
    return child;
  }

  /** Changes the state of the machine: see the usage of gpu-sim. */
  async order(...args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(control, [...args], {
      env: { ...process.env, GPU_SIM_STATE: this.statePath, GPU_SIM_NODE: this.nodePath },
    });
    return stdout;
  }
}
