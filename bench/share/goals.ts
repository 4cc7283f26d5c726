import { goalOf } from '../summary/goals.js';
import type { GpuResult } from './measure.js';

/** Goals of a row, in percentage points of a GPU. */
export interface Goals {
  /** Over the whole measurement. */
  readonly points: number;
  /** In any second of the measurement; null: no goal. */
  readonly secondPoints: number | null;
  /** The least work of all containers, in percent of the GPU's time, where they may use all of it; null: no goal. */
  readonly work: number | null;
}

/** The names of the figures that are judged. */
export const JUDGED = {
  lonely: 'one container: largest error',
  lonelySecond: 'one container: largest error in a second',
  neighbours: 'two to four containers: largest error',
  work: 'two to four containers of 100 together: least work',
  soft: 'soft limits: largest error',
  varied: 'varying durations beside others: largest error',
  changes: 'changes: longest time until a share is reached',
} as const;

const percentOf = (figure: string): number => {
  const { most, least } = goalOf('share', figure);
  return 100 * (most ?? least ?? NaN);
};

export const LONELY: Goals = {
  points: percentOf(JUDGED.lonely),
  secondPoints: percentOf(JUDGED.lonelySecond),
  work: null,
};
export const NEIGHBOURS: Goals = {
  points: percentOf(JUDGED.neighbours),
  secondPoints: null,
  work: percentOf(JUDGED.work),
};

export const VARIED: Goals = { points: percentOf(JUDGED.varied), secondPoints: null, work: null };

/** A goal that a row missed. */
export interface Miss {
  readonly what: string;
  /** The machine kept the row's programs from running for longer than the goal allows, which may be the cause. */
  readonly heldUp: boolean;
}

/** The goals that a row missed in a measurement of `seconds`. */
export function missesOf({ row, tenants, work }: GpuResult, goals: Goals, seconds: number): Miss[] {
  const misses: Miss[] = [];
  const longest = Math.max(...tenants.map(({ heldUpMs }) => heldUpMs));
  for (const { asked, got, charged, worstSecond, heldUpMs, heldUpSecondMs } of tenants) {
    const off = Math.abs(got - asked);
    const account = `charged ${charged.toFixed(2)}, held up for ${heldUpMs.toFixed(0)} ms`;
    if (off > goals.points)
      misses.push({
        what: `${got.toFixed(2)} instead of ${asked} (${account})`,
        heldUp: longest > goals.points * seconds * 10,
      });
    if (goals.secondPoints !== null && worstSecond > goals.secondPoints)
      misses.push({
        what: `off by ${worstSecond.toFixed(2)} in a second (held up for ${heldUpSecondMs.toFixed(0)} ms in one)`,
        heldUp: heldUpSecondMs > goals.secondPoints * 10,
      });
  }
  const whole = row.tenants.reduce((sum, { due, share }) => sum + (due ?? share), 0) >= 100;
  if (goals.work !== null && whole && work < goals.work)
    misses.push({
      what: `${work.toFixed(2)} % of the GPU's time is work (held up for ${longest.toFixed(0)} ms)`,
      heldUp: longest > (100 - goals.work) * seconds * 10,
    });
  return misses;
}
