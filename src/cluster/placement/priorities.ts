import type { Costs } from './cost-table.js';
import { compareCosts } from './policy/policy.js';

/** `MaxExtenderPriority` of the scheduler: scores are whole numbers from 0 to this. */
const MAX_PRIORITY = 10;

/**
 * Scores for costs, in the same order. Only the cheapest nodes get the highest score: with a large enough weight the
 * scheduler chooses one of them. Scores of the others fall in proportion to their extra cost.
 */
export function priorities({ primary, tieBreak }: Costs): number[] {
  const compare = (a: number, b: number): number =>
    compareCosts(primary[a] as number, tieBreak[a] as number, primary[b] as number, tieBreak[b] as number);
  let cheapest = -1;
  let dearest = -1;
  for (let at = 0; at < primary.length; at++) {
    if (!Number.isFinite(primary[at])) continue;
    if (cheapest < 0 || compare(at, cheapest) < 0) cheapest = at;
    if (dearest < 0 || compare(at, dearest) > 0) dearest = at;
  }
  const scores = new Array<number>(primary.length).fill(0);
  if (cheapest < 0) return scores;
  const range = (primary[dearest] as number) - (primary[cheapest] as number);
  const secondRange = (tieBreak[dearest] as number) - (tieBreak[cheapest] as number);
  for (let at = 0; at < scores.length; at++) {
    const cost = primary[at] as number;
    if (!Number.isFinite(cost)) continue;
    const above =
      range > 1e-6
        ? (cost - (primary[cheapest] as number)) / range
        : ((tieBreak[at] as number) - (tieBreak[cheapest] as number)) / secondRange;
    const below = Math.min(MAX_PRIORITY - 1, Math.max(0, Math.round((MAX_PRIORITY - 1) * (1 - above))));
    scores[at] = compare(at, cheapest) === 0 ? MAX_PRIORITY : below;
  }
  return scores;
}
