/** A body without a known length is assumed to grow to this multiple of what has arrived. */
const GROWTH = 4;

/**
 * Collects the chunks of a body in one buffer. Chunks that are kept until the end survive to the old generation of the
 * heap, and bodies of megabytes then cause full garbage collections. A new buffer is never larger than the announced
 * length, nor than four times what has arrived.
 */
export class BodyBytes {
  readonly #announced: number;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** `announced` is the length that the caller announced, 0 if it announced none. */
  constructor(announced: number) {
    this.#announced = announced > 0 ? announced : Infinity;
  }

  add(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (this.#length === 0) this.#buffer = chunk;
    else {
      if (needed > this.#buffer.length) {
        const size = Math.max(needed, Math.min(this.#announced, GROWTH * needed));
        const larger = Buffer.allocUnsafe(size);
        this.#buffer.copy(larger, 0, 0, this.#length);
        this.#buffer = larger;
      }
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = needed;
  }

  clear(): void {
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}
