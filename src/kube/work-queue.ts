import type { Clock } from '../host/clock.js';
import type { KubeFailure, KubeFailureCode } from './failure.js';

/** What became of one attempt: done, its object is gone and with it the reason to write, or a failure. */
export type WorkResult = 'done' | 'gone' | KubeFailure;

export interface Work {
  /** One attempt; must not reject. */
  attempt(): Promise<WorkResult>;
  /** Told once when the work is over, however that came about. */
  ended?(): void;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  /** Work beyond this pushes the oldest out; without a limit, none is lost. */
  readonly capacity?: number;
  readonly concurrency?: number;
  /** False: work is tried until it is done, whatever the answers and however long that takes. */
  readonly givesUp?: boolean;
  readonly longestBackoffMs?: number;
  /** 0 to 1, for jitter. */
  readonly random?: () => number;
}

export interface WorkCounts {
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
const MAX_BACKOFF_MS = 60_000;
/** Answers of the server that one write takes before it is given up. */
const MAX_ATTEMPTS = 10;
/** An outage may last an hour; a write that is older than this is outdated. */
const GIVE_UP_MS = 2 * 3_600_000;

interface Job {
  readonly key: string;
  readonly work: Work;
  readonly since: number;
  attempts: number;
  /** Nobody wants it any more: what runs is not tried again. */
  isForgotten: boolean;
  dueAt: number;
  /** Ends the wait of one that is not due yet; null for one that is. */
  cancelWait: (() => void) | null;
}

/**
 * Work at the API server that nobody waits for. One at a time for each key, the latest replacing one that still waits;
 * repeated with growing, jittered pauses. Where the server has trouble everything waits, and one alone asks whether it
 * is over.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #capacity: number;
  readonly #concurrency: number;
  readonly #longestBackoffMs: number;
  readonly #random: () => number;
  /** Due, in the order in which they became so. */
  readonly #ready = new Map<string, Job>();
  /** Not due yet. */
  readonly #delayed = new Map<string, Job>();
  readonly #running = new Map<string, { readonly job: Job; readonly ended: Promise<void> }>();
  readonly #dropped = new Map<string, number>();
  readonly #failures = new Map<KubeFailureCode, number>();
  #done = 0;
  #troubles = 0;
  #pausedUntil = 0;
  #cancelPause: (() => void) | null = null;
  #stopped = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#capacity = options.capacity ?? Infinity;
    this.#concurrency = options.concurrency ?? 4;
    this.#longestBackoffMs = options.longestBackoffMs ?? MAX_BACKOFF_MS;
    this.#random = options.random ?? Math.random;
  }

  /**
   * Has work done after `delayMs`, or earlier where work of that key waits for less. It replaces what waits under the
   * key.
   */
  put(key: string, work: Work, delayMs = 0): void {
    if (this.#stopped) return;
    const replaced = this.#ready.get(key) ?? this.#delayed.get(key);
    const now = this.#options.clock.now();
    const job: Job = {
      key,
      work,
      since: now,
      attempts: 0,
      isForgotten: false,
      dueAt: now + delayMs,
      cancelWait: null,
    };
    if (replaced !== undefined && delayMs > 0 && replaced.dueAt <= job.dueAt) {
      // What was to come earlier still does, with the newer work.
      Object.assign(job, { dueAt: replaced.dueAt, cancelWait: replaced.cancelWait });
      (this.#ready.has(key) ? this.#ready : this.#delayed).set(key, job);
    } else {
      this.#remove(key);
      this.#wait(job, delayMs);
    }
    replaced?.work.ended?.();
    if (this.#ready.size + this.#delayed.size > this.#capacity) {
      const oldest = [...this.#ready.values(), ...this.#delayed.values()].reduce((a, b) => (b.since < a.since ? b : a));
      this.#remove(oldest.key);
      this.#drop(oldest, 'overflow');
    }
    this.#pump();
  }

  /** Forgets what waits under a key, and does not try again what runs. */
  forget(key: string): void {
    this.#remove(key)?.work.ended?.();
    const running = this.#running.get(key);
    if (running !== undefined) running.job.isForgotten = true;
  }

  get counts(): WorkCounts {
    return {
      waiting: this.#ready.size + this.#delayed.size + this.#running.size,
      done: this.#done,
      dropped: this.#dropped,
      failures: this.#failures,
    };
  }

  /** Starts no more writes and waits for running ones; waiting writes are dropped. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelPause?.();
    for (const { cancelWait } of this.#delayed.values()) cancelWait?.();
    this.#delayed.clear();
    this.#ready.clear();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  #remove(key: string): Job | null {
    const job = this.#ready.get(key) ?? this.#delayed.get(key) ?? null;
    job?.cancelWait?.();
    this.#ready.delete(key);
    this.#delayed.delete(key);
    return job;
  }

  #wait(job: Job, delayMs: number): void {
    if (delayMs <= 0) {
      this.#ready.set(job.key, job);
      return;
    }
    const { key } = job;
    job.dueAt = this.#options.clock.now() + delayMs;
    this.#delayed.set(key, job);
    job.cancelWait = this.#options.clock.after(delayMs, () => {
      // Newer work may have taken this place in time over.
      const due = this.#delayed.get(key);
      if (due === undefined) return;
      due.cancelWait = null;
      this.#delayed.delete(key);
      this.#ready.set(key, due);
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#stopped || this.#cancelPause !== null) return;
    const pausedMs = this.#pausedUntil - this.#options.clock.now();
    if (pausedMs > 0) {
      if (this.#ready.size === 0) return;
      this.#cancelPause = this.#options.clock.after(pausedMs, () => {
        this.#cancelPause = null;
        this.#pump();
      });
      return;
    }
    // After trouble one alone tries whether it is over.
    const most = this.#troubles > 0 ? 1 : this.#concurrency;
    for (const job of this.#ready.values()) {
      if (this.#running.size >= most) return;
      if (this.#running.has(job.key)) continue;
      this.#ready.delete(job.key);
      // Later: whatever the attempt does at once must find its key among those that run.
      this.#running.set(job.key, { job, ended: Promise.resolve().then(() => this.#run(job)) });
    }
  }

  async #run(job: Job): Promise<void> {
    const result = await job.work.attempt();
    this.#running.delete(job.key);
    this.#settle(job, result);
    this.#pump();
  }

  #settle(job: Job, result: WorkResult): void {
    if (result === 'done' || result === 'gone') {
      this.#troubles = 0;
      if (result === 'gone') return this.#drop(job, 'gone');
      this.#done += 1;
      job.work.ended?.();
      return;
    }
    const { clock, givesUp = true } = this.#options;
    const now = clock.now();
    this.#failures.set(result.code, (this.#failures.get(result.code) ?? 0) + 1);
    if (givesUp && result.code === 'invalid') return this.#drop(job, result.code, result.message);
    let delayMs = 0;
    if (SERVER_TROUBLE.has(result.code)) {
      this.#troubles += 1;
      this.#pausedUntil = now + this.#pause(this.#troubles, result.retryAfterMs);
    } else {
      this.#troubles = 0;
      job.attempts += 1;
      if (givesUp && job.attempts >= MAX_ATTEMPTS) return this.#drop(job, result.code, result.message);
      delayMs = this.#pause(job.attempts, result.retryAfterMs);
    }
    if (givesUp && now - job.since >= GIVE_UP_MS) return this.#drop(job, 'late', result.message);
    // Newer work of the same key has come meanwhile: this one is history.
    const isReplaced = this.#ready.has(job.key) || this.#delayed.has(job.key);
    if (isReplaced || job.isForgotten || this.#stopped) return void job.work.ended?.();
    this.#wait(job, delayMs);
  }

  #pause(failed: number, askedMs: number | null): number {
    const longestMs = this.#longestBackoffMs;
    const full = Math.min(longestMs, FIRST_BACKOFF_MS * 2 ** Math.min(failed - 1, 16));
    return Math.max(full * (0.5 + this.#random() / 2), Math.min(askedMs ?? 0, longestMs));
  }

  #drop(job: Job, why: string, reason?: string): void {
    this.#dropped.set(why, (this.#dropped.get(why) ?? 0) + 1);
    if (why !== 'gone') this.#options.log.warn({ work: job.key, why, reason }, 'work at the API server is given up');
    job.work.ended?.();
  }
}
