import type { BindMount } from '../../gpu/container-edits.js';
import type { Architecture } from './architecture.js';

/** How a container loads the control library before the driver's: `--interposition`. */
export type Interposition = 'library-path' | 'cdi';

/**
 * Directories that the dynamic linker of every glibc distribution searches last without configuration: Debian's and Red
 * Hat's.
 */
const DEFAULT_LIBRARY_DIRECTORIES: Partial<Record<Architecture, readonly string[]>> = {
  'x86-64': ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'],
  aarch64: ['/usr/lib/aarch64-linux-gnu', '/usr/lib64'],
};

/** The libraries that programs load, which the control libraries interpose. */
const INTERPOSED_NAMES = ['libcuda.so.1', 'libnvidia-ml.so.1'];
const ORIGIN_NAMES = ['libcuda-origin.so.1', 'libnvidia-ml-origin.so.1'];

/**
 * Mounts that put the driver's libraries into the linker's default directories. A program that starts without
 * LD_LIBRARY_PATH, for example by sudo or ssh, or with its own path (tkestack/gpu-manager#25), then finds the control
 * library, even if the image contains a driver with the same names. `libraryDirectory` is the host's directory that is
 * mounted as /usr/local/nvidia; `limited` tells whether it contains the control libraries.
 */
export function defaultPathMounts(libraryDirectory: string, limited: boolean, architecture: Architecture): BindMount[] {
  const names = limited ? [...INTERPOSED_NAMES, ...ORIGIN_NAMES] : INTERPOSED_NAMES;
  return (DEFAULT_LIBRARY_DIRECTORIES[architecture] ?? []).flatMap((directory) =>
    names.map((name) => ({
      hostPath: `${libraryDirectory}/lib64/${name}`,
      containerPath: `${directory}/${name}`,
      writable: false,
    })),
  );
}
