import { CASH } from '../../../manifests/key.js';
import { levelAt, nextLevelAt, usedAt, type Budget } from '../state/budget.js';
import type { Group } from '../state/group.js';
import type { QuotaState } from '../state/state.js';

/**
 * A threshold that is further away is looked at again half way: pods that start meanwhile bring it nearer, and without
 * this each of them would need a timer of its own.
 */
const EXACT_MS = 60_000;

/**
 * Emits an event when usage reaches 80, 90 or 100 percent of a budget, once each. The group must be owned. To be called
 * after each change of a budget; time alone is the timer's.
 */
export function announceThreshold(state: QuotaState, group: Group, budget: Budget): void {
  scheduleThreshold(state, group, budget);
  if (!budget.listed || budget.hard <= 0n) return;
  const percent = levelAt(budget, state.now);
  if (percent > budget.announced) {
    const used = usedAt(budget, state.now);
    state.emit({ type: 'cashThreshold', group: group.name, percent, amounts: new Map([[CASH + budget.key, used]]) });
  }
  if (percent === budget.announced) return;
  state.revision++;
  budget.announced = percent;
  state.groupChanged(group);
}

/** Schedules the next threshold that time alone reaches. */
export function scheduleThreshold(state: QuotaState, { name }: Group, budget: Budget): void {
  if (!budget.listed || budget.hard <= 0n) return;
  const next = nextLevelAt(budget, state.now);
  if (next === null || !Number.isSafeInteger(next)) return;
  const left = next - state.now;
  const at = left <= EXACT_MS ? next : state.now + Math.ceil(left / 2);
  state.timers.wake({ at, kind: 'cashThreshold', subject: budget.key, group: name }, next);
}

/** Runs the timer of a budget. */
export function lookAtThreshold(state: QuotaState, groupName: string, key: string): void {
  const found = state.group(groupName);
  const budget = found?.budgets.find((candidate) => candidate.key === key);
  if (found === undefined || budget === undefined) return;
  // A later level may be announced already, by another engine: time alone only raises usage.
  if (levelAt(budget, state.now) <= budget.announced) return scheduleThreshold(state, found, budget);
  const group = state.own(found);
  for (const owned of group.budgets) if (owned.key === key) announceThreshold(state, group, owned);
}
