import type { Log } from './log.js';

/** Something with a life. `stop` is only called after `start` has succeeded. */
export interface Part {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts parts in order and stops them in reverse. A part that fails to start leaves nothing half started: those before
 * it are stopped again and the failure is passed on. A part that does not stop in time is left behind, and said so.
 */
export class Lifecycle {
  readonly #parts: readonly Part[];
  readonly #log: Log;
  readonly #stopTimeoutMs: number;
  #started: Part[] = [];
  #stopped = false;

  /** `stopTimeoutMs` is for all parts together. */
  constructor(parts: readonly Part[], log: Log, stopTimeoutMs = 4_000) {
    this.#parts = parts;
    this.#log = log;
    this.#stopTimeoutMs = stopTimeoutMs;
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

  /** Never rejects: every part gets its chance to stop. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const parts = this.#started.reverse();
    this.#started = [];
    const end = performance.now() + this.#stopTimeoutMs;
    for (const part of parts) {
      try {
        if (!(await within(part.stop(), Math.max(0, end - performance.now()))))
          this.#log.error({ part: part.name }, 'a component did not stop in time');
      } catch (error) {
        this.#log.error({ err: error, part: part.name }, 'a component failed to stop');
      }
    }
  }
}

async function within(work: Promise<void>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
