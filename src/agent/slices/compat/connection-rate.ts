/** How many connections may arrive at once, and how many a second on average. */
export interface RateLimit {
  readonly burst: number;
  readonly perSecond: number;
  /**
   * How long connections are refused after the first excess; doubles with each further excess, up to the longest time.
   */
  readonly penaltyMs: number;
  readonly longestPenaltyMs: number;
}

/** Whether one more connection is accepted; if not, how long connections are refused. */
export type Admission = { readonly ok: true } | { readonly ok: false; readonly penaltyMs: number };

/** A token bucket of connections. Each excess causes a pause, which grows while the excess lasts. */
export class ConnectionRate {
  readonly #limit: RateLimit;
  #tokens: number;
  #refilledAt: number;
  #penaltyMs = 0;
  #penaltyEndsAt = 0;

  constructor(limit: RateLimit, now: number) {
    this.#limit = limit;
    this.#tokens = limit.burst;
    this.#refilledAt = now;
  }

  /** Counts a connection at `now` (milliseconds of any steady origin). */
  take(now: number): Admission {
    const { burst, perSecond, penaltyMs, longestPenaltyMs } = this.#limit;
    // A clock that was set back refills nothing and has no other effect.
    this.#tokens = Math.min(burst, this.#tokens + (Math.max(0, now - this.#refilledAt) * perSecond) / 1000);
    this.#refilledAt = now;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return { ok: true };
    }
    const again = now - this.#penaltyEndsAt < this.#penaltyMs + longestPenaltyMs;
    this.#penaltyMs = again && this.#penaltyMs > 0 ? Math.min(longestPenaltyMs, this.#penaltyMs * 2) : penaltyMs;
    this.#penaltyEndsAt = now + this.#penaltyMs;
    return { ok: false, penaltyMs: this.#penaltyMs };
  }
}
