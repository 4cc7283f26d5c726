import { tableOf, type Bench, type Measurement } from '../report.js';
import { removeLeftovers } from '../summary/leftovers.js';
import type { StandardRun } from '../summary/standard-runs.js';
import type { Listener } from './recording.js';

/** A benchmark and the file that exports it. */
export interface BenchFile {
  readonly name: string;
  /** An absolute path. */
  readonly path: string;
}

/**
 * Runs a benchmark in this process as often as `runs` says, prints what it measures, and tells it. The first section of
 * each run has the benchmark's name. After each run it removes what the run left behind, which is a failure.
 */
export async function runBench(
  file: BenchFile,
  { runs, args }: StandardRun,
  json: boolean,
  tell: Listener,
): Promise<void> {
  for (let run = 0; run < runs; run += 1) {
    tell({ kind: 'run' });
    try {
      await runOnce(file, json, args, tell);
    } finally {
      const left = removeLeftovers();
      if (left.length > 0) {
        const text = `it left behind what the runner removed:\n${left.map((line) => `  ${line}`).join('\n')}`;
        console.error(`${file.name}: ${text}`);
        tell({ kind: 'failure', text });
      }
    }
  }
}

async function runOnce(
  { name, path }: BenchFile,
  json: boolean,
  args: readonly string[],
  tell: Listener,
): Promise<void> {
  const bench = (await import(path)) as { run: Bench };
  let figures: Measurement[] = [];
  const begin = (title: string): void => {
    if (!json) console.log(`== ${title}`);
    tell({ kind: 'section', title });
  };
  const finish = (): void => {
    if (!json && figures.length > 0) console.log(tableOf(figures));
    figures = [];
  };
  const section = (title: string): void => {
    finish();
    begin(`${name}-${title}`);
  };
  const report = (figure: Measurement): void => {
    if (json) console.log(JSON.stringify(figure));
    figures.push(figure);
    tell({ kind: 'figure', figure });
  };
  const note = (text: string): void => {
    tell({ kind: 'note', text });
    if (json) console.error(text);
    else console.log(text);
  };
  begin(name);
  await bench.run({ json, args, section, report, note });
  finish();
}
