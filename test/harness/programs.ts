import { join } from 'node:path';
import { packageFile } from '../../src/host/package-files.js';

const bundled = process.env.GPU_MANAGER_TEST_PROGRAMS;

/**
 * Whether the commands are bundled, as in the image: by `npm test` (scripts/test-programs.mjs). A test file that is run
 * by hand starts what the compiler wrote.
 */
export const ARE_BUNDLED = bundled !== undefined;

const DIRECTORY = bundled ?? packageFile('dist/src/cli');

/** The file that Node runs as `gpu-manager`. */
export const MAIN = join(DIRECTORY, 'main.js');

/** The file that Node runs as `kubectl gpu`. */
export const KUBECTL_GPU = join(DIRECTORY, 'kubectl-gpu.js');
