import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { GivenContainer } from './kubelet/kubelet.js';
import { packageFile } from '../host/package-files.js';

const BUILT = packageFile('native/build');

/** What a container of the demonstration runs: a program of the CUDA driver, which knows nothing of limits. */
export type ProbeTask =
  | readonly ['total']
  | readonly ['memory']
  | readonly ['share', ms: number]
  | readonly ['work', mib: number, ms: number];

/**
 * Runs programs as the containers of a simulated node would: behind the control library, with the container's directory
 * and the simulated GPUs. Instead of mounts they are given that directory by its path, so that nothing here needs root
 * or a container runtime.
 */
export class DemoPrograms {
  readonly #environment: Readonly<Record<string, string>>;
  readonly #ending = new AbortController();

  /** `statePath` and `nodePath` are those of the simulated machine. */
  constructor(statePath: string, nodePath: string) {
    this.#environment = { LD_LIBRARY_PATH: join(BUILT, 'mirror'), GPU_SIM_STATE: statePath, GPU_SIM_NODE: nodePath };
  }

  /** Runs the task in `container` to its end and answers with what it printed. Rejects when it failed or was ended. */
  async run(container: GivenContainer, task: ProbeTask): Promise<string> {
    const directory = container.mounts.find((mount) => mount.containerPath === '/etc/vcuda')?.hostPath ?? '';
    const { stdout } = await promisify(execFile)(join(BUILT, 'gpu-probe'), task.map(String), {
      // A container's device nodes are its GPUs; where all of a simulated machine's are within reach, this says which
      // it may see.
      env: {
        ...this.#environment,
        VGPU_SANDBOX_DIRECTORY: directory,
        CUDA_VISIBLE_DEVICES: container.environment['NVIDIA_VISIBLE_DEVICES'] ?? '',
      },
      signal: this.#ending.signal,
    });
    return stdout.trim();
  }

  /** Ends every program that still runs. */
  end(): void {
    this.#ending.abort();
  }
}
