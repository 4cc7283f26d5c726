import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inDigits, type Measurement } from '../report.js';
import type { BenchResult } from './bench-result.js';
import { comparisonOf, comparisonTable } from './comparison.js';
import type { MachineFacts } from './machine.js';
import { judge, judgementTable, promisePictures } from './judgement.js';
import { plotOf } from './plot.js';
import type { Ran, ReportDocument } from './regressions.js';

/** What a report tells. */
export interface Report {
  /** `report`, or the benchmark's name; also that of the file. */
  readonly name: string;
  /** Markdown; may be empty. */
  readonly introduction: string;
  readonly facts: MachineFacts;
  readonly results: readonly BenchResult[];
  /** The benchmarks of a whole run; absent for a single one. */
  readonly ran?: readonly Ran[];
}

/**
 * Writes `NAME.md`, `NAME.json` and drawings into `directory`; returns the report's path. The first page has the goals:
 * a table, and a drawing for each promise of the README; then comes a section for each benchmark.
 */
export function writeReport(directory: string, report: Report): string {
  const { name, results, facts, ran = [] } = report;
  mkdirSync(directory, { recursive: true });
  const sections = results.map(({ bench, figures, notes }) => {
    const plot = plotOf(bench, figures);
    if (plot !== null) writeFileSync(join(directory, `${bench}.svg`), plot);
    return [
      `## ${bench}\n`,
      ...(plot === null ? [] : [`![${bench}](${bench}.svg)\n`]),
      ...tablesOf(figures),
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
  writeFileSync(path, [headOf(report), ...firstPage(directory, results), ...sections].join('\n'));
  const document: ReportDocument = { date: facts.date, commit: facts.commit, ran, results };
  writeFileSync(join(directory, `${name}.json`), `${JSON.stringify(document, null, 1)}\n`);
  return path;
}

function firstPage(directory: string, results: readonly BenchResult[]): string[] {
  const judged = judge(results);
  if (judged.length === 0) return [];
  const pictures = promisePictures(judged).map(({ promise, sentence, drawing }) => {
    writeFileSync(join(directory, `promise-${promise}.svg`), drawing);
    return `![${sentence}](promise-${promise}.svg)\n`;
  });
  return ['## Goals\n', judgementTable(judged), ...pictures];
}

function headOf({ name, introduction, facts, ran = [] }: Report): string {
  const { date, commit, processor, cores, memoryGib, kernel, node } = facts;
  const command = name === 'report' ? '`npm run bench`' : `\`npm run bench -- ${name}\``;
  return [
    `# ${name === 'report' ? 'Benchmarks' : `Benchmark: ${name}`}\n`,
    ...(introduction === '' ? [] : [`${introduction}\n`]),
    `Written by ${command} on ${date}${commit === null ? '' : `, commit ${commit}`}.`,
    `Machine: ${processor}, ${cores} cores, ${memoryGib} GiB, Linux ${kernel}, Node ${node}.`,
    ...(ran.length === 0 ? [] : [tookText(ran)]),
    'A figure with two numbers in brackets is the median of several runs, and these are the least and the largest. A',
    'baseline is measured in the same run unless its benchmark says otherwise. Times differ between machines; ratios',
    'hardly do.\n',
  ].join('\n');
}

/** How long the benchmarks took, and which of them failed. */
function tookText(ran: readonly Ran[]): string {
  const minutes = ran.reduce((sum, { seconds }) => sum + seconds, 0) / 60;
  const failed = ran.filter(({ failure }) => failure !== null).map(({ bench }) => bench);
  return `${ran.length} benchmarks took ${minutes.toFixed(0)} minutes${failed.length === 0 ? '' : `; failed: ${failed.join(', ')}`}.`;
}

/** The figures of several variants side by side, the others one below the other. */
function tablesOf(figures: readonly Measurement[]): string[] {
  const comparison = comparisonOf(figures);
  const single = figures.filter(({ variant }) => variant === null);
  return [
    ...(comparison === null ? [] : [comparisonTable(comparison)]),
    ...(single.length === 0 ? [] : [tableOf(single)]),
  ];
}

function tableOf(figures: readonly Measurement[]): string {
  const rows = figures.map(
    ({ name, value, unit, baseline, ratio, spread }) =>
      `| ${name} | ${inDigits(value)} ${unit}${spread === undefined ? '' : ` (${spread.map(inDigits).join(' to ')})`} | ${baseline === null ? '' : inDigits(baseline)} | ${ratio === null ? '' : ratio.toFixed(3)} |`,
  );
  return `| figure | value | baseline | ratio |\n|---|---:|---:|---:|\n${rows.join('\n')}\n`;
}
