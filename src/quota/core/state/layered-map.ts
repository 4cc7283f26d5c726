/**
 * A map with copy-on-write forks: a fork sees all entries and keeps its own changes. While a fork is in use, the map
 * below it must not change.
 */
export class LayeredMap<K, V> {
  readonly #base: LayeredMap<K, V> | null;
  /** Created when needed: most groups have no reservations, pods or children. */
  #own: Map<K, V> | null = null;
  /** Keys that were deleted in this fork; one that was set again is in `own` as well. */
  #hidden: Set<K> | null = null;
  #size: number;

  constructor(base: LayeredMap<K, V> | null = null) {
    this.#base = base;
    this.#size = base === null ? 0 : base.size;
  }

  get size(): number {
    return this.#size;
  }

  get(key: K): V | undefined {
    const value = this.#own?.get(key);
    if (value !== undefined || this.#base === null || this.#hidden?.has(key) === true) return value;
    return this.#base.get(key);
  }

  has(key: K): boolean {
    return this.get(key) !== undefined;
  }

  set(key: K, value: V): void {
    const own = (this.#own ??= new Map());
    if (this.#base === null) {
      own.set(key, value);
      this.#size = own.size;
      return;
    }
    const before = own.size;
    own.set(key, value);
    if (own.size > before && (this.#hidden?.has(key) === true || !this.#base.has(key))) this.#size++;
  }

  /** Sets another value of a key that has one; faster than `set` in a fork. */
  replace(key: K, value: V): void {
    (this.#own ??= new Map()).set(key, value);
  }

  delete(key: K): boolean {
    if (!this.has(key)) return false;
    this.#own?.delete(key);
    if (this.#base !== null) (this.#hidden ??= new Set()).add(key);
    this.#size--;
    return true;
  }

  *entries(): IterableIterator<[K, V]> {
    if (this.#base !== null) {
      for (const entry of this.#base.entries()) if (!this.isChanged(entry[0])) yield entry;
    }
    if (this.#own !== null) yield* this.#own;
  }

  /** Calls `visit` with every entry; faster than the iterator. */
  forEach(visit: (value: V, key: K) => void): void {
    this.#base?.forEach((value, key) => {
      if (!this.isChanged(key)) visit(value, key);
    });
    this.#own?.forEach(visit);
  }

  fork(): LayeredMap<K, V> {
    return new LayeredMap(this);
  }

  /** Whether this fork set or deleted the key. */
  isChanged(key: K): boolean {
    return this.#own?.has(key) === true || this.#hidden?.has(key) === true;
  }

  /** The values that this fork set. */
  changedValues(): readonly V[] {
    return this.#own === null ? [] : [...this.#own.values()];
  }

  /**
   * Changes relative to the map below, also of entries that were added and deleted again; undefined for deleted
   * entries.
   */
  changes(): readonly (readonly [K, V | undefined])[] {
    const deleted = [...(this.#hidden ?? [])].filter((key) => this.#own?.has(key) !== true);
    return [...deleted.map((key) => [key, undefined] as const), ...(this.#own ?? [])];
  }

  /** Applies the changes of a fork of this map. */
  applyFork(fork: LayeredMap<K, V>): void {
    for (const [key, value] of fork.changes()) {
      if (value === undefined) this.delete(key);
      else this.set(key, value);
    }
  }
}
