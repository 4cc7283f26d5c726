// npm test -- [FILE...] [OPTION OF TAP...]: builds what is needed, then runs the given test files, or all of them.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { build, execute, runTestFiles, testFiles } from './test-files.mjs';

const HELP = `npm test                        builds everything and runs every test that needs no cluster
npm test -- FILE...             builds what has changed and runs these: test/host/rounds.test.ts, or a folder below test/
npm test -- --OPTION=VALUE...   runs every test with options of tap, such as --jobs=2 or --output-file=build/tests.tap

GPU_MANAGER_TIME_FACTOR=N       every time limit is N times longer, for a machine that is slow or busy`;

/** How many of the slowest files are named at the end. */
const NAMED = 10;

async function main(args) {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(HELP);
    return 0;
  }
  const files = args.filter((argument) => !argument.startsWith('-'));
  const options = args.filter((argument) => argument.startsWith('-'));
  if (files.length === 0) return await runAll(options);
  if (options.length > 0)
    throw new Error(`${options[0]} is an option of a run of all tests; without it, or without files`);
  const chosen = testFiles(files);
  build();
  return (await runTestFiles(chosen)) ? 0 : 1;
}

async function runAll(options) {
  build();
  execute('tap', ['build']);
  const { FILE_LIMIT_SECONDS } = await import('../dist/test/harness/time-factor.js');
  const given = options.find((option) => option.startsWith('--output-file='));
  const results = given?.slice('--output-file='.length) ?? 'build/tests.tap';
  mkdirSync(dirname(results), { recursive: true });
  const limit = `--timeout=${FILE_LIMIT_SECONDS}`;
  const status = execute('tap', [limit, ...options, ...(given ? [] : [`--output-file=${results}`])], { mayFail: true });
  if (existsSync(results)) printSlowest(readFileSync(results, 'utf8'));
  return status;
}

/** Names the slowest files of a run; tap prints a line with the duration after each file. */
function printSlowest(tap) {
  const files = [...tap.matchAll(/^(?:not )?ok \d+ - dist\/(test\/\S+)\.js # time=([\d.]+)(ms|s|m)$/gmu)].map(
    ([, name, amount, unit]) => ({ name, seconds: amount * { ms: 0.001, s: 1, m: 60 }[unit] }),
  );
  const slowest = files.sort((one, other) => other.seconds - one.seconds).slice(0, NAMED);
  if (slowest.length === 0) return;
  console.log(`# the slowest ${slowest.length} of ${files.length} files`);
  for (const { name, seconds } of slowest) console.log(`# ${seconds.toFixed(1).padStart(7)} s  ${name}.ts`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
