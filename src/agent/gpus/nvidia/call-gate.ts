import type { Clock } from '../../../host/clock.js';
import { DriverError } from '../driver.js';

/** Target of calls that are not for a single GPU. */
export const DRIVER_TARGET = 'driver';

interface Waiting {
  readonly target: string;
  start(): void;
}

export interface CallGateOptions {
  readonly clock: Clock;
  /** Time from the request of a call to its answer. */
  readonly timeoutMs: number;
  /**
   * Number of concurrent calls. Each takes a thread of Node's pool of four for as long as the driver takes; file
   * operations need the others.
   */
  readonly limit: number;
}

/**
 * Runs library calls that may block forever: one at a time per target (a GPU, or the driver), in order, and few at once
 * in total. A call that exceeds its timeout rejects, and its target stays closed until the call returns: further
 * requests are refused at once, so that none waits for a dead GPU, and at most `limit` threads are lost.
 */
export class CallGate {
  readonly #options: CallGateOptions;
  readonly #running = new Set<string>();
  /** Targets with an overdue call, and the time since when it is overdue. */
  readonly #overdue = new Map<string, number>();
  #queue: readonly Waiting[] = [];

  constructor(options: CallGateOptions) {
    this.#options = options;
  }

  /** Targets with an overdue call that has not returned. */
  get hanging(): readonly string[] {
    return [...this.#overdue.keys()];
  }

  /** Runs `call` for `target`; rejects with a `timeout` if there is no answer in time, or none can be expected. */
  run<T>(target: string, call: () => Promise<T>): Promise<T> {
    const since = this.#overdue.get(target);
    if (since !== undefined) {
      const seconds = Math.round((this.#options.clock.now() - since) / 1000);
      return Promise.reject(
        new DriverError(
          'timeout',
          `${target} does not answer: the last call has not returned, overdue for ${seconds} s`,
        ),
      );
    }
    return new Promise<T>((resolve, reject) => {
      const waiting: Waiting = {
        target,
        start: () => {
          this.#running.add(target);
          call()
            .then(resolve, reject)
            .finally(() => this.#leave(target, cancel));
        },
      };
      const cancel = this.#options.clock.after(this.#options.timeoutMs, () => {
        if (this.#running.has(target) && !this.#queue.includes(waiting)) {
          this.#overdue.set(target, this.#options.clock.now());
          reject(new DriverError('timeout', `${target} does not answer within ${this.#options.timeoutMs} ms`));
          return;
        }
        this.#queue = this.#queue.filter((other) => other !== waiting);
        reject(this.#refusal(target));
      });
      this.#queue = [...this.#queue, waiting];
      this.#admit();
    });
  }

  /** Why a call was never made: its target has a running call, or no thread is free. */
  #refusal(target: string): DriverError {
    const within = `within ${this.#options.timeoutMs} ms`;
    if (this.#running.has(target)) return new DriverError('timeout', `${target} does not answer ${within}`);
    return new DriverError(
      'unreachable',
      `no call can be made ${within}: those to ${[...this.#running].join(' and ')} do not return`,
    );
  }

  #leave(target: string, cancel: () => void): void {
    cancel();
    this.#overdue.delete(target);
    this.#running.delete(target);
    this.#admit();
  }

  #admit(): void {
    while (this.#running.size < this.#options.limit) {
      const next = this.#queue.find((waiting) => !this.#running.has(waiting.target));
      if (next === undefined) return;
      this.#queue = this.#queue.filter((waiting) => waiting !== next);
      next.start();
    }
  }
}
