import { systemClock, type Clock } from './clock.js';
import type { Log } from './log.js';
import { within } from './within.js';

/** A component that can be started and stopped. `stop` is called only after `start` has succeeded. */
export interface Part {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A part that works from the moment it is opened, and only has to be closed. */
export function closedAtStop(name: string, close: () => unknown): Part {
  return {
    name,
    start: async () => undefined,
    async stop() {
      await close();
    },
  };
}

/**
 * Starts parts in order and stops them in reverse. If a part fails to start, the parts before it are stopped and the
 * error is passed on. A part that does not stop in time is logged and abandoned.
 */
export class Lifecycle {
  readonly #parts: readonly Part[];
  readonly #log: Log;
  readonly #stopTimeoutMs: number;
  readonly #clock: Clock;
  #started: Part[] = [];
  #stopped = false;

  /** `stopTimeoutMs` applies to all parts together. */
  constructor(parts: readonly Part[], log: Log, stopTimeoutMs = 4_000, clock: Clock = systemClock) {
    this.#parts = parts;
    this.#log = log;
    this.#stopTimeoutMs = stopTimeoutMs;
    this.#clock = clock;
  }

  async start(): Promise<void> {
    for (const part of this.#parts) {
      const begun = performance.now();
      try {
        await part.start();
      } catch (error) {
        await this.stop();
        throw error;
      }
      this.#started.push(part);
      if (this.#stopped) {
        await this.stop();
        throw new Error('stopped while starting');
      }
      this.#log.debug({ part: part.name, ms: Math.round(performance.now() - begun) }, 'started');
    }
  }

  /** Never rejects: every part is stopped. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const parts = this.#started.reverse();
    this.#started = [];
    const end = this.#clock.now() + this.#stopTimeoutMs;
    for (const part of parts) {
      try {
        await within(part.stop(), Math.max(0, end - this.#clock.now()), this.#clock, () => new Late());
      } catch (error) {
        if (error instanceof Late) this.#log.error({ part: part.name }, 'a component did not stop in time');
        else this.#log.error({ err: error, part: part.name }, 'a component failed to stop');
      }
    }
  }
}

/** A part did not stop in time. */
class Late extends Error {}
