// npm run watch -- [FILE...]: compiles at every change of a TypeScript file, and then runs the given test files.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildNative, runTestFiles, testFiles } from './test-files.mjs';

const HELP = `npm run watch                   compiles whenever a TypeScript file is saved
npm run watch -- FILE...        and runs these test files after it: test/host/rounds.test.ts, or a folder below test/`;

/** What the compiler prints after each compilation. */
const COMPILED = /Found (\d+) errors?\. Watching for file changes/u;

function watch(files) {
  const compiler = spawn(
    process.execPath,
    [join(import.meta.dirname, '../node_modules/typescript/bin/tsc'), '--watch', '--preserveWatchOutput'],
    { cwd: join(import.meta.dirname, '..'), stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let running = Promise.resolve();
  let wanted = 0;
  const run = async (number) => {
    // Of several compilations during one run of the tests, the last one counts.
    if (number !== wanted) return;
    try {
      buildNative();
      // Bundles take seconds, a start without them half a second more.
      await runTestFiles(files, { bundled: false });
    } catch (error) {
      console.error(error.message);
    }
  };
  compiler.stdout.on('data', (chunk) => {
    process.stdout.write(chunk);
    const [, errors] = COMPILED.exec(String(chunk)) ?? [];
    if (errors !== '0' || files.length === 0) return;
    wanted += 1;
    const number = wanted;
    running = running.then(() => run(number));
  });
  compiler.on('close', (status) => (process.exitCode = status ?? 1));
}

const names = process.argv.slice(2);
if (names.includes('--help') || names.includes('-h')) console.log(HELP);
else
  try {
    watch(testFiles(names));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 2;
  }
