/** The durations of calls, and their sum. */
export class Latencies {
  readonly #us: Float64Array;
  #count = 0;
  #totalMs = 0;

  constructor(capacity: number) {
    this.#us = new Float64Array(capacity);
  }

  /** Records one call. */
  add(ms: number): void {
    this.#us[this.#count++] = ms * 1000;
    this.#totalMs += ms;
  }

  /** Calls a second, if each started after the one before. */
  get rate(): number {
    return (this.#count / this.#totalMs) * 1000;
  }

  /** Microseconds within which that part of the calls ended. */
  quantile(part: number): number {
    const sorted = this.#us.subarray(0, this.#count).slice().sort();
    return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? NaN;
  }
}
