// Stores the compiled code of a bundle beside it, for the Node that runs this script:
//
//     node scripts/compile-cache.mjs DIRECTORY
//
// DIRECTORY is that of scripts/bundle.mjs. Node 24 reads DIRECTORY/compile-cache if NODE_COMPILE_CACHE names it, also
// after DIRECTORY was moved if NODE_COMPILE_CACHE_PORTABLE is 1: the Dockerfile sets both. Another version of Node, and
// another user than root, ignore the folder and compile the code themselves. Node 20 stores nothing.
import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const [directory] = process.argv.slice(2);
if (directory === undefined) {
  console.error('usage: compile-cache.mjs DIRECTORY');
  process.exit(2);
}

/** Commands whose time to start counts: the agent, and those that are run by hand or by a probe inside its container. */
const COMMANDS = ['run', 'graph', 'usage', 'top', 'health', 'doctor'];
const environment = {
  ...process.env,
  NODE_COMPILE_CACHE: resolve(directory, 'compile-cache'),
  NODE_COMPILE_CACHE_PORTABLE: '1',
};
for (const command of COMMANDS)
  execFileSync(process.execPath, [join(directory, 'dist/src/cli/main.js'), command, '--help'], {
    env: environment,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
