/** A scheduled action. Its handler checks whether it still applies, because timers are never removed. */
export interface Timer {
  readonly at: number;
  readonly kind:
    'reservation' | 'grantBegins' | 'grantEnds' | 'loanBegins' | 'loanEnds' | 'podForgotten' | 'cashThreshold';
  /** The subject: an id or key. */
  readonly subject: string;
  /** The group of a grant or budget. */
  readonly group: string;
}

/** A binary heap of timers by time, first in first out among equals. */
export class TimerQueue {
  #heap: { readonly timer: Timer; readonly order: number }[] = [];
  #order = 0;
  /** In a fork: the added timers. */
  #added: Timer[] | null = null;
  /** In a fork: the queue below, until the first timer is taken. Most forks take none. */
  #base: TimerQueue | null = null;
  /** When each budget is looked at next, by `wakeKey`. */
  readonly #wakes = new Map<string, number>();

  get size(): number {
    return this.#heap.length + (this.#base?.size ?? 0);
  }

  /** When the next timer is due; Infinity without one. */
  get nextAt(): number {
    return Math.min(this.#heap[0]?.timer.at ?? Infinity, this.#base?.nextAt ?? Infinity);
  }

  push(timer: Timer): void {
    this.#added?.push(timer);
    this.#insert({ timer, order: this.#order++ });
  }

  /** Schedules a look at a budget, unless one is scheduled until `by`. */
  wake(timer: Timer, by: number): void {
    const key = wakeKey(timer);
    if (this.#wakeOf(key) <= by) return;
    this.#wakes.set(key, timer.at);
    this.push(timer);
  }

  #wakeOf(key: string): number {
    const base = this.#base;
    return Math.min(this.#wakes.get(key) ?? Infinity, base === null ? Infinity : base.#wakeOf(key));
  }

  #insert(entry: { readonly timer: Timer; readonly order: number }): void {
    const heap = this.#heap;
    heap.push(entry);
    let at = heap.length - 1;
    while (at > 0 && this.#before(at, (at - 1) >> 1)) {
      this.#swap(at, (at - 1) >> 1);
      at = (at - 1) >> 1;
    }
  }

  /** Takes the next timer that is due at `now`; null for none. */
  takeDue(now: number): Timer | null {
    if (this.#base !== null && this.#base.nextAt <= now) this.#copyBase();
    const heap = this.#heap;
    const first = heap[0];
    if (first === undefined || first.timer.at > now) return null;
    const last = heap.pop();
    if (last !== undefined && last !== first) {
      heap[0] = last;
      this.#sink();
    }
    const { timer } = first;
    if (timer.kind === 'cashThreshold' && this.#wakes.get(wakeKey(timer)) === timer.at)
      this.#wakes.delete(wakeKey(timer));
    return timer;
  }

  fork(): TimerQueue {
    const fork = new TimerQueue();
    fork.#base = this;
    fork.#order = this.#order;
    fork.#added = [];
    return fork;
  }

  #copyBase(): void {
    const [base, own] = [this.#base, this.#heap];
    this.#base = null;
    if (base === null) return;
    base.#copyBase();
    this.#heap = [...base.#heap];
    for (const entry of own) this.#insert(entry);
    for (const [key, at] of base.#wakes) this.#wakes.set(key, Math.min(at, this.#wakes.get(key) ?? Infinity));
  }

  /** Adds the timers that a fork added. Timers that the fork took stay, and no longer apply when they are due. */
  applyFork(fork: TimerQueue): void {
    for (const timer of fork.#added ?? [])
      if (timer.kind === 'cashThreshold') this.wake(timer, timer.at);
      else this.push(timer);
  }

  #sink(): void {
    const size = this.#heap.length;
    for (let at = 0; ;) {
      let next = at;
      if (2 * at + 1 < size && this.#before(2 * at + 1, next)) next = 2 * at + 1;
      if (2 * at + 2 < size && this.#before(2 * at + 2, next)) next = 2 * at + 2;
      if (next === at) return;
      this.#swap(at, next);
      at = next;
    }
  }

  #before(a: number, b: number): boolean {
    const left = this.#heap[a];
    const right = this.#heap[b];
    if (left === undefined || right === undefined) return false;
    return left.timer.at < right.timer.at || (left.timer.at === right.timer.at && left.order < right.order);
  }

  #swap(a: number, b: number): void {
    const left = this.#heap[a];
    const right = this.#heap[b];
    if (left === undefined || right === undefined) return;
    this.#heap[a] = right;
    this.#heap[b] = left;
  }
}

function wakeKey({ group, subject }: Timer): string {
  return `${group} ${subject}`;
}
