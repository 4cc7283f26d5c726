import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import type { KubeFailure, KubeFailureCode } from './failure.js';

/** What became of one attempt: done, its object is gone and with it the reason to write, or a failure. */
export type WriteResult = 'done' | 'gone' | KubeFailure;

export interface Write {
  /** One attempt; must not reject. */
  attempt(): Promise<WriteResult>;
  /** Told once when the write is over, however that came about. */
  ended?(): void;
}

export interface WriteQueueOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Writes beyond this push the oldest out. */
  readonly capacity?: number;
  readonly concurrency?: number;
  /** 0 to 1, for jitter. */
  readonly random?: () => number;
}

export interface WriteCounts {
  readonly waiting: number;
  readonly done: number;
  /** Given up, by why: a failure code, or `gone`, `late`, `overflow`. */
  readonly dropped: ReadonlyMap<string, number>;
  /** Attempts that failed, by code; most of them succeed later. */
  readonly failures: ReadonlyMap<KubeFailureCode, number>;
}

/** These say that the server has trouble, whatever is written: everything waits. */
const SERVER_TROUBLE: ReadonlySet<KubeFailureCode> = new Set<KubeFailureCode>([
  'unreachable',
  'timeout',
  'too-many-requests',
  'too-new',
  'unauthorized',
  'malformed',
]);

const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 60_000;
/** Answers of the server that one write takes before it is given up. */
const MOST_ATTEMPTS = 10;
/** An outage may last an hour; a write that is older than this is outdated. */
const GIVE_UP_MS = 2 * 3_600_000;

interface Job {
  readonly key: string;
  readonly write: Write;
  readonly since: number;
  attempts: number;
  notBefore: number;
}

/**
 * Background writes to the API server. One at a time per key, a newer write replaces a waiting one; retried with
 * growing delays, bounded in number, attempts and age.
 */
export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #capacity: number;
  readonly #concurrency: number;
  readonly #random: () => number;
  readonly #waiting = new Map<string, Job>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #dropped = new Map<string, number>();
  readonly #failures = new Map<KubeFailureCode, number>();
  #done = 0;
  #troubles = 0;
  #pausedUntil = 0;
  #cancelTimer: () => void = () => undefined;
  #stopped = false;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
    this.#capacity = options.capacity ?? 1_024;
    this.#concurrency = options.concurrency ?? 4;
    this.#random = options.random ?? Math.random;
  }

  put(key: string, write: Write): void {
    if (this.#stopped) return;
    const replaced = this.#waiting.get(key);
    this.#waiting.delete(key);
    replaced?.write.ended?.();
    const now = this.#options.clock.now();
    this.#waiting.set(key, { key, write, since: now, attempts: 0, notBefore: 0 });
    if (this.#waiting.size > this.#capacity) {
      const [oldest] = this.#waiting.values();
      if (oldest !== undefined) {
        this.#waiting.delete(oldest.key);
        this.#drop(oldest, 'overflow');
      }
    }
    this.#pump();
  }

  get counts(): WriteCounts {
    return {
      waiting: this.#waiting.size + this.#running.size,
      done: this.#done,
      dropped: this.#dropped,
      failures: this.#failures,
    };
  }

  /** Starts no more writes and waits for running ones; waiting writes are dropped. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    this.#waiting.clear();
    await Promise.all(this.#running.values());
  }

  #pump(): void {
    this.#cancelTimer();
    if (this.#stopped) return;
    const now = this.#options.clock.now();
    // After trouble one write alone tries whether it is over.
    const most = this.#troubles > 0 ? 1 : this.#concurrency;
    let earliest = Infinity;
    for (const job of this.#waiting.values()) {
      if (this.#running.size >= most) return;
      if (this.#running.has(job.key)) continue;
      const due = Math.max(job.notBefore, this.#pausedUntil);
      if (due > now) {
        earliest = Math.min(earliest, due);
        continue;
      }
      this.#waiting.delete(job.key);
      // Later: whatever the attempt does at once must find its key among those that run.
      this.#running.set(
        job.key,
        Promise.resolve().then(() => this.#run(job)),
      );
    }
    if (earliest < Infinity) this.#cancelTimer = this.#options.clock.after(earliest - now, () => this.#pump());
  }

  async #run(job: Job): Promise<void> {
    const result = await job.write.attempt();
    this.#running.delete(job.key);
    this.#settle(job, result);
    this.#pump();
  }

  #settle(job: Job, result: WriteResult): void {
    if (result === 'done' || result === 'gone') {
      this.#troubles = 0;
      if (result === 'gone') return this.#drop(job, 'gone');
      this.#done += 1;
      job.write.ended?.();
      return;
    }
    const { clock } = this.#options;
    const now = clock.now();
    this.#failures.set(result.code, (this.#failures.get(result.code) ?? 0) + 1);
    if (result.code === 'invalid') return this.#drop(job, result.code, result.message);
    if (SERVER_TROUBLE.has(result.code)) {
      this.#troubles += 1;
      this.#pausedUntil = now + this.#pause(this.#troubles, result.retryAfterMs);
    } else {
      this.#troubles = 0;
      job.attempts += 1;
      if (job.attempts >= MOST_ATTEMPTS) return this.#drop(job, result.code, result.message);
      job.notBefore = now + this.#pause(job.attempts, result.retryAfterMs);
    }
    if (now - job.since >= GIVE_UP_MS) return this.#drop(job, 'late', result.message);
    // A newer write of the same key has come meanwhile: this one is history.
    if (this.#waiting.has(job.key)) return void job.write.ended?.();
    if (!this.#stopped) this.#waiting.set(job.key, job);
  }

  #pause(failed: number, askedMs: number | null): number {
    const full = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failed - 1, 16));
    return Math.max(full * (0.5 + this.#random() / 2), Math.min(askedMs ?? 0, LONGEST_BACKOFF_MS));
  }

  #drop(job: Job, why: string, reason?: string): void {
    this.#dropped.set(why, (this.#dropped.get(why) ?? 0) + 1);
    if (why !== 'gone')
      this.#options.log.warn(
        { write: job.key, why, reason },
        'a write to the API server was abandoned after its last retry',
      );
    job.write.ended?.();
  }
}
