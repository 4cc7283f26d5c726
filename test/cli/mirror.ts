import { existsSync } from 'node:fs';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../../native/build/mirror/', import.meta.url));

/** The reason why no mirror can be made; false where one can. */
export const noMirror = existsSync(join(BUILT, 'libcuda.so.1'))
  ? false
  : 'the native parts are not built (npm run native)';

/** A mirror of the simulated driver as an agent leaves it, with its configuration and a node of two GPUs. */
export async function mirrorIn(directory: string): Promise<{
  readonly libraries: string;
  readonly config: string;
  readonly environment: Readonly<Record<string, string>>;
}> {
  const libraries = join(directory, 'nvidia', 'v1', 'lib64');
  await mkdir(libraries, { recursive: true });
  await cp(BUILT, libraries, { recursive: true, dereference: true });
  await symlink('v1', join(directory, 'nvidia', 'current'));
  const config = join(directory, 'volume.conf');
  await writeFile(
    config,
    JSON.stringify({ volume: [{ name: 'nvidia', base: directory, components: { libraries: ['libcuda.so'] } }] }),
  );
  const node = join(directory, 'gpus');
  await writeFile(node, '{"gpus":[{},{}]}');
  return { libraries, config, environment: { GPU_SIM_NODE: node, GPU_SIM_STATE: join(directory, 'state') } };
}
