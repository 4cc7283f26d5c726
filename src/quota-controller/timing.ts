/** Time from outside. Cancelled by what `after` returns. */
export interface Timing {
  /** Milliseconds since 1970. */
  now(): number;
  after(delayMs: number, action: () => void): () => void;
}

/** The machine's, which does not keep the process alive. */
export const systemTiming: Timing = {
  now: () => Date.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

/** Does something again and again, each time so long after the last one ended. */
export class Rounds {
  readonly #timing: Timing;
  readonly #everyMs: number;
  readonly #round: () => Promise<void>;
  #cancel: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  /** `round` must not reject. */
  constructor(timing: Timing, everyMs: number, round: () => Promise<void>) {
    this.#timing = timing;
    this.#everyMs = everyMs;
    this.#round = round;
  }

  /** The first round is one period away. */
  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#timing.after(this.#everyMs, () => {
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
