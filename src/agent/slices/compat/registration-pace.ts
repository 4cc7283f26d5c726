import type { Clock } from '../../../host/clock.js';

export interface PaceLimit {
  readonly burst: number;
  readonly perSecond: number;
}

/**
 * Limits the rate of registrations of all containers together, because each registration queries the runtime and writes
 * files. A caller beyond the rate waits instead of being refused. Each slice waits with one registration at a time, so
 * slices take turns.
 */
export class RegistrationPace {
  readonly #clock: Clock;
  readonly #limit: PaceLimit;
  readonly #waiting: (() => void)[] = [];
  #tokens: number;
  #refilledAt: number;
  #armed = false;

  constructor(clock: Clock, limit: PaceLimit) {
    this.#clock = clock;
    this.#limit = limit;
    this.#tokens = limit.burst;
    this.#refilledAt = clock.now();
  }

  /** Resolves when the caller may register. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#serve();
    });
  }

  #serve(): void {
    const { burst, perSecond } = this.#limit;
    const now = this.#clock.now();
    this.#tokens = Math.min(burst, this.#tokens + (Math.max(0, now - this.#refilledAt) * perSecond) / 1_000);
    this.#refilledAt = now;
    while (this.#tokens >= 1) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#tokens -= 1;
      next();
    }
    if (this.#waiting.length === 0 || this.#armed) return;
    this.#armed = true;
    this.#clock.after(Math.ceil((1_000 * (1 - this.#tokens)) / perSecond), () => {
      this.#armed = false;
      this.#serve();
    });
  }
}

/** Rate of registrations of all containers: each costs some milliseconds, so this is a few hundredths of a CPU core. */
export const REGISTRATION_PACE: PaceLimit = { burst: 128, perSecond: 16 };
