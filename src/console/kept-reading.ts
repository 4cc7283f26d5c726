import type { Clock } from '../host/clock.js';

/**
 * A reading of the cluster that serves all readers until a time after its end, and is dropped then: it may be large.
 */
export class KeptReading<T> {
  readonly #read: () => Promise<T>;
  readonly #clock: Clock;
  readonly #keepMs: number;
  #kept: Promise<T> | null = null;

  constructor(read: () => Promise<T>, clock: Clock, keepMs: number) {
    this.#read = read;
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  /** Rejects as the reading does; a failure is not kept. */
  read(): Promise<T> {
    if (this.#kept !== null) return this.#kept;
    const reading = this.#read();
    const drop = (): void => {
      if (this.#kept === reading) this.#kept = null;
    };
    this.#kept = reading;
    reading.then(() => void this.#clock.after(this.#keepMs, drop), drop);
    return reading;
  }
}
