import type { Clock } from './clock.js';

/** Receives the lines; a pino logger is one. */
export interface LimitedLogTarget {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface LogRate {
  /** Lines of one message per period. */
  readonly lines: number;
  readonly periodMs: number;
}

const RATE: LogRate = { lines: 5, periodMs: 60_000 };
/** Messages are constants of the program; if there are more than this, the rest is counted as one. */
const MAX_MESSAGES = 64;
const OTHERS = 'other messages';

interface Period {
  left: number;
  omitted: number;
}

/**
 * A log for messages that external callers cause: a few lines of each message per period, then one line with the number
 * of suppressed ones. Requests cannot fill a disk.
 */
export class LimitedLog implements LimitedLogTarget {
  readonly #target: LimitedLogTarget;
  readonly #clock: Clock;
  readonly #rate: LogRate;
  readonly #periods = new Map<string, Period>();

  constructor(target: LimitedLogTarget, clock: Clock, rate: LogRate = RATE) {
    this.#target = target;
    this.#clock = clock;
    this.#rate = rate;
  }

  warn(fields: object, message: string): void {
    if (this.#takes(message)) this.#target.warn(fields, message);
  }

  error(fields: object, message: string): void {
    if (this.#takes(message)) this.#target.error(fields, message);
  }

  #takes(message: string): boolean {
    const key = this.#periods.has(message) || this.#periods.size < MAX_MESSAGES ? message : OTHERS;
    const period = this.#periods.get(key) ?? this.#begin(key);
    if (period.left > 0) {
      period.left -= 1;
      return true;
    }
    period.omitted += 1;
    return false;
  }

  #begin(message: string): Period {
    const { lines, periodMs } = this.#rate;
    const period = { left: lines, omitted: 0 };
    this.#periods.set(message, period);
    this.#clock.after(periodMs, () => {
      this.#periods.delete(message);
      const { omitted } = period;
      if (omitted > 0)
        this.#target.warn({ message, omitted, periodMs }, 'further log lines with this message were suppressed');
    });
    return period;
  }
}
