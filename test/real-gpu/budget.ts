/** What a budget left no time for. */
export class BudgetOver extends Error {
  constructor() {
    super('the budget is over');
  }
}

/** The time of a whole run. What begins when it is over does not begin, and what runs then is ended. */
export class Budget {
  #endMs: number;

  constructor(seconds: number) {
    this.#endMs = performance.now() + seconds * 1000;
  }

  /** The time that is left for something that takes at most `seconds`; throws `BudgetOver` if there is none. */
  secondsFor(seconds: number): number {
    const left = (this.#endMs - performance.now()) / 1000;
    if (left <= 0) throw new BudgetOver();
    return Math.min(seconds, left);
  }

  /** Ends it before its time. */
  end(): void {
    this.#endMs = performance.now();
  }

  get isOver(): boolean {
    return performance.now() >= this.#endMs;
  }
}
