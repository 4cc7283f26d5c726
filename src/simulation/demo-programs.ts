import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { GivenContainer } from './kubelet/kubelet.js';
import { packageFile } from '../host/package-files.js';

const BUILT = packageFile('native/build');

/** The program of a container in the demonstration: it calls the CUDA driver and knows no limits. */
export type ProbeTask =
  | readonly ['total']
  | readonly ['memory']
  | readonly ['share', ms: number]
  | readonly ['work', mib: number, ms: number];

/**
 * Runs programs like the containers of a simulated node: with the control library, the container's directory and the
 * simulated GPUs. The programs get the path of that directory instead of a mount, so that neither root nor a container
 * runtime is needed.
 */
export class DemoPrograms {
  readonly #environment: Readonly<Record<string, string>>;
  readonly #ending = new AbortController();

  /** `statePath` and `nodePath` belong to the simulated machine. */
  constructor(statePath: string, nodePath: string) {
    this.#environment = { LD_LIBRARY_PATH: join(BUILT, 'mirror'), GPU_SIM_STATE: statePath, GPU_SIM_NODE: nodePath };
  }

  /** Runs the task in `container` and returns its output. Rejects if it fails or is killed. */
  async run(container: GivenContainer, task: ProbeTask): Promise<string> {
    const directory = container.mounts.find((mount) => mount.containerPath === '/etc/vcuda')?.hostPath ?? '';
    const { stdout } = await promisify(execFile)(join(BUILT, 'gpu-probe'), task.map(String), {
      // A container sees only its own device nodes. On a simulated machine, every program can reach all nodes, so this
      // variable limits them.
      env: {
        ...this.#environment,
        VGPU_SANDBOX_DIRECTORY: directory,
        CUDA_VISIBLE_DEVICES: container.environment['NVIDIA_VISIBLE_DEVICES'] ?? '',
      },
      signal: this.#ending.signal,
    });
    return stdout.trim();
  }

  /** Kills all programs that are still running. */
  end(): void {
    this.#ending.abort();
  }
}
