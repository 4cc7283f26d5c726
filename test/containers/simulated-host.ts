import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesNeededBy, MACHINE_LIBRARIES } from './program-files.js';

const BUILD = fileURLToPath(new URL('../../../native/build', import.meta.url));
const CONTROL = ['libcuda-control.so', 'libnvml-control.so', 'gpu-client'].map((name) => join(BUILD, name));
const DRIVER = join(BUILD, 'sim/libcuda.so.1');
const BUILT_PROBE = join(BUILD, 'gpu-probe');
const VERSION = '580.95.05';
/** Path of the probe in the image. */
export const PROBE = '/probe';

/** Reason why no container can run on the simulated driver here, or false. */
export function nativeSkipReason(): string | false {
  const missing = [...CONTROL, DRIVER, BUILT_PROBE].filter((path) => !existsSync(path));
  return missing.length > 0 ? `needs ${missing.join(', ')}: run npm run native` : false;
}

/**
 * A host below `scratch` with the simulated driver installed, and the probe. Returns the files that an image needs to
 * run the probe, and the flags that tell the agent of that host.
 */
export async function simulatedHost(scratch: string) {
  const libraries = join(scratch, 'host', MACHINE_LIBRARIES);
  mkdirSync(libraries, { recursive: true });
  copyFileSync(DRIVER, join(libraries, `libcuda.so.${VERSION}`));
  const volume = ['nvidia', 'origin'].map((name) => ({
    name,
    base: join(scratch, 'vdriver'),
    components: { binaries: ['gpu-client'], libraries: ['libcuda.so'] },
  }));
  writeFileSync(join(scratch, 'volume.conf'), JSON.stringify({ volume }));
  const files = [
    { from: BUILT_PROBE, to: PROBE },
    ...(await filesNeededBy([BUILT_PROBE, DRIVER, ...CONTROL.slice(0, 2)])),
  ];
  return {
    files,
    config: { volumeConfigPath: join(scratch, 'volume.conf'), hostRoot: join(scratch, 'host'), nativePath: BUILD },
  };
}
