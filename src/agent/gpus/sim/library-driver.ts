import type { Driver } from '../driver.js';
import { noKernelDriver } from '../nvidia/kernel-driver.js';
import { NvidiaDriver, type NvidiaOptions } from '../nvidia/nvidia-driver.js';

export interface SimLibraryOptions extends Pick<NvidiaOptions, 'clock' | 'report' | 'callTimeoutMs' | 'tickMs'> {
  /** The simulated libnvidia-ml.so.1 of native/sim. */
  readonly libraryPath: string;
  /** Description of the GPUs; null: one GPU. A machine that is in use already keeps the one it has. */
  readonly nodePath: string | null;
  /** Folder of the simulated machine: the same for every program on it. */
  readonly statePath: string;
}

/**
 * The GPUs of the simulated driver libraries, through the binding that real ones are asked with: programs that run on
 * them show as processes and utilisation, which the simulation in this process (`SimDriver`) cannot know. The library
 * takes its machine from the environment of the process, so there is one such machine for each process.
 */
export function simLibraryDriver({ libraryPath, nodePath, statePath, ...options }: SimLibraryOptions): Driver {
  process.env['GPU_SIM_STATE'] = statePath;
  if (nodePath !== null) process.env['GPU_SIM_NODE'] = nodePath;
  return new NvidiaDriver({ ...options, name: 'sim', libraryPaths: [libraryPath], kernel: noKernelDriver });
}
