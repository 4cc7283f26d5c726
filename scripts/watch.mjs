// npm run watch -- [FILE...]: compiles at every change of a TypeScript file, runs the given test files, and then checks types.
import { watch as watchFiles } from 'chokidar';
import { fileURLToPath } from 'node:url';
import { compile, FOLDERS, transpileChanged } from './compile.mjs';
import { buildNative, runTestFiles, testFiles } from './test-files.mjs';

const HELP = `npm run watch                   compiles whenever a TypeScript file is saved, and checks its types
npm run watch -- FILE...        and before that runs these test files: test/host/rounds.test.ts, or a folder below test/`;

const ROOT = fileURLToPath(new URL('..', import.meta.url));

async function watch(files) {
  let wanted = true;
  let running = false;
  // Of several changes during one round, one round follows.
  const rounds = async () => {
    if (running) return;
    running = true;
    while (wanted) {
      wanted = false;
      await round(files);
    }
    running = false;
  };
  const changed = (path) => {
    if (!path.endsWith('.ts')) return;
    wanted = true;
    void rounds();
  };
  const watcher = watchFiles(FOLDERS, { cwd: ROOT, ignoreInitial: true });
  for (const event of ['add', 'change', 'unlink']) watcher.on(event, changed);
  await new Promise((settle) => watcher.on('ready', settle));
  await rounds();
}

async function round(files) {
  try {
    await transpileChanged();
    if (files.length > 0) {
      buildNative();
      // Bundles take seconds, a start without them half a second more.
      await runTestFiles(files, { bundled: false });
    }
  } catch (error) {
    console.error(error.message);
  }
  if (await compile()) console.log('# types: no errors. Watching for changes');
}

const names = process.argv.slice(2);
if (names.includes('--help') || names.includes('-h')) console.log(HELP);
else
  try {
    await watch(testFiles(names));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 2;
  }
