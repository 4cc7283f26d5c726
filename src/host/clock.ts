import { PeriodicActions } from './periodic-actions.js';

/** Time as a dependency, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `action` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, action: () => void): () => void;
  /**
   * Calls `action` every `periodMs`, for the first time after one to two periods; the returned function stops this.
   */
  every(periodMs: number, action: () => void): () => void;
}

function after(delayMs: number, action: () => void): () => void {
  const timer = setTimeout(action, delayMs);
  timer.unref();
  return () => clearTimeout(timer);
}

const periodicActions = new PeriodicActions(after, () => performance.now());

/** The machine's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after,
  every: (periodMs, action) => periodicActions.add(periodMs, action),
};
