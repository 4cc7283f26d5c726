import type { Driver } from '../driver.js';
import { noKernelDriver } from '../nvidia/kernel-driver.js';
import { NvidiaDriver, type NvidiaOptions } from '../nvidia/nvidia-driver.js';

export interface SimLibraryOptions extends Pick<
  NvidiaOptions,
  'clock' | 'report' | 'callTimeoutMs' | 'tickMs' | 'mig'
> {
  /** The simulated libnvidia-ml.so.1 of native/sim. */
  readonly libraryPath: string;
  /** Description of the GPUs; null: one GPU. A machine that is already in use keeps its description. */
  readonly nodePath: string | null;
  /** Folder of the simulated machine, the same for every program on it. */
  readonly statePath: string;
}

/**
 * The GPUs of the simulated driver libraries, through the same binding as real ones: programs that use the libraries
 * appear as processes and utilisation, which the simulation in this process (`SimDriver`) does not have. The library
 * reads its machine from the environment, so a process can have only one.
 */
export function simLibraryDriver({ libraryPath, nodePath, statePath, ...options }: SimLibraryOptions): Driver {
  process.env['GPU_SIM_STATE'] = statePath;
  if (nodePath !== null) process.env['GPU_SIM_NODE'] = nodePath;
  return new NvidiaDriver({ ...options, name: 'sim', libraryPaths: [libraryPath], kernel: noKernelDriver });
}
