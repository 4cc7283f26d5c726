/** Work on some names that nobody else works on meanwhile. */
export interface KeyedBatch<T> {
  /** In the order in which they came. */
  readonly items: readonly T[];
  readonly keys: ReadonlySet<string>;
}

interface Waiting<T> {
  readonly item: T;
  readonly keys: ReadonlySet<string>;
  /** Place in the order of all that ever came. */
  readonly turn: number;
}

interface Running<T> extends KeyedBatch<T> {
  readonly keys: Set<string>;
  readonly turns: ReadonlyMap<T, Waiting<T>>;
}

/** A batch that is about to begin. */
interface Draft<T> {
  readonly waiting: Waiting<T>[];
  readonly keys: string[];
}

/** Items of one batch at most. */
const MOST_ITEMS = 256;

/**
 * Lets work on different names go on at the same time and work on the same name one after the other, in the order in
 * which it came. What waits for the same names, directly or through others, is done together: one batch.
 *
 * A batch has all its names before it begins and never waits for another one, so that none waits for each other. What
 * waits keeps its names from all that came later: work on many names is not kept waiting by a stream of work on one of
 * them.
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

  /** Has an item done when its names are free. */
  add(item: T, keys: ReadonlySet<string>): void {
    this.#waiting.push({ item, keys, turn: this.#turn++ });
    for (const key of keys) if (this.#held.has(key)) return;
    this.#soon();
  }

  /** Gives a batch that runs more names. False where somebody else has one of them: nothing is taken then. */
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

  /** Has items of a batch that is about to end done again, in their old turn, when these names are free as well. */
  again(batch: KeyedBatch<T>, items: readonly T[], more: Iterable<string>): void {
    const { turns } = batch as Running<T>;
    const wider = items
      .flatMap((item) => turns.get(item) ?? [])
      .map(({ item, keys, turn }) => ({ item, turn, keys: new Set([...keys, ...more]) }));
    this.#waiting = [...wider, ...this.#waiting].sort((a, b) => a.turn - b.turn);
    this.#soon();
  }

  /** Returns when nothing waits or runs. */
  async idle(): Promise<void> {
    while (this.#running > 0 || this.#waiting.length > 0)
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  /** In the next microtask, so that what comes together is done together. */
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
        // Who names nothing hinders nobody.
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
    // All have their names before the first begins: it may take more.
    for (const batch of [...new Set(drafts.values()), ...nameless].map((draft) => this.#open(draft)))
      this.#start(batch);
  }

  /** What is about to begin and has names in common with `next`; null where `next` has to wait. */
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
    return count > 0 && count >= MOST_ITEMS ? null : [...joined];
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
