import { REFERENCE_MS, referenceMs, threadCpuMs } from './reference-work.js';

/**
 * Measures the longest turn of this process's event loop, in CPU time of its thread: neither other programs nor V8's
 * own threads lengthen it as they lengthen the time on the clock. Other programs still slow it down, by caches and
 * hardware threads that they share. So it is compared with a reference work that the same thread does before and after,
 * and told in milliseconds of a machine on which that work takes `REFERENCE_MS`.
 */
export class LoopMeter {
  #longestMs = 0;
  #lastCpuMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #referenceMs = 0;

  start(): void {
    this.#referenceMs = referenceMs();
    this.#longestMs = 0;
    this.#lastCpuMs = threadCpuMs();
    this.#timer = setInterval(() => this.#sample(), 1);
  }

  /** The longest turn since the start, in milliseconds of the reference machine. */
  stop(): number {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#sample();
    return (this.#longestMs * REFERENCE_MS) / Math.max(this.#referenceMs, referenceMs());
  }

  #sample(): void {
    const now = threadCpuMs();
    this.#longestMs = Math.max(this.#longestMs, now - this.#lastCpuMs);
    this.#lastCpuMs = now;
  }
}
