/**
 * A map that can be forked: the fork sees everything and keeps its own changes, the map it came from does not notice.
 * As long as a fork is in use, the map below it must not change.
 */
export class LayeredMap<K, V> {
  readonly #below: LayeredMap<K, V> | null;
  /** Made when it is needed: most groups have no reservations, no pods and no children. */
  #own: Map<K, V> | null = null;
  /** Keys of the map below that are deleted or replaced here. */
  #hidden: Set<K> | null = null;
  #size: number;

  constructor(below: LayeredMap<K, V> | null = null) {
    this.#below = below;
    this.#size = below === null ? 0 : below.size;
  }

  get size(): number {
    return this.#size;
  }

  get(key: K): V | undefined {
    const value = this.#own?.get(key);
    if (value !== undefined || this.#below === null || this.#hidden?.has(key) === true) return value;
    return this.#below.get(key);
  }

  has(key: K): boolean {
    return this.get(key) !== undefined;
  }

  set(key: K, value: V): void {
    const own = (this.#own ??= new Map());
    if (this.#below === null) {
      own.set(key, value);
      this.#size = own.size;
      return;
    }
    if (!this.has(key)) this.#size++;
    own.set(key, value);
    if (this.#below.has(key)) this.#hide(key);
  }

  delete(key: K): boolean {
    if (!this.has(key)) return false;
    this.#own?.delete(key);
    if (this.#below?.has(key) === true) this.#hide(key);
    this.#size--;
    return true;
  }

  *entries(): IterableIterator<[K, V]> {
    if (this.#below !== null) {
      for (const entry of this.#below.entries()) if (this.#hidden?.has(entry[0]) !== true) yield entry;
    }
    if (this.#own !== null) yield* this.#own;
  }

  /** Calls `visit` with every value; faster than the iterator. */
  forEach(visit: (value: V, key: K) => void): void {
    this.#below?.forEach((value, key) => {
      if (this.#hidden?.has(key) !== true) visit(value, key);
    });
    this.#own?.forEach(visit);
  }

  /** A map that starts with all of this one. */
  fork(): LayeredMap<K, V> {
    return new LayeredMap(this);
  }

  /** What is different from the map below: new values, undefined where there is none any more. */
  changes(): readonly (readonly [K, V | undefined])[] {
    const gone = [...(this.#hidden ?? [])].filter((key) => this.#own?.has(key) !== true);
    return [...gone.map((key) => [key, undefined] as const), ...(this.#own ?? [])];
  }

  /** Takes over what a fork of this map changed. */
  adopt(fork: LayeredMap<K, V>): void {
    for (const [key, value] of fork.changes()) {
      if (value === undefined) this.delete(key);
      else this.set(key, value);
    }
  }

  #hide(key: K): void {
    this.#hidden ??= new Set();
    this.#hidden.add(key);
  }
}
