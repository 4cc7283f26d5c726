import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tableOf, type Bench, type Measurement } from './report.js';
import { machineFacts } from './summary/machine.js';
import { judge, missesText } from './summary/judgement.js';
import { keepTogether, removeLeftovers } from './summary/leftovers.js';
import { combined } from './summary/repeated-runs.js';
import { compareReports, readReport, regressionText, type ReportDocument } from './summary/regressions.js';
import type { BenchResult } from './summary/bench-result.js';
import { writeReport } from './summary/report-file.js';
import { standardRun } from './summary/standard-runs.js';

const directory = fileURLToPath(new URL('.', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../bench', import.meta.url));
const REPORT_DIRECTORY = fileURLToPath(new URL('../../bench/out', import.meta.url));
const NOT_BENCHES = new Set(['run.js', 'report.js']);
const HELP = new Set(['--help', '-h', 'help']);

/** A command line that cannot be run. */
class UsageError extends Error {}

/** Every file of this folder is a benchmark; code that several benchmarks share is in folders below. */
function benchNames(): string[] {
  return readdirSync(directory)
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
  return `npm run bench                     all benchmarks, about 45 minutes on two cores; writes a report to bench/out
npm run bench -- NAME [OPTION...] one of them
npm run bench -- NAME --help      what it measures, and its options

  --runs N       the medians of N runs, with their spread; without a NAME three of each that has a goal (bench/summary/goals.ts)
  --json         one line of JSON per figure
  --report DIR   writes the report to this folder
  --compare FILE says which ratios are worse by more than 20 % and more than noise than in the JSON of an earlier
                 report, and fails if one of them has a goal

${lines.join('\n')}`;
}

/** What a benchmark measures: its help without the command line. */
function introductionOf(name: string): string {
  return helpOf(name).replace(/\n\n {4}npm run [^]*/u, '');
}

/** Runs a benchmark; the results of its sections, the first of which has the benchmark's name. */
async function runBench(name: string, json: boolean, args: readonly string[]): Promise<BenchResult[]> {
  const bench = (await import(`./${name}.js`)) as { run: Bench };
  const results: { bench: string; figures: Measurement[]; notes: string[] }[] = [];
  const begin = (title: string): void => {
    if (!json) console.log(`== ${title}`);
    results.push({ bench: title, figures: [], notes: [] });
  };
  const finish = (): void => {
    const figures = results.at(-1)?.figures ?? [];
    if (!json && figures.length > 0) console.log(tableOf(figures));
  };
  const section = (title: string): void => {
    finish();
    begin(`${name}-${title}`);
  };
  const report = (figure: Measurement): void => {
    if (json) console.log(JSON.stringify(figure));
    results.at(-1)?.figures.push(figure);
  };
  const note = (text: string): void => {
    results.at(-1)?.notes.push(text);
    if (json) console.error(text);
    else console.log(text);
  };
  begin(name);
  await bench.run({ json, args, section, report, note });
  finish();
  return results;
}

/** Runs a benchmark several times; the medians of its figures. */
async function runRepeatedly(
  name: string,
  runs: number,
  json: boolean,
  args: readonly string[],
): Promise<BenchResult[]> {
  const all: BenchResult[][] = [];
  for (let run = 0; run < runs; run += 1) {
    try {
      all.push(await runBench(name, json, args));
    } finally {
      const left = removeLeftovers();
      if (left.length > 0) {
        console.error(`${name} left behind, and the runner removed:\n${left.map((line) => `  ${line}`).join('\n')}`);
        process.exitCode = 1;
      }
    }
  }
  return combined(all);
}

/**
 * Runs every benchmark, what has a goal three times unless `runs` says otherwise; one that fails does not keep the
 * others from being reported.
 */
async function runAll(runs: number | null, json: boolean): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  for (const name of benchNames()) {
    const began = performance.now();
    const standard = standardRun(name);
    try {
      results.push(...(await runRepeatedly(name, runs ?? standard.runs, json, standard.args)));
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      console.error(`${name} failed: ${text}`);
      results.push({ bench: name, figures: [], notes: [`failed: ${text}`] });
      process.exitCode = 1;
    }
    console.error(`${name} took ${((performance.now() - began) / 1000).toFixed(0)} s`);
  }
  return results;
}

/** Takes `--report DIRECTORY`, `--compare FILE` and `--runs N` out of a command line. */
function commonOptions(args: readonly string[]): {
  readonly directory: string | null;
  readonly earlier: ReportDocument | null;
  /** Null: as many as usual. */
  readonly runs: number | null;
  readonly rest: readonly string[];
} {
  const rest = [...args];
  const take = (option: string): string | null => {
    const at = rest.indexOf(option);
    if (at < 0) return null;
    const [, value] = rest.splice(at, 2);
    if (value === undefined) throw new UsageError(`${option} needs a value`);
    return value;
  };
  const directory = take('--report');
  const compare = take('--compare');
  const given = take('--runs');
  const runs = given === null ? null : Number(given);
  if (runs !== null && (!Number.isInteger(runs) || runs < 1))
    throw new UsageError('--runs needs a whole number of at least 1');
  return { directory, earlier: compare === null ? null : earlierReport(compare), runs, rest };
}

function earlierReport(path: string): ReportDocument {
  try {
    return readReport(path);
  } catch (error) {
    throw new UsageError(`--compare: ${(error as Error).message}`);
  }
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
  // `--json`, or `-o json` as in the other commands.
  const json = argv.includes('--json') || argv.some((argument, at) => argument === '-o' && argv[at + 1] === 'json');
  const { directory, earlier, runs, rest } = commonOptions(argv.filter((argument) => argument !== '--json'));
  const [first, ...others] = rest;
  if (first !== undefined && HELP.has(first)) {
    console.log(help());
    return;
  }
  keepTogether();
  const written = (name: string, introduction: string, results: readonly BenchResult[]): void =>
    console.error(
      `written: ${writeReport(directory ?? REPORT_DIRECTORY, { name, introduction, facts: machineFacts(), results })}`,
    );
  if (first?.startsWith('-') === true && first !== '-o') throw new UsageError(`no option ${first}; see --help`);
  if (first === undefined || first === '-o') {
    const all = await runAll(runs, json);
    written('report', '', all);
    conclude(earlier, all);
    return;
  }
  if (!benchNames().includes(first))
    throw new UsageError(`no benchmark "${first}": there are ${benchNames().join(', ')}`);
  if (others.some((argument) => HELP.has(argument))) {
    console.log(helpOf(first));
    return;
  }
  const times = runs ?? 1;
  const results = await runRepeatedly(first, times, json, others);
  if (times > 1 && !json)
    for (const { bench, figures } of results) console.log(`== ${bench}, ${times} runs\n${tableOf(figures)}`);
  if (directory !== null) written(first, introductionOf(first), results);
  conclude(earlier, results);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
