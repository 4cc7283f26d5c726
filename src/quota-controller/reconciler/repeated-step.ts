import type { Clock } from '../../host/clock.js';
import { Pause } from '../../host/pause.js';

const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;

/** Repeats steps of the initial reconciliation, each until it succeeds. */
export class RepeatedStep {
  readonly #pause: Pause;
  readonly #failed: (error: unknown) => void;
  #stopped = false;

  constructor(clock: Clock, failed: (error: unknown) => void) {
    this.#pause = new Pause(clock);
    this.#failed = failed;
  }

  /** A step that runs is not repeated any more. */
  stop(): void {
    this.#stopped = true;
    this.#pause.end();
  }

  async untilSuccess(step: () => Promise<void>): Promise<void> {
    for (let attempt = 0; !this.#stopped; attempt++) {
      try {
        return await step();
      } catch (error) {
        this.#failed(error);
        await this.#pause.for(Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt) * (0.5 + Math.random() / 2));
      }
    }
  }
}
