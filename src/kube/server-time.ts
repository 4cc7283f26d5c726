/** Estimates the time of an API server from its answers: the Date header has the second of the answer. */
export class ServerTime {
  /** A monotonic clock in milliseconds, independent of changes to this machine's clock. */
  readonly #elapsed: () => number;
  /** Bounds of the server's time at the monotonic time `at`; null before the first answer. */
  #bounds: { readonly low: number; readonly high: number; readonly at: number } | null = null;

  constructor(elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed;
  }

  /** A monotonic time to pass to `learn`: the time at which a request was sent. */
  mark(): number {
    return this.#elapsed();
  }

  /** Learns from the Date header of an answer to a request that was sent at `sentAt`. An invalid header is ignored. */
  learn(date: string | undefined, sentAt: number): void {
    const second = date === undefined ? NaN : Date.parse(date);
    if (!Number.isFinite(second)) return;
    const at = this.#elapsed();
    const told = { low: second, high: second + 1000 + (at - sentAt), at };
    const known = this.#bounds === null ? told : laterBy(this.#bounds, at);
    const [low, high] = [Math.max(known.low, told.low), Math.min(known.high, told.high)];
    // If the ranges do not overlap, a clock was set: the latest answer counts.
    this.#bounds = low <= high ? { low, high, at } : told;
  }

  /** Milliseconds since 1970, with an error of at most half a second; null before the first answer. */
  now(): number | null {
    if (this.#bounds === null) return null;
    const { low, high } = laterBy(this.#bounds, this.#elapsed());
    return (low + high) / 2;
  }
}

/** Assumed drift of the two clocks, as a part of the elapsed time. */
const DRIFT = 200e-6;

function laterBy(
  { low, high, at }: { readonly low: number; readonly high: number; readonly at: number },
  now: number,
): { readonly low: number; readonly high: number } {
  const passed = Math.max(0, now - at);
  return { low: low + passed * (1 - DRIFT), high: high + passed * (1 + DRIFT) };
}
