/** Work on some names that nobody else works on meanwhile. */
export interface Lane<T> {
  /** In the order in which they came. */
  readonly items: readonly T[];
  readonly names: ReadonlySet<string>;
}

interface Waiting<T> {
  readonly item: T;
  readonly names: ReadonlySet<string>;
  /** Place in the order of all that ever came. */
  readonly turn: number;
}

interface Running<T> extends Lane<T> {
  readonly names: Set<string>;
  readonly turns: ReadonlyMap<T, Waiting<T>>;
}

/** A lane that is about to begin. */
interface Draft<T> {
  readonly waiting: Waiting<T>[];
  readonly names: string[];
}

/** Items of one lane at most. */
const MOST_ITEMS = 256;

/**
 * Lets work on different names go on at the same time and work on the same name one after the other, in the order in which it came. What
 * waits for the same names, directly or through others, is done together: one lane.
 *
 * A lane has all its names before it begins and never waits for another one, so that none waits for each other. What waits keeps its names
 * from all that came later: work on many names is not kept waiting by a stream of work on one of them.
 */
export class Lanes<T> {
  readonly #run: (lane: Lane<T>) => Promise<void>;
  readonly #held = new Map<string, Running<T>>();
  readonly #whenIdle: (() => void)[] = [];
  #waiting: Waiting<T>[] = [];
  #turn = 0;
  #running = 0;
  #isDue = false;

  /** `run` must not reject. */
  constructor(run: (lane: Lane<T>) => Promise<void>) {
    this.#run = run;
  }

  /** Has an item done when its names are free. */
  add(item: T, names: ReadonlySet<string>): void {
    this.#waiting.push({ item, names, turn: this.#turn++ });
    for (const name of names) if (this.#held.has(name)) return;
    this.#soon();
  }

  /** Gives a lane that runs more names. False where somebody else has one of them: nothing is taken then. */
  extend(lane: Lane<T>, names: Iterable<string>): boolean {
    const more = [...names].filter((name) => !lane.names.has(name));
    if (more.some((name) => this.#held.has(name))) return false;
    const running = lane as Running<T>;
    for (const name of more) {
      running.names.add(name);
      this.#held.set(name, running);
    }
    return true;
  }

  /** Has items of a lane that is about to end done again, in their old turn, when these names are free as well. */
  again(lane: Lane<T>, items: readonly T[], more: Iterable<string>): void {
    const { turns } = lane as Running<T>;
    const wider = items
      .flatMap((item) => turns.get(item) ?? [])
      .map(({ item, names, turn }) => ({ item, turn, names: new Set([...names, ...more]) }));
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
      if (next.names.size === 0) {
        // Who names nothing hinders nobody.
        nameless.push({ waiting: [next], names: [] });
        continue;
      }
      const joined = this.#joinable(next, taken, drafts);
      if (joined === null) {
        for (const name of next.names) taken.add(name);
        this.#waiting.push(next);
        continue;
      }
      const [home = { waiting: [], names: [] }, ...others] = joined;
      for (const { waiting: more, names } of [...others, { waiting: [next], names: [...next.names] }]) {
        home.waiting.push(...more);
        home.names.push(...names);
        for (const name of names) drafts.set(name, home);
      }
    }
    // All have their names before the first begins: it may take more.
    for (const lane of [...new Set(drafts.values()), ...nameless].map((draft) => this.#open(draft))) this.#start(lane);
  }

  /** What is about to begin and has names in common with `next`; null where `next` has to wait. */
  #joinable(
    { names }: Waiting<T>,
    taken: ReadonlySet<string>,
    drafts: ReadonlyMap<string, Draft<T>>,
  ): readonly Draft<T>[] | null {
    const joined = new Set<Draft<T>>();
    for (const name of names) {
      if (taken.has(name) || this.#held.has(name)) return null;
      const draft = drafts.get(name);
      if (draft !== undefined) joined.add(draft);
    }
    const count = [...joined].reduce((sum, { waiting }) => sum + waiting.length, 0);
    return count > 0 && count >= MOST_ITEMS ? null : [...joined];
  }

  #open({ waiting, names }: Draft<T>): Running<T> {
    waiting.sort((a, b) => a.turn - b.turn);
    const lane: Running<T> = {
      items: waiting.map(({ item }) => item),
      names: new Set(names),
      turns: new Map(waiting.map((each) => [each.item, each])),
    };
    for (const name of names) this.#held.set(name, lane);
    this.#running++;
    return lane;
  }

  #start(lane: Running<T>): void {
    void this.#run(lane).finally(() => {
      this.#running--;
      for (const name of lane.names) this.#held.delete(name);
      if (this.#waiting.length > 0) this.#soon();
      else if (this.#running === 0) for (const tell of this.#whenIdle.splice(0)) tell();
    });
  }
}
