/** Does things one after the other for each key, many keys at once, again after a while where they failed, and only the latest of a key. */
export class WorkQueue {
  readonly #attempt: (key: string) => Promise<void>;
  readonly #failed: (key: string, error: unknown) => void;
  readonly #due = new Map<string, NodeJS.Timeout>();
  readonly #running = new Map<string, Promise<void>>();
  /** Asked for again while they ran. */
  readonly #again = new Set<string>();
  #stopped = false;

  constructor(attempt: (key: string) => Promise<void>, failed: (key: string, error: unknown) => void) {
    this.#attempt = attempt;
    this.#failed = failed;
  }

  get size(): number {
    return this.#due.size + this.#running.size;
  }

  /** Has `key` attended to after `delayMs`, or earlier where it was to be already. */
  put(key: string, delayMs: number): void {
    if (this.#stopped) return;
    if (this.#running.has(key)) {
      this.#again.add(key);
      return;
    }
    if (this.#due.has(key) && delayMs > 0) return;
    clearTimeout(this.#due.get(key));
    this.#due.set(key, setTimeout(() => this.#run(key), delayMs).unref());
  }

  /** Returns when nothing is under way; what waits is forgotten. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#due.values()) clearTimeout(timer);
    this.#due.clear();
    await Promise.all(this.#running.values());
  }

  #run(key: string): void {
    this.#due.delete(key);
    const done = this.#attempt(key)
      .then(
        () => 0,
        (error: unknown) => {
          this.#failed(key, error);
          return RETRY_MS;
        },
      )
      .then((retryMs) => {
        this.#running.delete(key);
        const again = this.#again.delete(key);
        if (retryMs > 0 || again) this.put(key, again ? 0 : retryMs);
      });
    this.#running.set(key, done);
  }
}

const RETRY_MS = 1000;
