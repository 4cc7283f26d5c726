import type { Clock } from '../src/host/clock.js';

interface Due {
  readonly at: number;
  readonly action: () => void;
}

/** A clock that a test moves by hand. */
export class ManualClock implements Clock {
  #now: number;
  #due: readonly Due[] = [];

  constructor(now = 1_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(delayMs: number, action: () => void): () => void {
    const due = { at: this.#now + delayMs, action };
    this.#due = [...this.#due, due];
    return () => {
      this.#due = this.#due.filter((other) => other !== due);
    };
  }

  every(periodMs: number, action: () => void): () => void {
    let cancel = (): void => undefined;
    const arm = (): void => {
      cancel = this.after(periodMs, () => {
        arm();
        action();
      });
    };
    arm();
    return () => cancel();
  }

  /** Lets time pass; what falls due on the way happens in order, each at its own time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#due.filter((due) => due.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#due = this.#due.filter((due) => due !== next);
      this.#now = next.at;
      next.action();
    }
    this.#now = end;
  }
}
