/** Periods that are a multiple of one of these are due at multiples of it; the first that divides the period counts. */
const GRIDS_MS = [1_000, 500, 100];

/** Calls an action after a delay; the returned function cancels it. */
type After = (delayMs: number, action: () => void) => () => void;

interface Periodic {
  readonly periodMs: number;
  readonly action: () => void;
  dueMs: number;
}

/**
 * Calls actions periodically, all with one timer, and at common times: an idle process is woken once for all that is
 * due, since a wakeup costs more than most actions. The first call is at least one period later, and less than two.
 * A late action does not catch up.
 */
export class PeriodicActions {
  readonly #after: After;
  readonly #nowMs: () => number;
  readonly #actions = new Set<Periodic>();
  #cancelTimer: (() => void) | null = null;
  /** Time for which the timer is set. */
  #setForMs = 0;

  /** `after` sets a timer, and `nowMs` is a clock that never goes back. */
  constructor(after: After, nowMs: () => number) {
    this.#after = after;
    this.#nowMs = nowMs;
  }

  /** The returned function ends the calls. */
  add(periodMs: number, action: () => void): () => void {
    const periodic = { periodMs, action, dueMs: nextDue(this.#nowMs() + periodMs, periodMs) };
    this.#actions.add(periodic);
    this.#setTimer();
    return () => {
      this.#actions.delete(periodic);
      if (this.#actions.size === 0) this.#clearTimer();
    };
  }

  #run(): void {
    this.#cancelTimer = null;
    const nowMs = this.#nowMs();
    try {
      for (const periodic of this.#actions) {
        if (periodic.dueMs > nowMs) continue;
        const isLate = periodic.dueMs + periodic.periodMs <= nowMs;
        periodic.dueMs = nextDue((isLate ? nowMs : periodic.dueMs) + periodic.periodMs, periodic.periodMs);
        periodic.action();
      }
    } finally {
      this.#setTimer();
    }
  }

  #setTimer(): void {
    let dueMs = Number.POSITIVE_INFINITY;
    for (const periodic of this.#actions) if (periodic.dueMs < dueMs) dueMs = periodic.dueMs;
    if (this.#cancelTimer !== null && this.#setForMs <= dueMs) return;
    this.#clearTimer();
    if (dueMs === Number.POSITIVE_INFINITY) return;
    this.#setForMs = dueMs;
    // Node's timers may fire a fraction of a millisecond early.
    this.#cancelTimer = this.#after(Math.max(0, Math.ceil(dueMs - this.#nowMs())) + 1, () => this.#run());
  }

  #clearTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }
}

/** The next time from `fromMs` on at which an action of this period is due. */
function nextDue(fromMs: number, periodMs: number): number {
  const gridMs = GRIDS_MS.find((grid) => periodMs % grid === 0);
  return gridMs === undefined ? fromMs : Math.ceil(fromMs / gridMs) * gridMs;
}
