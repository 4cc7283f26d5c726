/** Items that run together while no other batch has their keys. */
export interface KeyedBatch<T> {
  /** In the order of arrival. */
  readonly items: readonly T[];
  readonly keys: ReadonlySet<string>;
}

interface Waiting<T> {
  readonly item: T;
  readonly keys: ReadonlySet<string>;
  /** Position in the order of arrival. */
  readonly turn: number;
}

interface Running<T> extends KeyedBatch<T> {
  readonly keys: Set<string>;
  readonly turns: ReadonlyMap<T, Waiting<T>>;
}

/** A batch that is about to start. */
interface Draft<T> {
  readonly waiting: Waiting<T>[];
  readonly keys: string[];
}

/** Maximum number of items per batch. */
const MAX_ITEMS = 256;

/**
 * Runs work on different keys concurrently, and work on the same key in the order of arrival. Items that wait for
 * common keys, directly or through other items, run together as one batch.
 *
 * A batch has all its keys before it starts and never waits for another batch, so that deadlocks are impossible. A
 * waiting item reserves its keys against later items, so that work on many keys is not starved by a stream of work on
 * one of them.
 */
export class KeyedScheduler<T> {
  readonly #run: (batch: KeyedBatch<T>) => Promise<void>;
  readonly #held = new Map<string, Running<T>>();
  readonly #whenIdle: (() => void)[] = [];
  #waiting: Waiting<T>[] = [];
  #turn = 0;
  #running = 0;
  #isDue = false;

  /** `run` must not reject. */
  constructor(run: (batch: KeyedBatch<T>) => Promise<void>) {
    this.#run = run;
  }

  /** Adds an item, which runs when its keys are free. */
  add(item: T, keys: ReadonlySet<string>): void {
    this.#waiting.push({ item, keys, turn: this.#turn++ });
    for (const key of keys) if (this.#held.has(key)) return;
    this.#soon();
  }

  /** Adds keys to a running batch; false, without any effect, if another batch has one of them. */
  extend(batch: KeyedBatch<T>, keys: Iterable<string>): boolean {
    const more = [...keys].filter((key) => !batch.keys.has(key));
    if (more.some((key) => this.#held.has(key))) return false;
    const running = batch as Running<T>;
    for (const key of more) {
      running.keys.add(key);
      this.#held.set(key, running);
    }
    return true;
  }

  /** Requeues items of a batch at their old positions, to run when these keys are free as well. */
  requeue(batch: KeyedBatch<T>, items: readonly T[], more: Iterable<string>): void {
    const { turns } = batch as Running<T>;
    const wider = items
      .flatMap((item) => turns.get(item) ?? [])
      .map(({ item, keys, turn }) => ({ item, turn, keys: new Set([...keys, ...more]) }));
    this.#waiting = [...wider, ...this.#waiting].sort((a, b) => a.turn - b.turn);
    this.#soon();
  }

  /** Resolves when no item waits or runs. */
  async idle(): Promise<void> {
    while (this.#running > 0 || this.#waiting.length > 0)
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  /** Starts in the next microtask, so that items added together run together. */
  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.#begin();
    });
  }

  #begin(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const taken = new Set<string>();
    const drafts = new Map<string, Draft<T>>();
    const nameless: Draft<T>[] = [];
    for (const next of waiting) {
      if (next.keys.size === 0) {
        // An item without keys conflicts with no other item.
        nameless.push({ waiting: [next], keys: [] });
        continue;
      }
      const joined = this.#joinable(next, taken, drafts);
      if (joined === null) {
        for (const key of next.keys) taken.add(key);
        this.#waiting.push(next);
        continue;
      }
      const [home = { waiting: [], keys: [] }, ...others] = joined;
      for (const { waiting: more, keys } of [...others, { waiting: [next], keys: [...next.keys] }]) {
        home.waiting.push(...more);
        home.keys.push(...keys);
        for (const key of keys) drafts.set(key, home);
      }
    }
    // All batches have their keys before the first one starts, because it may extend its keys.
    for (const batch of [...new Set(drafts.values()), ...nameless].map((draft) => this.#open(draft)))
      this.#start(batch);
  }

  /** Drafts with keys in common with `next`; null if `next` must wait. */
  #joinable(
    { keys }: Waiting<T>,
    taken: ReadonlySet<string>,
    drafts: ReadonlyMap<string, Draft<T>>,
  ): readonly Draft<T>[] | null {
    const joined = new Set<Draft<T>>();
    for (const key of keys) {
      if (taken.has(key) || this.#held.has(key)) return null;
      const draft = drafts.get(key);
      if (draft !== undefined) joined.add(draft);
    }
    const count = [...joined].reduce((sum, { waiting }) => sum + waiting.length, 0);
    return count > 0 && count >= MAX_ITEMS ? null : [...joined];
  }

  #open({ waiting, keys }: Draft<T>): Running<T> {
    waiting.sort((a, b) => a.turn - b.turn);
    const batch: Running<T> = {
      items: waiting.map(({ item }) => item),
      keys: new Set(keys),
      turns: new Map(waiting.map((each) => [each.item, each])),
    };
    for (const key of keys) this.#held.set(key, batch);
    this.#running++;
    return batch;
  }

  #start(batch: Running<T>): void {
    void this.#run(batch).finally(() => {
      this.#running--;
      for (const key of batch.keys) this.#held.delete(key);
      if (this.#waiting.length > 0) this.#soon();
      else if (this.#running === 0) for (const tell of this.#whenIdle.splice(0)) tell();
    });
  }
}
