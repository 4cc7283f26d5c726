import { readFileSync } from 'node:fs';
import type { Measurement } from '../report.js';
import { GOALS, type Goal } from './goals.js';
import type { BenchResult } from './bench-result.js';

/** A ratio that is this much worse than before counts, unless the spread of the runs explains it. */
const WORSE_BY = 0.2;

/** One figure in an earlier report and now. Only ratios are compared: times differ between machines. */
export interface Compared {
  readonly bench: string;
  readonly figure: string;
  readonly before: number;
  readonly now: number;
  /** How much worse, as a fraction: 0.25 is 25 % worse, negative is better. */
  readonly worse: number;
  /** Worse by more than `WORSE_BY`, and by more than the spread of the runs on either side. */
  readonly regressed: boolean;
  /** It has a goal. */
  readonly isJudged: boolean;
}

/** How a benchmark of a whole run went. */
export interface Ran {
  readonly bench: string;
  readonly seconds: number;
  /** Null: it did not fail. */
  readonly failure: string | null;
  /** The names of its results. */
  readonly sections: readonly string[];
}

/** The document that `writeReport` puts beside the Markdown, for programs. */
export interface ReportDocument {
  readonly date: string;
  readonly commit: string | null;
  /** The benchmarks of a whole run, in their order; empty for that of a single one. */
  readonly ran: readonly Ran[];
  readonly results: readonly BenchResult[];
}

/** Reads the JSON of an earlier report; throws an error that says what was expected. */
export function readReport(path: string): ReportDocument {
  let document: Partial<ReportDocument>;
  try {
    document = JSON.parse(readFileSync(path, 'utf8')) as Partial<ReportDocument>;
  } catch (error) {
    throw new Error(
      `${path} cannot be read as the JSON of a report (${(error as Error).message}): npm run bench writes report.json`,
      { cause: error },
    );
  }
  if (!Array.isArray(document.results))
    throw new Error(`${path} holds no results: expected the report.json that npm run bench writes`);
  const { date = '', commit = null, ran = [], results } = document;
  return { date, commit, ran, results: results.map(withNumbers) };
}

/** JSON has no number for a value that is none. */
const withNumbers = (result: BenchResult): BenchResult => ({
  ...result,
  figures: result.figures.map((figure) => ({ ...figure, value: (figure.value as number | null) ?? NaN })),
});

/** Every figure with a ratio that both reports have, the worst first. */
export function compareReports(before: readonly BenchResult[], now: readonly BenchResult[]): readonly Compared[] {
  const earlier = new Map(
    before.flatMap(({ bench, figures }) => figures.map((figure) => [keyOf(bench, figure), figure] as const)),
  );
  return now
    .flatMap(({ bench, figures }) =>
      figures.flatMap((figure) => {
        const known = earlier.get(keyOf(bench, figure));
        return known === undefined ? [] : comparedFigure(bench, known, figure);
      }),
    )
    .sort((a, b) => b.worse - a.worse);
}

function comparedFigure(bench: string, before: Measurement, now: Measurement): readonly Compared[] {
  if (before.ratio === null || now.ratio === null || before.ratio <= 0 || now.ratio <= 0) return [];
  const goal = GOALS.find((each) => each.bench === bench && each.figure === now.name);
  const worse = moreIsBetter(now, goal) ? before.ratio / now.ratio - 1 : now.ratio / before.ratio - 1;
  return [
    {
      bench,
      figure: now.variant === null ? now.name : `${now.name}: ${now.variant}`,
      before: before.ratio,
      now: now.ratio,
      worse,
      regressed: worse > Math.max(WORSE_BY, noiseOf(before), noiseOf(now)),
      isJudged: goal !== undefined,
    },
  ];
}

/** Half of the spread of the ratios, as a fraction of their median; 0 for a single run. */
function noiseOf({ ratio, ratioSpread }: Measurement): number {
  return ratioSpread === undefined || ratio === null ? 0 : (ratioSpread[1] - ratioSpread[0]) / 2 / Math.abs(ratio);
}

/** What has a goal gets better towards it; else rates grow when things get better, and times, memory, losses shrink. */
function moreIsBetter({ unit }: Measurement, goal: Goal | undefined): boolean {
  return goal === undefined ? /\/s$/u.test(unit) : goal.most === undefined;
}

const keyOf = (bench: string, { name, variant }: Measurement): string => JSON.stringify([bench, name, variant]);

/** What got worse, a line each, and how many figures were compared; what has no goal is only told. */
export function regressionText(compared: readonly Compared[]): string {
  const regressed = compared.filter((figure) => figure.regressed);
  return [
    `${compared.length} ratios compared, ${regressed.length} worse by more than ${WORSE_BY * 100} % and more than noise`,
    ...regressed.map(
      ({ bench, figure, before, now, worse, isJudged }) =>
        `  ${bench}: ${figure}: ${before.toFixed(3)} before, ${now.toFixed(3)} now (${(worse * 100).toFixed(0)} % worse${isJudged ? '' : ', no goal'})`,
    ),
  ].join('\n');
}
