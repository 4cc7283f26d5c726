import { crc32 } from 'node:zlib';

/** Keys in a bucket before the index gets more buckets. */
const MOST_PER_BUCKET = 32;
const MIN_BUCKETS = 16;
const EDITS_PER_STEP = 4096;

/** Changes of an index; null removes a key. */
export type IndexEdits = ReadonlyMap<string, number | null>;

/**
 * An immutable map from texts to numbers with cheap changed copies: a copy shares all buckets that did not change.
 */
export class KeyIndex {
  readonly size: number;
  readonly #buckets: readonly (ReadonlyMap<string, number> | undefined)[];

  private constructor(buckets: readonly (ReadonlyMap<string, number> | undefined)[], size: number) {
    this.#buckets = buckets;
    this.size = size;
  }

  static empty(): KeyIndex {
    return new KeyIndex(new Array<undefined>(MIN_BUCKETS), 0);
  }

  get(key: string): number | undefined {
    return this.#buckets[crc32(key) % this.#buckets.length]?.get(key);
  }

  /** The changed copy; yields after some thousand changes, for callers that leave the event loop to others. */
  *with(edits: IndexEdits): Generator<void, KeyIndex> {
    if (edits.size === 0) return this;
    const known = this.#resized(this.size + edits.size);
    const buckets = [...known];
    let [size, count] = [this.size, 0];
    for (const [key, value] of edits) {
      if (++count % EDITS_PER_STEP === 0) yield;
      const at = crc32(key) % buckets.length;
      const shared = known[at];
      let bucket = buckets[at] as Map<string, number> | undefined;
      if (bucket === undefined || bucket === shared) buckets[at] = bucket = new Map(shared);
      size -= bucket.size;
      if (value === null) bucket.delete(key);
      else bucket.set(key, value);
      size += bucket.size;
    }
    return new KeyIndex(buckets, size);
  }

  #resized(size: number): readonly (ReadonlyMap<string, number> | undefined)[] {
    let count = this.#buckets.length;
    while (size > count * MOST_PER_BUCKET) count *= 2;
    if (count === this.#buckets.length) return this.#buckets;
    const buckets = new Array<Map<string, number> | undefined>(count);
    for (const bucket of this.#buckets)
      for (const [key, value] of bucket ?? []) (buckets[crc32(key) % count] ??= new Map()).set(key, value);
    return buckets;
  }
}
