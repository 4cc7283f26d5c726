import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../host/clock.js';
import { Turn } from '../host/turn.js';
import type { KubeFailure, KubeFailureCode } from './failure.js';

/** Result of one attempt: done, object deleted (so that nothing remains to write), or a failure. */
export type WorkResult = 'done' | 'gone' | KubeFailure;

export interface Work {
  /** One attempt; must not reject. */
  attempt(): Promise<WorkResult>;
  /** Called once when the work has ended, with any result. */
  ended?(): void;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  /** Beyond this, the oldest work is dropped; without a limit, none is. */
  readonly capacity?: number;
  readonly concurrency?: number;
  /** False: work is retried until it is done, after any answer and without a time limit. */
  readonly givesUp?: boolean;
  readonly longestBackoffMs?: number;
  /** 0 to 1, for jitter. */
  readonly random?: () => number;
}

export interface WorkCounts {
  readonly waiting: number;
  readonly done: number;
  /** Number of dropped works by reason: a failure code, or `gone`, `late`, `overflow`. */
  readonly dropped: ReadonlyMap<string, number>;
  /** Number of failed attempts, by code; most succeed later. */
  readonly failures: ReadonlyMap<KubeFailureCode, number>;
}

/** Failures of the server itself, for which all work waits. */
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
/** Number of answered attempts after which a write is dropped. */
const MAX_ATTEMPTS = 10;
/** An outage may last an hour; an older write is outdated. */
const GIVE_UP_MS = 2 * 3_600_000;

interface Job {
  readonly key: string;
  readonly work: Work;
  readonly since: number;
  attempts: number;
  /** Whether its key was forgotten: a running attempt is not retried. */
  isForgotten: boolean;
  dueAt: number;
  /** Cancels the timer of work that is not due yet; null if it is due. */
  cancelWait: (() => void) | null;
}

/**
 * Background writes to the API server. One at a time for each key, the latest replacing a waiting one; retried with
 * growing, jittered delays. While the server has errors everything waits, and a single write tests whether they are
 * over.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #capacity: number;
  readonly #concurrency: number;
  readonly #longestBackoffMs: number;
  readonly #random: () => number;
  /** Due work, in the order in which it became due. */
  readonly #ready = new Map<string, Job>();
  /** Work that is not due yet. */
  readonly #delayed = new Map<string, Job>();
  readonly #running = new Map<string, { readonly job: Job; readonly ended: Promise<void> }>();
  readonly #dropped = new Map<string, number>();
  readonly #failures = new Map<KubeFailureCode, number>();
  #done = 0;
  #troubles = 0;
  #pausedUntil = 0;
  #cancelPause: (() => void) | null = null;
  #stopped = false;
  readonly #turn = new Turn();
  /** Whether the start of due work waits for the next turn of the event loop. */
  #yields = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#capacity = options.capacity ?? Infinity;
    this.#concurrency = options.concurrency ?? 4;
    this.#longestBackoffMs = options.longestBackoffMs ?? MAX_BACKOFF_MS;
    this.#random = options.random ?? Math.random;
  }

  /** Queues work after `delayMs`, or at the earlier time of waiting work with that key, which it replaces. */
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
      // The earlier time stays, with the newer work.
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

  /** Drops the waiting work of a key, and does not retry a running one. */
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
      // Newer work may have replaced it meanwhile.
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
    if (this.#yields || this.#ready.size === 0) return;
    if (this.#turn.isOver()) {
      this.#yields = true;
      void nextTurn().then(() => {
        this.#yields = false;
        this.#pump();
      });
      return;
    }
    // After server errors, a single write tests whether they are over.
    const most = this.#troubles > 0 ? 1 : this.#concurrency;
    for (const job of this.#ready.values()) {
      if (this.#running.size >= most) return;
      if (this.#running.has(job.key)) continue;
      this.#ready.delete(job.key);
      // Starts asynchronously: the attempt must find its key among the running ones.
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
    // Newer work of the same key has arrived, so this one is not retried.
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
    if (why !== 'gone') this.#options.log.warn({ work: job.key, why, reason }, 'a write to the API server is dropped');
    job.work.ended?.();
  }
}
