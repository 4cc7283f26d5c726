import { StartupError } from '../../host/startup-error.js';
import { NODE_ARCHITECTURE } from './architecture.js';
import { openHostRoot } from './host-root.js';
import { findHostLibrary } from './inventory.js';

/**
 * Finds libraries of the host that is mounted at `hostRoot`: `find` answers null if that is this file system itself, or
 * has no such library. It rejects with a StartupError if `hostRoot` cannot be read.
 */
export function hostLibraries(hostRoot: string): { find(soname: string): Promise<string | null> } {
  return {
    async find(soname) {
      if (hostRoot === '/') return null;
      try {
        return await findHostLibrary(await openHostRoot(hostRoot), soname, NODE_ARCHITECTURE);
      } catch (error) {
        throw new StartupError(`--host-root: ${(error as Error).message}`);
      }
    },
  };
}
