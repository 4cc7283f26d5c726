/**
 * The listeners of one kind of event: `new Listeners<string>()` for events that are strings, `new Listeners()` for
 * events without a value. A function that is added twice is one listener.
 */
export class Listeners<Event = void, Result = void> {
  readonly #all = new Set<(event: Event) => Result>();

  get size(): number {
    return this.#all.size;
  }

  /** Adds a listener; the returned function removes it. */
  add(listener: (event: Event) => Result): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  clear(): void {
    this.#all.clear();
  }

  /** Calls the listeners in turn. The first exception ends this and is the caller's. */
  emit(event: Event): void {
    for (const listener of this) listener(event);
  }

  /** The listeners of this moment, without those that are removed during the iteration. */
  *[Symbol.iterator](): Iterator<(event: Event) => Result> {
    for (const listener of [...this.#all]) if (this.#all.has(listener)) yield listener;
  }
}
