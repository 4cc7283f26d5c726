import type { Clock } from '../host/clock.js';
import { failure, KubeError } from './failure.js';
import { WorkQueue, type WorkQueueOptions, type WorkResult } from './work-queue.js';

export interface ReconcileQueueOptions {
  /** Reconciles the object of this key. If it throws, it is called again after growing delays without limit. */
  readonly reconcile: (key: string) => Promise<void>;
  /** Called for each failure. */
  readonly failed: (key: string, error: unknown) => void;
  readonly clock: Clock;
  readonly log: WorkQueueOptions['log'];
  /** 0 to 1, for jitter. */
  readonly random?: () => number;
}

/** Longest delay between two attempts for a key that fails. */
const MAX_BACKOFF_MS = 30_000;

/** Number of keys that are reconciled concurrently: each mostly waits for the API server or the disk. */
const CONCURRENCY = 256;

/** Reconciles by key: one run at a time per key, many keys concurrently, with retries. */
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
      random,
    });
  }

  /** Number of keys that wait or run. */
  get size(): number {
    return this.#queue.counts.waiting;
  }

  /** Reconciles `key` after `delayMs`, or earlier if it was scheduled earlier. */
  put(key: string, delayMs: number): void {
    this.#queue.put(key, { attempt: () => this.#attempt(key) }, delayMs);
  }

  /** Resolves when no run is active; waiting keys are dropped. */
  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #attempt(key: string): Promise<WorkResult> {
    try {
      await this.#options.reconcile(key);
      return 'done';
    } catch (error) {
      this.#options.failed(key, error);
      // Errors of the API server delay all keys; any other error only this key.
      return failure(error instanceof KubeError ? error.code : 'conflict', (error as Error).message);
    }
  }
}
