import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tableOf } from './report.js';
import { Recording } from './runs/recording.js';
import { runBench, type BenchFile } from './runs/run-bench.js';
import { NOTHING, WholeRun, withoutFailures, type Measured } from './runs/whole-run.js';
import type { BenchResult } from './summary/bench-result.js';
import { gapsText, judge, missesText } from './summary/judgement.js';
import { keepTogether } from './summary/leftovers.js';
import { machineFacts, type MachineFacts } from './summary/machine.js';
import { compareReports, readReport, regressionText, type ReportDocument } from './summary/regressions.js';
import { writeReport } from './summary/report-file.js';
import { standardRun } from './summary/standard-runs.js';

const BENCHES = fileURLToPath(new URL('.', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../bench', import.meta.url));
const REPORT_DIRECTORY = fileURLToPath(new URL('../../bench/out', import.meta.url));
const NOT_BENCHES = new Set(['run.js', 'report.js']);
const HELP = new Set(['--help', '-h', 'help']);

/** A command line that cannot be run. */
class UsageError extends Error {}

/** Every file of this folder is a benchmark; code that several benchmarks share is in folders below. */
function benchNames(): string[] {
  return readdirSync(BENCHES)
    .filter((file) => file.endsWith('.js') && !NOT_BENCHES.has(file))
    .map((file) => file.replace(/\.js$/u, ''))
    .sort();
}

/** The doc comment of a benchmark: what it measures, and its options. */
function helpOf(name: string): string {
  const source = readFileSync(join(SOURCES, `${name}.ts`), 'utf8');
  const [, comment = ''] = /\/\*\*((?:(?!\*\/)[^])*)\*\/\nexport (?:async function|const) run\b/u.exec(source) ?? [];
  const lines = comment.split('\n').map((line) => line.replace(/^ *\* ?/u, '').trimEnd());
  return lines.join('\n').trim() || `npm run bench -- ${name}`;
}

/** How to run benchmarks, and the first sentence of what each of them measures. */
function help(): string {
  const lines = benchNames().map((name) => {
    const [sentence = ''] = introductionOf(name)
      .replaceAll(/\s+/gu, ' ')
      .split(/(?<=[.:;,]) /u, 1);
    return `  ${name.padEnd(18)}${sentence.replace(/[.:;,]$/u, '')}`;
  });
  return `npm run bench                     all benchmarks, about 37 minutes on two cores; writes a report to bench/out
                                  after each of them
npm run bench -- NAME [OPTION...] one of them
npm run bench -- NAME --help      what it measures, and its options

  --runs N       the medians of N runs, with their spread; otherwise one of a NAME, and without a NAME as many as three
                 samples of each figure with a goal take (bench/summary/goals.ts, standard-runs.ts)
  --json         one line of JSON per figure
  --report DIR   writes the report to this folder
  --only A,B     these of all benchmarks, as without a NAME
  --resume       keeps what the folder's report.json has of this commit, and measures the rest
  --compare FILE says which ratios are worse by more than 20 % and more than noise than in the JSON of an earlier
                 report, and fails if one of them has a goal

${lines.join('\n')}`;
}

/** What a benchmark measures: its help without the command line. */
function introductionOf(name: string): string {
  return helpOf(name).replace(/\n\n {4}npm run [^]*/u, '');
}

/** The options of the runner. */
interface Options {
  readonly json: boolean;
  readonly directory: string;
  /** A single benchmark writes a report only if a folder is named. */
  readonly writes: boolean;
  readonly earlier: ReportDocument | null;
  /** Null: as many as usual. */
  readonly runs: number | null;
  /** The benchmarks of a whole run. */
  readonly names: readonly string[];
  /** A whole run keeps what its folder has. */
  readonly resumes: boolean;
  readonly rest: readonly string[];
}

function optionsOf(argv: readonly string[]): Options {
  // `--json`, or `-o json` as in the other commands.
  const json = argv.includes('--json') || argv.some((argument, at) => argument === '-o' && argv[at + 1] === 'json');
  const rest = argv.filter((argument) => argument !== '--json' && argument !== '--resume');
  const take = (option: string): string | null => {
    const at = rest.indexOf(option);
    if (at < 0) return null;
    const [, value] = rest.splice(at, 2);
    if (value === undefined) throw new UsageError(`${option} needs a value`);
    return value;
  };
  const directory = take('--report');
  const compare = take('--compare');
  const only = take('--only');
  const given = take('--runs');
  const runs = given === null ? null : Number(given);
  if (runs !== null && (!Number.isInteger(runs) || runs < 1))
    throw new UsageError('--runs needs a whole number of at least 1');
  return {
    json,
    directory: directory ?? REPORT_DIRECTORY,
    writes: directory !== null,
    earlier: compare === null ? null : earlierReport(compare),
    runs,
    names: only === null ? benchNames() : only.split(',').map(checkedName),
    resumes: argv.includes('--resume'),
    rest,
  };
}

const fileOf = (name: string): BenchFile => ({ name, path: join(BENCHES, `${name}.js`) });

function checkedName(name: string): string {
  if (!benchNames().includes(name))
    throw new UsageError(`no benchmark "${name}": there are ${benchNames().join(', ')}`);
  return name;
}

function earlierReport(path: string): ReportDocument {
  try {
    return readReport(path);
  } catch (error) {
    throw new UsageError(`--compare: ${(error as Error).message}`);
  }
}

/**
 * Runs benchmarks as the standard has it, and writes the report after each, so that nothing is lost whatever ends this
 * run.
 */
async function runAll({ json, directory, earlier, runs, names, resumes }: Options): Promise<void> {
  const facts = machineFacts(directory);
  const whole = new WholeRun((name) => ({ ...standardRun(name), ...(runs === null ? {} : { runs }) }), json);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => whole.end(signal));
  let measured = resumes ? keptOf(directory, facts) : NOTHING;
  let path: string | null = null;
  for await (measured of whole.measure(names.map(fileOf), measured))
    path = writeReport(directory, { name: 'report', introduction: '', facts, ...measured });
  if (path !== null) console.error(`written: ${path}`);
  const { ran, results } = measured;
  const failed = ran.filter(({ failure }) => failure !== null);
  for (const { bench, failure } of failed) console.error(`${bench} failed: ${failure}`);
  if (failed.length > 0) process.exitCode = 1;
  conclude(earlier, results);
  const gaps = gapsText(judge(results), names);
  if (gaps !== '') console.error(`goals without a median of several samples:\n${gaps}`);
  if (whole.signal === null) return;
  console.error(`ended early by ${whole.signal}; --resume measures the rest`);
  process.exitCode = whole.signal === 'SIGINT' ? 130 : 143;
}

/** What a whole run of the same commit has measured into this folder without a failure. */
function keptOf(directory: string, { commit }: MachineFacts): Measured {
  const path = join(directory, 'report.json');
  let earlier: ReportDocument;
  try {
    earlier = readReport(path);
  } catch (error) {
    throw new UsageError(`--resume: ${(error as Error).message}`);
  }
  if (earlier.commit !== commit)
    throw new UsageError(`--resume: ${path} is of commit ${earlier.commit}, and this is ${commit}`);
  const kept = withoutFailures(earlier);
  console.error(`kept: ${kept.ran.map(({ bench }) => bench).join(', ')}`);
  return kept;
}

/** Runs one benchmark in this process. */
async function runOne(name: string, args: readonly string[], options: Options): Promise<void> {
  const { json, directory, writes, earlier, runs } = options;
  keepTogether();
  const recording = new Recording(name);
  try {
    await runBench(fileOf(name), { runs: runs ?? 1, args }, json, recording.add);
  } catch (error) {
    console.error(`${name} failed:`, error);
    recording.add({ kind: 'failure', text: error instanceof Error ? error.message : String(error) });
  }
  const { results, failure } = recording;
  if (failure !== null) process.exitCode = 1;
  if (runs !== null && runs > 1 && !json)
    for (const { bench, figures } of results) console.log(`== ${bench}, ${runs} runs\n${tableOf(figures)}`);
  const report = { name, introduction: introductionOf(name), facts: machineFacts(directory), results };
  if (writes) console.error(`written: ${writeReport(directory, report)}`);
  conclude(earlier, results);
}

/** Prints the goals that were missed, and what is worse than in the earlier report; a regression is the exit code 1. */
function conclude(earlier: ReportDocument | null, results: readonly BenchResult[]): void {
  const judged = judge(results);
  if (judged.length > 0) console.error(missesText(judged));
  if (earlier === null) return;
  const compared = compareReports(earlier.results, results);
  console.error(`compared with ${earlier.commit ?? 'an earlier report'} of ${earlier.date}:`);
  console.error(regressionText(compared));
  if (compared.some(({ regressed, isJudged }) => regressed && isJudged)) process.exitCode = 1;
}

async function main(argv: readonly string[]): Promise<void> {
  const options = optionsOf(argv);
  const [first, ...others] = options.rest;
  if (first !== undefined && HELP.has(first)) {
    console.log(help());
    return;
  }
  if (first?.startsWith('-') === true && first !== '-o') throw new UsageError(`no option ${first}; see --help`);
  if (first === undefined || first === '-o') return runAll(options);
  const name = checkedName(first);
  if (others.some((argument) => HELP.has(argument))) console.log(helpOf(name));
  else await runOne(name, others, options);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
