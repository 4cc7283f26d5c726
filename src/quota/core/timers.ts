/**
 * Something that happens by itself at a time. Who handles it checks that it still applies: timers are never taken back.
 */
export interface Timer {
  readonly at: number;
  readonly kind: 'reservation' | 'grantBegins' | 'grantEnds' | 'loanBegins' | 'loanEnds' | 'podForgotten';
  /** What it is about: id or key. */
  readonly subject: string;
  /** The group of a grant. */
  readonly group: string;
}

/** Timers by time, first in first out among equals: a binary heap. */
export class TimerQueue {
  #heap: { readonly timer: Timer; readonly order: number }[] = [];
  #order = 0;
  /** Of a fork: what was added to it. */
  #added: Timer[] | null = null;
  /** Of a fork: the queue it came from, until something of it is taken. Most forks take nothing. */
  #below: TimerQueue | null = null;

  get size(): number {
    return this.#heap.length + (this.#below?.size ?? 0);
  }

  /** When the next timer is due, Infinity without one. */
  get nextAt(): number {
    return Math.min(this.#heap[0]?.timer.at ?? Infinity, this.#below?.nextAt ?? Infinity);
  }

  push(timer: Timer): void {
    this.#added?.push(timer);
    this.#insert({ timer, order: this.#order++ });
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

  /** Takes the next timer that is due at `now`, or null. */
  takeDue(now: number): Timer | null {
    if (this.#below !== null && this.#below.nextAt <= now) this.#copyBelow();
    const heap = this.#heap;
    const first = heap[0];
    if (first === undefined || first.timer.at > now) return null;
    const last = heap.pop();
    if (last !== undefined && last !== first) {
      heap[0] = last;
      this.#sink();
    }
    return first.timer;
  }

  fork(): TimerQueue {
    const fork = new TimerQueue();
    fork.#below = this;
    fork.#order = this.#order;
    fork.#added = [];
    return fork;
  }

  #copyBelow(): void {
    const [below, own] = [this.#below, this.#heap];
    this.#below = null;
    if (below === null) return;
    below.#copyBelow();
    this.#heap = [...below.#heap];
    for (const entry of own) this.#insert(entry);
  }

  /** Takes over what a fork added. What it took stays here as well, and no longer applies when it is due. */
  adopt(fork: TimerQueue): void {
    for (const timer of fork.#added ?? []) this.push(timer);
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
