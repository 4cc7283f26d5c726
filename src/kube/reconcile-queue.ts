import type { Clock } from '../host/clock.js';
import { failure, KubeError } from './failure.js';
import { WorkQueue, type WorkQueueOptions, type WorkResult } from './work-queue.js';

export interface ReconcileQueueOptions {
  /**
   * Brings what is known by this key in line. Where it throws it is called again, after growing pauses, for as long as
   * it takes.
   */
  readonly reconcile: (key: string) => Promise<void>;
  /** Told of each failure. */
  readonly failed: (key: string, error: unknown) => void;
  readonly clock: Clock;
  readonly log: WorkQueueOptions['log'];
  /** 0 to 1, for jitter. */
  readonly random?: () => number;
}

/** An item that was not reconciled for this long is reconciled without an event: the watch may have lost one. */
const MAX_BACKOFF_MS = 30_000;

/** So many keys are reconciled at once: each waits for the API server or the disk most of the time. */
const CONCURRENCY = 256;

/** Reconciles by key: one at a time for each, many keys at once, and again where it failed. */
export class ReconcileQueue {
  readonly #options: ReconcileQueueOptions;
  readonly #queue: WorkQueue;

  constructor(options: ReconcileQueueOptions) {
    this.#options = options;
    const { clock, log, random } = options;
    this.#queue = new WorkQueue({
      clock,
      log,
      concurrency: CONCURRENCY,
      givesUp: false,
      longestBackoffMs: MAX_BACKOFF_MS,
      ...(random === undefined ? {} : { random }),
    });
  }

  /** Keys that are not in line yet, as far as is known. */
  get size(): number {
    return this.#queue.counts.waiting;
  }

  /** Has `key` reconciled after `delayMs`, or earlier where it was to be already. */
  put(key: string, delayMs: number): void {
    this.#queue.put(key, { attempt: () => this.#attempt(key) }, delayMs);
  }

  /** Returns when nothing is under way; what waits is forgotten. */
  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #attempt(key: string): Promise<WorkResult> {
    try {
      await this.#options.reconcile(key);
      return 'done';
    } catch (error) {
      this.#options.failed(key, error);
      // The API server's troubles are everybody's; anything else is this key's own.
      return failure(error instanceof KubeError ? error.code : 'conflict', (error as Error).message);
    }
  }
}
