import type { Clock } from './clock.js';

/**
 * Runs an action periodically, one run at a time: with a fixed period at the common times of `Clock.every`, without a
 * run that is due during another one; with computed delays, each run a delay after the previous one has ended.
 */
export class Rounds {
  readonly #clock: Clock;
  readonly #everyMs: number | (() => number);
  readonly #round: () => Promise<void>;
  #cancel: () => void = () => undefined;
  /** Null between two runs. */
  #running: Promise<void> | null = null;
  /** Another run was asked for during the active one. */
  #again = false;
  #stopped = false;

  /** `round` must not reject. */
  constructor(clock: Clock, everyMs: number | (() => number), round: () => Promise<void>) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#round = round;
  }

  /** The first run is at least one period later. */
  start(): void {
    if (this.#stopped) return;
    const everyMs = this.#everyMs;
    this.#cancel =
      typeof everyMs === 'number'
        ? this.#clock.every(everyMs, () => void this.#run())
        : this.#clock.after(everyMs(), () => void this.#run().then(() => this.start()));
  }

  /** Begins a run at once; if one is active, right after it. */
  now(): void {
    if (this.#stopped) return;
    if (this.#running === null) void this.#run();
    else this.#again = true;
  }

  /** Resolves when no run is active. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#running;
  }

  #run(): Promise<void> {
    this.#running ??= this.#runs().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #runs(): Promise<void> {
    do {
      this.#again = false;
      await this.#round();
    } while (this.#again && !this.#stopped);
  }
}
