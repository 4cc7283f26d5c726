import type { BindMount } from '../../gpu/container-edits.js';
import type { Architecture } from './architecture.js';

/** How the control library comes before the driver's in a container: `--interposition`. */
export type Interposition = 'library-path' | 'cdi';

/**
 * Directories that the dynamic linker of every glibc distribution looks into last, with nothing configured: Debian's
 * and Red Hat's.
 */
const DEFAULT_LIBRARY_DIRECTORIES: Partial<Record<Architecture, readonly string[]>> = {
  'x86-64': ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'],
  aarch64: ['/usr/lib/aarch64-linux-gnu', '/usr/lib64'],
};

/** The libraries that programs ask for, and those that the control libraries find behind them. */
const INTERPOSED_NAMES = ['libcuda.so.1', 'libnvidia-ml.so.1'];
const ORIGIN_NAMES = ['libcuda-origin.so.1', 'libnvidia-ml-origin.so.1'];

/**
 * Mounts that put the driver's libraries where the dynamic linker looks when LD_LIBRARY_PATH says nothing of them: a
 * program started with an empty environment, by sudo or ssh, or with a path of its own (tkestack/gpu-manager#25), finds
 * the control library there, also before a driver that somebody else put under the same names. `libraryDirectory` is
 * the host's directory that is seen as /usr/local/nvidia; `limited` says whether it is the one with the control
 * libraries.
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
