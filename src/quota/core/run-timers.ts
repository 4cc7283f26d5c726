import { grantBegins, grantEnds } from './loans/grants.js';
import { loanBegins, loanEnds } from './loans/loans.js';
import { forgetPod } from './pods/pods.js';
import { lookAtThreshold } from './pods/threshold.js';
import { expire } from './reservations/reserve.js';
import type { QuotaState } from './state/state.js';
import type { Timer } from './state/timers.js';

/** Advances the state to the time of a command: due timers run first, each at its own time. Time never goes back. */
export function runTimers(state: QuotaState, now: number): void {
  while (state.timers.nextAt <= now) {
    const timer = state.timers.takeDue(now);
    if (timer === null) break;
    state.now = Math.max(state.now, timer.at);
    runTimer(state, timer, now);
  }
  if (now > state.now) state.now = now;
}

/**
 * Runs one timer at its own time, or now if that is past. The caller advances the state to `until` once all due timers
 * have run.
 */
export function runTimerLate(state: QuotaState, timer: Timer, until: number): void {
  state.now = Math.max(state.now, timer.at);
  runTimer(state, timer, until);
}

function runTimer(state: QuotaState, timer: Timer, until: number): void {
  switch (timer.kind) {
    case 'reservation':
      return expire(state, timer.subject);
    case 'grantBegins':
      return grantBegins(state, timer.group, timer.subject, until);
    case 'grantEnds':
      return grantEnds(state, timer.group, timer.subject);
    case 'loanBegins':
      return loanBegins(state, timer.subject);
    case 'loanEnds':
      return loanEnds(state, timer.subject);
    case 'podForgotten':
      return forgetPod(state, timer.subject);
    case 'cashThreshold':
      return lookAtThreshold(state, timer.group, timer.subject);
  }
}
