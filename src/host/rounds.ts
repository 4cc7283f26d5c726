import type { Clock } from './clock.js';

/** Does something again and again, each time so long after the last one ended. */
export class Rounds {
  readonly #clock: Clock;
  readonly #everyMs: () => number;
  readonly #round: () => Promise<void>;
  #cancel: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  /** `round` must not reject; the time between two may differ. */
  constructor(clock: Clock, everyMs: number | (() => number), round: () => Promise<void>) {
    this.#clock = clock;
    this.#everyMs = typeof everyMs === 'number' ? () => everyMs : everyMs;
    this.#round = round;
  }

  /** The first round is one period away. */
  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#clock.after(this.#everyMs(), () => {
      this.#running = this.#round().then(() => this.start());
    });
  }

  /** Returns when no round is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#running;
  }
}
