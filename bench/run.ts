import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tableOf, type Bench, type Measurement } from './report.js';
import { machineFacts } from './summary/machine.js';
import { writeReport, type BenchResult } from './summary/report-file.js';

const directory = fileURLToPath(new URL('.', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../bench', import.meta.url));
const REPORT_DIRECTORY = fileURLToPath(new URL('../../bench/out', import.meta.url));
const NOT_BENCHES = new Set(['run.js', 'report.js']);

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
  const comments = [...source.matchAll(/\/\*\*\n((?: \*.*\n)+?) \*\/\nexport (?:async function|const) run\b/g)];
  const lines = (comments[0]?.[1] ?? '').split('\n').map((line) => line.replace(/^ \* ?/, ''));
  return lines.join('\n').trim() || `npm run bench -- ${name}`;
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

/** Takes `--report DIRECTORY` out of a command line. */
function reportDirectory(args: readonly string[]): {
  readonly directory: string | null;
  readonly rest: readonly string[];
} {
  const at = args.indexOf('--report');
  if (at < 0) return { directory: null, rest: args };
  return { directory: args[at + 1] ?? REPORT_DIRECTORY, rest: [...args.slice(0, at), ...args.slice(at + 2)] };
}

/** `--json`, or `-o json` as in the other commands. */
const argv = process.argv.slice(2);
const json = argv.includes('--json') || argv.some((argument, at) => argument === '-o' && argv[at + 1] === 'json');
const [first, ...others] = argv.filter((argument) => argument !== '--json');
const named = first !== undefined && !first.startsWith('-');
if (!named) {
  const results: BenchResult[] = [];
  for (const name of benchNames()) results.push(...(await runBench(name, json, [])));
  console.error(`written: ${writeReport(REPORT_DIRECTORY, 'report', machineFacts(), results)}`);
} else if (benchNames().includes(first) && others.some((argument) => argument === '--help' || argument === '-h')) {
  console.log(helpOf(first));
} else if (benchNames().includes(first)) {
  const { directory: written, rest } = reportDirectory(others);
  const results = await runBench(first, json, rest);
  if (written !== null) console.error(`written: ${writeReport(written, first, machineFacts(), results)}`);
} else {
  console.error(`no benchmark "${first}": there are ${benchNames().join(', ')}`);
  process.exitCode = 2;
}
