// npm test -- [FILE...] [OPTION OF TAP...]: builds what is needed, then runs the given test files, or all of them.
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { build, compiledOf, lineOf, runEach, runTestFiles, testFiles, withoutDetails } from './test-files.mjs';

const HELP = `npm test                        builds everything and runs every test that needs no cluster
npm test -- FILE...             builds what has changed and runs these: test/host/rounds.test.ts, or a folder below test/
npm test -- --jobs=N            every test, N files at once instead of two for each processor
npm test -- --output-file=FILE  every test; writes all results as TAP to FILE instead of build/tests.tap

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
  if (files.length === 0) return await runAll(optionsOf(options));
  if (options.length > 0)
    throw new Error(`${options[0]} is an option of a run of all tests; without it, or without files`);
  const chosen = testFiles(files);
  build();
  return (await runTestFiles(chosen)) ? 0 : 1;
}

function optionsOf(options) {
  const chosen = { jobs: 2 * availableParallelism(), results: 'build/tests.tap' };
  for (const option of options) {
    const [name, value = ''] = option.split('=', 2);
    if (name === '--jobs' && Number.isInteger(Number(value)) && Number(value) >= 1) chosen.jobs = Number(value);
    else if (name === '--output-file' && value !== '') chosen.results = value;
    else throw new Error(`expected --jobs=NUMBER or --output-file=FILE, found ${option}`);
  }
  return chosen;
}

async function runAll({ jobs, results }) {
  build();
  const before = secondsBefore(results);
  // What took longest the last time begins first, so that no long file runs alone at the end.
  const files = testFiles(['test']).sort((one, other) => (before.get(other) ?? 0) - (before.get(one) ?? 0));
  mkdirSync(dirname(results), { recursive: true });
  const tap = openSync(results, 'w');
  writeSync(tap, `TAP version 14\n1..${files.length}\n`);
  const all = [];
  await runEach(files, { jobs }, (result) => {
    all.push(result);
    const { file, passed, output, seconds } = result;
    const name = compiledOf(file);
    const indented = output.replace(/^(?=.)/gmu, '    ');
    const milliseconds = (1000 * seconds).toFixed(0);
    writeSync(
      tap,
      `# Subtest: ${name}\n${indented}${passed ? 'ok' : 'not ok'} ${all.length} - ${name} # time=${milliseconds}ms\n`,
    );
    if (!passed) console.log(`${failuresOf(output)}${result.errors}${lineOf(result)}`);
  });
  closeSync(tap);
  printSummary(all);
  return all.every(({ passed }) => passed) ? 0 : 1;
}

/** How long each file of an earlier run took. */
function secondsBefore(results) {
  if (!existsSync(results)) return new Map();
  const lines = readFileSync(results, 'utf8').matchAll(/^(?:not )?ok \d+ - dist\/(test\/\S+)\.js # time=(\d+)ms$/gmu);
  return new Map([...lines].map(([, name, milliseconds]) => [`${name}.ts`, milliseconds / 1000]));
}

/** Of the TAP of a file the tests that failed, with their details. */
const failuresOf = (tap) =>
  withoutDetails(tap)
    .split('\n')
    .filter((line) => !/^ok /u.test(line))
    .join('\n');

/** Counts assertions, names the files that failed, and those that took longest. */
function printSummary(all) {
  const counts = { pass: 0, fail: 0, skip: 0 };
  for (const { output } of all)
    for (const [, list] of output.matchAll(/^# \{ (.*) \}$/gmu))
      for (const [, name, count] of list.matchAll(/(pass|fail|skip): (\d+)/gu)) counts[name] += Number(count);
  const failed = all.filter(({ passed }) => !passed);
  console.log(`# ${all.length - failed.length} of ${all.length} files passed`);
  console.log(`assertions: ${counts.pass} passed, ${counts.fail} failed, ${counts.skip} skipped`);
  for (const { file } of failed) console.log(`# failed: ${file}`);
  const slowest = all.sort((one, other) => other.seconds - one.seconds).slice(0, NAMED);
  console.log(`# the slowest ${slowest.length} of ${all.length} files`);
  for (const { file, seconds } of slowest) console.log(`# ${seconds.toFixed(1).padStart(7)} s  ${file}`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
