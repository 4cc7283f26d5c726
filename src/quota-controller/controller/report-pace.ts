interface Report {
  readonly at: number;
  /** Shortest time until the next report. */
  readonly spacingMs: number;
}

/**
 * When the status of each group is written: soon after a change, and less and less often while the group keeps
 * changing. A group that admits 25 workloads a second would otherwise write its status as often as it may.
 */
export class ReportPace {
  readonly #firstMs: number;
  readonly #longestMs: number;
  readonly #reports = new Map<string, Report>();

  /** `firstMs` after a single change; at most `longestMs` between reports of a group that keeps changing. */
  constructor(firstMs: number, longestMs: number) {
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
  }

  /** Milliseconds until the report of a change. */
  delayMs(group: string, now: number): number {
    const last = this.#reports.get(group);
    const due = last === undefined ? now : last.at + last.spacingMs;
    return Math.min(this.#longestMs, Math.max(this.#firstMs, due - now));
  }

  /** Records a written report. */
  reported(group: string, now: number): void {
    const last = this.#reports.get(group);
    const isSteady = last !== undefined && now - last.at < 2 * last.spacingMs;
    const spacingMs = isSteady ? Math.min(this.#longestMs, 2 * last.spacingMs) : this.#firstMs;
    this.#reports.set(group, { at: now, spacingMs });
  }

  /** Forgets a deleted group. */
  forget(group: string): void {
    this.#reports.delete(group);
  }
}
