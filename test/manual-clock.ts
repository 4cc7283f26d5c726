import type { Clock } from '../src/host/clock.js';

interface Due {
  at: number;
  readonly action: () => void;
}

/** A clock that a test moves by hand. */
export class ManualClock implements Clock {
  #now: number;
  /** In the order of the calls; of several at one time, the first is due first. */
  readonly #due = new Set<Due>();

  constructor(now = 1_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(delayMs: number, action: () => void): () => void {
    const due = { at: this.#now + delayMs, action };
    this.#due.add(due);
    return () => void this.#due.delete(due);
  }

  every(periodMs: number, action: () => void): () => void {
    const due: Due = {
      at: this.#now + periodMs,
      action: () => {
        due.at += periodMs;
        this.#due.add(due);
        action();
      },
    };
    this.#due.add(due);
    return () => void this.#due.delete(due);
  }

  /** Lets time pass; what falls due on the way happens in order, each at its own time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#next(end); next !== null; next = this.#next(end)) {
      this.#due.delete(next);
      this.#now = next.at;
      next.action();
    }
    this.#now = end;
  }

  #next(end: number): Due | null {
    let next: Due | null = null;
    for (const due of this.#due) if (due.at <= end && (next === null || due.at < next.at)) next = due;
    return next;
  }
}
