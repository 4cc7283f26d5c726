import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type BuildOptions } from 'esbuild';
import { packageFile } from '../../src/host/package-files.js';
import { ARE_BUNDLED, MAIN } from './programs.js';

interface BundleParts {
  readonly bundleOptions: (target: string, entryPoints: readonly string[]) => BuildOptions;
}

const PROGRAM = 'dist/src/cli/agent-program.js';
/** What the agent reads from its package, and the package with compiled code. */
const BESIDE = ['package.json', 'etc', 'src', 'native', 'node_modules'];
const START = `import { gpuManager } from './agent-program.js';
process.exitCode = await gpuManager(process.argv.slice(2));
`;

/**
 * The file that Node runs as a bundled agent: that of `npm test`, or, for a test file that is run by hand, one made in
 * this directory. For tests that start the agent many times, or with few descriptors: from hundreds of files it takes
 * half a second of CPU time more, with a kubeconfig a whole second.
 */
export async function bundledAgent(directory: string): Promise<string> {
  if (ARE_BUNDLED) return MAIN;
  const { bundleOptions } = (await import(packageFile('scripts/bundle-parts.mjs'))) as BundleParts;
  await mkdir(directory, { recursive: true });
  await build(bundleOptions(directory, [PROGRAM]));
  for (const name of BESIDE) await symlink(packageFile(name), join(directory, name));
  const main = join(directory, 'dist/src/cli/main.js');
  await writeFile(main, START);
  return main;
}
