// npm test and npm run test:long -- [FILE...] [OPTION...]: builds what is needed, then runs the given test files, or all of
// the tier.
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { compile } from './compile.mjs';
import {
  build,
  buildQuickly,
  compiledOf,
  lineOf,
  runEach,
  runTestFiles,
  testFiles,
  TIERS,
  withoutDetails,
} from './test-files.mjs';

const HELP = `npm test                        builds everything and runs what the product promises: all *${TIERS.test}
npm run test:long               the same for what needs minutes: attacks, faults at random, long histories, all *${TIERS.long}
npm test -- FILE...             builds what has changed and runs these: test/host/rounds.test.ts, or a folder below test/
npm test -- --jobs=N            every test, N files at once instead of two to six for each processor
npm test -- --output-file=FILE  every test; writes all results as TAP to FILE instead of build/tests.tap

Types are checked before a run of all tests, and after the results of single files.
GPU_MANAGER_TIME_FACTOR=N       every time limit is N times longer, for a machine that is slow or busy`;

/** How many of the dearest files are named at the end. */
const NAMED = 10;

/**
 * What each tier holds beside its files: how many run at once for each processor, how many while processors are idle, and
 * where its results go.
 */
const RUNS = {
  test: { perProcessor: 2, whileIdle: 6, results: 'build/tests.tap' },
  // Attacks and turns of event loops: a machine of their own tells more.
  long: { perProcessor: 1, whileIdle: 1, results: 'build/long.tap' },
};

/** Files that take longest, with others beside them: on a new machine, too, they must not be the last. */
const FIRST = [
  'test/console/page',
  'test/agent/display/page',
  'test/containers/image-demo',
  'test/page/accessibility',
  'test/native/c-tests',
  'test/agent/killed',
  'test/scheduler/lost-answers',
];

/** Compares the costs of a run of a whole tier with its budget, after all others. */
const BUDGET = 'test/house/cpu-budget.test.ts';
const COSTS_VARIABLE = 'GPU_MANAGER_TEST_COSTS';
/** How many measurements of this machine's speed a run takes, spread over its files. */
const SPEED_SAMPLES = 12;

async function main(args) {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(HELP);
    return 0;
  }
  const tier = args.includes('--long') ? 'long' : 'test';
  const files = args.filter((argument) => !argument.startsWith('-'));
  const options = args.filter((argument) => argument.startsWith('-') && argument !== '--long');
  if (files.length === 0) return await runAll(tier, optionsOf(options, RUNS[tier]));
  if (options.length > 0)
    throw new Error(`${options[0]} is an option of a run of all tests; without it, or without files`);
  return await runSome(testFiles(files, tier));
}

function optionsOf(options, { perProcessor, whileIdle, results }) {
  const processors = availableParallelism();
  const chosen = { jobs: perProcessor * processors, most: whileIdle * processors, results };
  for (const option of options) {
    const [name, value = ''] = option.split('=', 2);
    if (name === '--jobs' && Number.isInteger(Number(value)) && Number(value) >= 1)
      chosen.jobs = chosen.most = Number(value);
    else if (name === '--output-file' && value !== '') chosen.results = value;
    else throw new Error(`expected --jobs=NUMBER or --output-file=FILE, found ${option}`);
  }
  return chosen;
}

/** The results come first, then what the compiler says of the types. */
async function runSome(chosen) {
  await buildQuickly();
  const passed = await runTestFiles(chosen);
  const typed = await compile();
  if (!typed) console.log('# failed: the types, see above');
  return passed && typed ? 0 : 1;
}

async function runAll(tier, { jobs, most, results }) {
  await build();
  const before = secondsBefore(results);
  const secondsOf = (file) => before.get(file) ?? (FIRST.includes(file.replace(TIERS[tier], '')) ? Infinity : 0);
  // What took longest the last time begins first, so that no long file runs alone at the end.
  const files = testFiles(['test'], tier)
    .filter((file) => file !== BUDGET)
    .sort((one, other) => secondsOf(other) - secondsOf(one));
  mkdirSync(dirname(results), { recursive: true });
  const tap = openSync(results, 'w');
  writeSync(tap, `TAP version 14\n1..${files.length + 1}\n`);
  const all = [];
  const tell = (result) => {
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
  };
  const { REFERENCE_MS, referenceMs } = await import('../dist/test/harness/reference-work.js');
  const samples = [];
  await runEach(files, { jobs, most }, (result) => {
    tell(result);
    if (all.length % Math.ceil(files.length / SPEED_SAMPLES) === 0) samples.push(referenceMs() / REFERENCE_MS);
  });
  const costs = results.replace(/(?:\.tap)?$/u, '.costs.json');
  writeFileSync(costs, JSON.stringify({ tier, slowness: meanOf(samples), files: all.map(costOf) }, null, 1));
  await runEach([BUDGET], { jobs: 1, environment: { [COSTS_VARIABLE]: costs } }, tell);
  closeSync(tap);
  printSummary(all);
  return all.every(({ passed }) => passed) ? 0 : 1;
}

const costOf = ({ file, seconds, cpuSeconds }) => ({ file, seconds, cpuSeconds });

const meanOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / Math.max(1, numbers.length);

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

/** Counts assertions, names the files that failed, and those that cost most. */
function printSummary(all) {
  const counts = { pass: 0, fail: 0, skip: 0 };
  for (const { output } of all)
    for (const [, list] of output.matchAll(/^# \{ (.*) \}$/gmu))
      for (const [, name, count] of list.matchAll(/(pass|fail|skip): (\d+)/gu)) counts[name] += Number(count);
  const failed = all.filter(({ passed }) => !passed);
  console.log(`# ${all.length - failed.length} of ${all.length} files passed`);
  console.log(`assertions: ${counts.pass} passed, ${counts.fail} failed, ${counts.skip} skipped`);
  for (const { file } of failed) console.log(`# failed: ${file}`);
  const total = all.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  const dearest = all.sort((one, other) => other.cpuSeconds - one.cpuSeconds).slice(0, NAMED);
  console.log(`# ${total.toFixed(0)} s of CPU; the dearest ${dearest.length} of ${all.length} files`);
  for (const { file, seconds, cpuSeconds } of dearest)
    console.log(`# ${cpuSeconds.toFixed(1).padStart(7)} s of CPU in ${seconds.toFixed(1).padStart(5)} s  ${file}`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
