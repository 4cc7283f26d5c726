/** How many connections may come at once, and how many a second for long. */
export interface RateLimit {
  readonly burst: number;
  readonly perSecond: number;
  /** How long connections are refused after the first excess; doubles with each further excess, up to the longest. */
  readonly penaltyMs: number;
  readonly longestPenaltyMs: number;
}

/** Whether one more connection is taken; else for how long none is. */
export type Admission = { readonly ok: true } | { readonly ok: false; readonly penaltyMs: number };

/** A bucket of tokens, one for each connection. Excess costs a pause that grows while the excess goes on. */
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

  /** One connection came at `now` (milliseconds of any steady origin). */
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
