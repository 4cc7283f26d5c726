import type { Clock } from './clock.js';

/** Waits once; `Pause` is a wait that can be ended. */
export function wait(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** A wait that can be ended early and permanently, so that stopping does not wait. */
export class Pause {
  readonly #clock: Clock;
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async for(ms: number): Promise<void> {
    if (this.#ended || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }
}
