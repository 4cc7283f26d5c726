import type { Clock } from '../../host/clock.js';

export interface PaceLimit {
  readonly burst: number;
  readonly perSecond: number;
}

/**
 * A registration asks the runtime and writes files: of all containers together so many at once, and so many a second
 * for long. Whoever comes next waits for its turn instead of being refused. A slice waits with one registration at a
 * time, so the turns go round among slices.
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

  /** Resolves when it is this caller's turn. */
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

/** What registrations of all containers may cost: some milliseconds each, so a few hundredths of a core. */
export const REGISTRATION_PACE: PaceLimit = { burst: 128, perSecond: 16 };
