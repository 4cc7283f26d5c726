import type { Clock } from '../../../host/clock.js';
import { DriverError } from '../driver.js';

/** The lane of calls that are about no single GPU. */
export const SYSTEM_LANE = 'driver';

interface Waiting {
  readonly lane: string;
  start(): void;
}

export interface CallGateOptions {
  readonly clock: Clock;
  /** From the moment a call is asked for to its answer. */
  readonly timeoutMs: number;
  /**
   * Calls at once. Each takes a thread of Node's pool of four, for as long as the driver likes: files need the others.
   */
  readonly limit: number;
}

/**
 * Runs calls of a library that may block forever: one at a time per lane (a GPU, or the driver), in order, and few at
 * once in all. A call that exceeds its timeout rejects, and its lane stays closed until the call returns: requests in
 * the meantime are refused at once, so that no request waits for a dead GPU, and at most `limit` threads can be lost.
 */
export class CallGate {
  readonly #options: CallGateOptions;
  readonly #running = new Set<string>();
  /** Lanes with an overdue call, and since when. */
  readonly #overdue = new Map<string, number>();
  #queue: readonly Waiting[] = [];

  constructor(options: CallGateOptions) {
    this.#options = options;
  }

  /** Lanes with a call that is overdue and has not returned. */
  get hanging(): readonly string[] {
    return [...this.#overdue.keys()];
  }

  /** Runs `call` in `lane`; rejects with a `timeout` when there is no answer in time, or none can be expected. */
  run<T>(lane: string, call: () => Promise<T>): Promise<T> {
    const since = this.#overdue.get(lane);
    if (since !== undefined) {
      const seconds = Math.round((this.#options.clock.now() - since) / 1000);
      return Promise.reject(
        new DriverError('timeout', `${lane} does not answer: the last call has not returned, overdue for ${seconds} s`),
      );
    }
    return new Promise<T>((resolve, reject) => {
      const waiting: Waiting = {
        lane,
        start: () => {
          this.#running.add(lane);
          call()
            .then(resolve, reject)
            .finally(() => this.#leave(lane, cancel));
        },
      };
      const cancel = this.#options.clock.after(this.#options.timeoutMs, () => {
        if (this.#running.has(lane) && !this.#queue.includes(waiting)) {
          this.#overdue.set(lane, this.#options.clock.now());
          reject(new DriverError('timeout', `${lane} does not answer within ${this.#options.timeoutMs} ms`));
          return;
        }
        this.#queue = this.#queue.filter((other) => other !== waiting);
        reject(this.#crowded(lane));
      });
      this.#queue = [...this.#queue, waiting];
      this.#admit();
    });
  }

  /** Why a call was never made: its own lane is taken, or every thread is. */
  #crowded(lane: string): DriverError {
    const within = `within ${this.#options.timeoutMs} ms`;
    if (this.#running.has(lane)) return new DriverError('timeout', `${lane} does not answer ${within}`);
    return new DriverError(
      'unreachable',
      `no call can be made ${within}: those to ${[...this.#running].join(' and ')} do not return`,
    );
  }

  #leave(lane: string, cancel: () => void): void {
    cancel();
    this.#overdue.delete(lane);
    this.#running.delete(lane);
    this.#admit();
  }

  #admit(): void {
    while (this.#running.size < this.#options.limit) {
      const next = this.#queue.find((waiting) => !this.#running.has(waiting.lane));
      if (next === undefined) return;
      this.#queue = this.#queue.filter((waiting) => waiting !== next);
      next.start();
    }
  }
}
