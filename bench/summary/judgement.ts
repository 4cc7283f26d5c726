import { inDigits, measured, type Measurement } from '../report.js';
import { GOALS, PROMISES, type Goal } from './goals.js';
import { plotOf } from './plot.js';
import type { BenchResult } from './bench-result.js';

/** A goal, and the figure that a run has for it. */
export interface Judged {
  readonly goal: Goal;
  readonly figure: Measurement;
  readonly ratio: number;
  readonly isMet: boolean;
}

/** The goals of all figures that were measured. */
export function judge(results: readonly BenchResult[], goals: readonly Goal[] = GOALS): readonly Judged[] {
  return goals.flatMap((goal) => {
    const figure = results
      .filter(({ bench }) => bench === goal.bench)
      .flatMap(({ figures }) => figures)
      .find(({ name }) => name === goal.figure);
    if (figure === undefined) return [];
    const ratio = figure.ratio ?? NaN;
    // A ratio that is not a number meets nothing.
    const isMet = ratio <= (goal.most ?? Infinity) && ratio >= (goal.least ?? -Infinity);
    return [{ goal, figure, ratio, isMet }];
  });
}

/** How many goals are met, and a line for each that is not. */
export function missesText(judged: readonly Judged[]): string {
  const missed = judged.filter(({ isMet }) => !isMet);
  return [
    `${judged.length - missed.length} of ${judged.length} goals are met`,
    ...missed.map(
      ({ goal, figure, ratio }) =>
        `  missed: ${goal.bench}: ${goal.figure}: ${ratioText(ratio, figure)} times ${goal.baseline}; the goal is ${limitText(goal)}`,
    ),
  ].join('\n');
}

/** The goals of these benchmarks that have no figure, or one that is no median of several samples; a line each. */
export function gapsText(judged: readonly Judged[], benches: readonly string[]): string {
  const own = GOALS.filter(({ bench }) => benches.includes(bench));
  const figureOf = (goal: Goal): Measurement | undefined => judged.find((each) => each.goal === goal)?.figure;
  return own
    .flatMap((goal) => {
      const figure = figureOf(goal);
      if (figure?.spread !== undefined) return [];
      return [`  ${figure === undefined ? 'not measured' : 'a single sample'}: ${goal.bench}: ${goal.figure}`];
    })
    .join('\n');
}

/** All goals as a Markdown table, the promises in their order. */
export function judgementTable(judged: readonly Judged[]): string {
  const rows = Object.entries(PROMISES).flatMap(([promise, sentence]) => {
    const own = judged.filter(({ goal }) => goal.promise === promise);
    return own.map(
      ({ goal, figure, ratio, isMet }, at) =>
        `| ${at === 0 ? sentence : ''} | ${goal.bench}: ${goal.figure} | ${ratioText(ratio, figure)} | ${limitText(goal)} | ${goal.baseline} | ${isMet ? 'yes' : '**no**'} |`,
    );
  });
  return ['| promise | figure | ratio | goal | to | met |', '|---|---|---:|---:|---|---|', ...rows, ''].join('\n');
}

/** A drawing for each promise: how much of each goal is used; beyond 100 % it is missed. */
export function promisePictures(
  judged: readonly Judged[],
): { readonly promise: string; readonly sentence: string; readonly drawing: string }[] {
  return Object.entries(PROMISES).flatMap(([promise, sentence]) => {
    const rows = judged
      .filter(({ goal }) => goal.promise === promise)
      .map(({ goal, ratio }) =>
        measured(`${goal.bench}: ${goal.figure}`, usedPercent(goal, ratio), '% of the goal', 100),
      );
    const drawing = plotOf(sentence.replace(/\.$/u, ''), rows);
    return drawing === null ? [] : [{ promise, sentence, drawing }];
  });
}

/** A missing or unlimited ratio is drawn as ten times the goal. */
function usedPercent({ most, least }: Goal, ratio: number): number {
  const used = 100 * Math.max(most === undefined ? 0 : ratio / most, least === undefined ? 0 : least / ratio);
  return Number.isFinite(used) ? used : 1_000;
}

const ratioText = (ratio: number, { ratioSpread }: Measurement): string =>
  ratioSpread === undefined ? digits(ratio) : `${digits(ratio)} (${ratioSpread.map(digits).join(' to ')})`;

const digits = (ratio: number): string => (Number.isFinite(ratio) ? inDigits(Number(ratio.toPrecision(3))) : 'none');

function limitText({ most, least }: Goal): string {
  if (most === least) return `${most}`;
  return [most === undefined ? [] : [`at most ${most}`], least === undefined ? [] : [`at least ${least}`]]
    .flat()
    .join(', ');
}
