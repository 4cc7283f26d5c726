import { access } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DriverConfig, HostLibraries } from './drivers.js';
import { LIBRARY_PATHS } from './nvidia/library.js';

const SONAME = 'libcuda.so.1';

/** The driver's libcuda.so.1, which lies beside its libnvidia-ml; null if this node has none. */
export async function findCudaLibrary(
  { driver, simStatePath, nvmlPath, nativePath }: DriverConfig,
  host: HostLibraries,
): Promise<string | null> {
  if (driver === 'dummy' || (driver === 'sim' && simStatePath === null)) return null;
  const found = driver === 'sim' ? join(nativePath, 'sim', SONAME) : await host.find(SONAME);
  const places = [
    ...(nvmlPath === null ? [] : [join(dirname(nvmlPath), SONAME)]),
    ...(found === null ? [] : [found]),
    ...LIBRARY_PATHS.filter((path) => path.startsWith('/')).map((path) => join(dirname(path), SONAME)),
  ];
  for (const path of places)
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    )
      return path;
  return null;
}
