import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inDigits, type Measurement } from '../report.js';
import type { MachineFacts } from './machine.js';
import { plotOf } from './plot.js';

/** The results of one benchmark. */
export interface BenchResult {
  readonly bench: string;
  readonly figures: readonly Measurement[];
  /** Notes, in their order; of a benchmark that could not run, the reason. */
  readonly notes: readonly string[];
}

/** Writes `NAME.md` and a drawing for each benchmark into `directory`; returns the report's path. */
export function writeReport(
  directory: string,
  name: string,
  facts: MachineFacts,
  results: readonly BenchResult[],
): string {
  mkdirSync(directory, { recursive: true });
  const sections = results.map(({ bench, figures, notes }) => {
    const plot = plotOf(bench, figures);
    if (plot !== null) writeFileSync(join(directory, `${bench}.svg`), plot);
    return [
      `## ${bench}\n`,
      ...(plot === null ? [] : [`![${bench}](${bench}.svg)\n`]),
      ...(figures.length === 0 ? [] : [tableOf(figures)]),
      ...notes.map(
        (note) =>
          note
            .split('\n')
            .map((line) => `> ${line}`)
            .join('\n') + '\n',
      ),
    ].join('\n');
  });
  const path = join(directory, `${name}.md`);
  writeFileSync(path, `${headOf(name, facts)}\n${sections.join('\n')}`);
  return path;
}

function headOf(name: string, { date, processor, cores, memoryGib, kernel, node }: MachineFacts): string {
  return `# Benchmarks

Written by \`npm run bench${name === 'report' ? '' : ` -- ${name}`}\` on ${date}: ${processor}, ${cores} cores, ${memoryGib} GiB, Linux ${kernel}, Node ${node}. A baseline is measured in the same run unless its benchmark says
otherwise; times differ between machines, ratios hardly.
`;
}

function tableOf(figures: readonly Measurement[]): string {
  const rows = figures.map(
    ({ name, value, unit, baseline, ratio }) =>
      `| ${name} | ${inDigits(value)} ${unit} | ${baseline === null ? '' : inDigits(baseline)} | ${ratio === null ? '' : ratio.toFixed(3)} |`,
  );
  return `| figure | value | baseline | ratio |\n|---|---:|---:|---:|\n${rows.join('\n')}\n`;
}
