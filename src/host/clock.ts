/** Time as a dependency, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `action` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, action: () => void): () => void;
  /** Calls `action` every `periodMs`; the returned function stops this. */
  every(periodMs: number, action: () => void): () => void;
}

/** The machine's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  every(periodMs, action) {
    const timer = setInterval(action, periodMs);
    timer.unref();
    return () => clearInterval(timer);
  },
};
