import type { SpareBuffer } from './spare-buffer.js';

/** A body without a known length is assumed to grow to this multiple of what has arrived. */
const GROWTH = 4;

/**
 * Collects the chunks of a body in one buffer. Chunks that are kept until the end survive to the old generation of the
 * heap, and bodies of megabytes then cause full garbage collections. A new buffer is never larger than the announced
 * length, nor than four times what has arrived.
 */
export class BodyBytes {
  readonly #announced: number;
  readonly #spare: SpareBuffer;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** `announced` is the length that the caller announced, 0 if it announced none. */
  constructor(announced: number, spare: SpareBuffer) {
    this.#announced = announced > 0 ? announced : Infinity;
    this.#spare = spare;
  }

  add(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (this.#length === 0) this.#buffer = chunk;
    else {
      if (needed > this.#buffer.length) {
        const size = Math.max(needed, Math.min(this.#announced, GROWTH * needed));
        const larger = this.#spare.take(size) ?? Buffer.allocUnsafe(size);
        this.#buffer.copy(larger, 0, 0, this.#length);
        this.#buffer = larger;
      }
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = needed;
  }

  /** Removes the bytes; what was read from them must no longer be in use, because the next body may overwrite it. */
  clear(): void {
    this.#spare.give(this.#buffer);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}
