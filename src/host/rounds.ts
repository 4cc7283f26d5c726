import type { Clock } from './clock.js';

/** Runs an action periodically, each time a delay after the previous run has ended. */
export class Rounds {
  readonly #clock: Clock;
  readonly #everyMs: () => number;
  readonly #round: () => Promise<void>;
  #cancel: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  /** `round` must not reject; the delay may be computed for each run. */
  constructor(clock: Clock, everyMs: number | (() => number), round: () => Promise<void>) {
    this.#clock = clock;
    this.#everyMs = typeof everyMs === 'number' ? () => everyMs : everyMs;
    this.#round = round;
  }

  /** The first run is one period later. */
  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#clock.after(this.#everyMs(), () => {
      this.#running = this.#round().then(() => this.start());
    });
  }

  /** Resolves when no run is active. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#running;
  }
}
