import type { Clock } from '../host/clock.js';

/** Smaller buffers are not worth keeping, and may be chunks, which share their memory with others. */
const LEAST_BYTES = 128 * 1024;
/** A program that gets large bodies gets the next one sooner. */
const KEPT_MS = 60_000;

/**
 * The buffer of an earlier body, for the next one. A new buffer of megabytes for each body would make V8 mark the whole
 * heap every few bodies, because it counts this memory as growth of the heap. A buffer that is not used for a minute is
 * dropped.
 */
export class SpareBuffer {
  readonly #clock: Clock;
  #spare: Buffer | null = null;
  #keep: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The spare buffer if it has so many bytes; null if there is none. The caller owns it until it gives it back. */
  take(bytes: number): Buffer | null {
    const spare = this.#spare;
    if (spare === null || spare.length < bytes) return null;
    this.#keep();
    this.#spare = null;
    return spare;
  }

  give(buffer: Buffer): void {
    if (buffer.length < (this.#spare?.length ?? LEAST_BYTES)) return;
    this.#keep();
    this.#spare = buffer;
    this.#keep = this.#clock.after(KEPT_MS, () => (this.#spare = null));
  }
}
