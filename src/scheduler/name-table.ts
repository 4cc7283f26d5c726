import { endOfValue, valueAt } from './json-slices.js';

/** More names than nodes of the largest clusters; beyond this number the table is emptied. */
const MOST_NAMES = 32_768;
/** Names of Kubernetes objects are not longer. */
const LONGEST_NAME = 253;
const FIRST_SIZE = 1_024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Texts of a JSON text, found by their bytes: calls repeat the names of the same thousands of nodes, and each new
 * string would be allocated and hashed again. Contains only texts of ASCII without escapes. It contains texts, not
 * nodes, so that changes of the cluster do not affect it.
 */
export class NameTable {
  /** Open addressing; at most half of it is used. Its size is a power of two. */
  #names = new Array<string | null>(FIRST_SIZE).fill(null);
  #count = 0;

  get size(): number {
    return this.#count;
  }

  /** The end of the value that was read last. */
  end = 0;

  /** Reads the value here: a text, or null for another value. Throws a `BrokenJson` where it is not JSON. */
  readAt(text: Buffer, start: number): string | null {
    const isText = text[start] === QUOTE;
    if (isText) {
      let at = start + 1;
      let hash = 0;
      for (; at < text.length; at++) {
        const byte = text[at] as number;
        if (byte === QUOTE || byte === BACKSLASH) break;
        hash = hashed(hash, byte);
      }
      const known = this.#names[this.#placeOf(hash, text, start + 1, at - start - 1)];
      if (typeof known === 'string' && text[at] === QUOTE) {
        this.end = at + 1;
        return known;
      }
    }
    const end = endOfValue(text, start);
    const value = valueAt(text, start, end);
    this.end = end;
    if (typeof value !== 'string') return null;
    // Escapes and characters beyond ASCII have more bytes than characters.
    if (value.length === end - start - 2 && value.length <= LONGEST_NAME) this.#add(value, text.subarray(start + 1));
    return value;
  }

  #add(name: string, bytes: Buffer): void {
    if (this.#count >= MOST_NAMES) this.#resize(FIRST_SIZE, []);
    else if (2 * (this.#count + 1) > this.#names.length) this.#resize(2 * this.#names.length, this.#names);
    let hash = 0;
    for (let at = 0; at < name.length; at++) hash = hashed(hash, bytes[at] as number);
    this.#names[this.#placeOf(hash, bytes, 0, name.length)] = name;
    this.#count++;
  }

  #resize(size: number, names: readonly (string | null)[]): void {
    this.#names = new Array<string | null>(size).fill(null);
    this.#count = 0;
    for (const name of names) if (name !== null) this.#add(name, Buffer.from(name, 'latin1'));
  }

  /** The slot of the name with these bytes, or else the free slot for it. */
  #placeOf(hash: number, text: Buffer, start: number, length: number): number {
    const names = this.#names;
    const mask = names.length - 1;
    let place = (hash ^ (hash >>> 15)) & mask;
    for (let name = names[place]; typeof name === 'string'; name = names[place]) {
      if (isEqual(name, text, start, length)) return place;
      place = (place + 1) & mask;
    }
    return place;
  }
}

function hashed(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
}

function isEqual(name: string, text: Buffer, start: number, length: number): boolean {
  if (name.length !== length) return false;
  for (let at = 0; at < length; at++) if (name.charCodeAt(at) !== text[start + at]) return false;
  return true;
}
