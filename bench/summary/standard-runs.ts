import { GOALS } from './goals.js';

/** How `npm run bench` runs a benchmark. */
export interface StandardRun {
  readonly args: readonly string[];
  readonly runs: number;
}

/** A figure with a goal is the median of so many samples. */
const SAMPLES = 3;

/**
 * What differs from three runs of what has a goal, and one of the others: short variants where whole runs would take
 * many minutes, and one run of what takes its three samples by itself.
 */
const EXCEPTIONS: Readonly<Record<string, Partial<StandardRun>>> = {
  agent: { runs: 1 },
  console: { runs: 1 },
  display: { runs: 1 },
  dra: { runs: 1 },
  hook: { runs: 1 },
  'launch-storm': { args: ['--quick'], runs: 1 },
  oversubscription: { args: ['--quick'] },
  priority: { args: ['--quick', 'alone', 'high beside low'] },
  'quota-start': { args: ['30000'] },
  scheduler: { args: ['--short', '--nodes', '100', '--pods', '300', '--samples', `${SAMPLES}`], runs: 1 },
  'scheduler-groups': { runs: 1 },
  service: { args: ['--quick'], runs: 1 },
  share: { args: ['--quick'] },
  start: { args: ['--quick'] },
  topology: { runs: 1 },
};

export function standardRun(bench: string): StandardRun {
  const isJudged = GOALS.some((goal) => goal.bench === bench);
  return { args: [], runs: isJudged ? SAMPLES : 1, ...EXCEPTIONS[bench] };
}
