/** The time of an API server, as its answers tell it: a Date header says the second in which an answer was made. */
export class ServerTime {
  /** Milliseconds that only go forward, whatever happens to the clock of this machine. */
  readonly #elapsed: () => number;
  /** Between these the server's time was at `at`; null before the first answer. */
  #bounds: { readonly low: number; readonly high: number; readonly at: number } | null = null;

  constructor(elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed;
  }

  /** A moment to be given to `learn`: when a request was sent. */
  mark(): number {
    return this.#elapsed();
  }

  /** Learns from the Date header of an answer to a request that was sent at `sentAt`. Anything else teaches nothing. */
  learn(date: string | undefined, sentAt: number): void {
    const second = date === undefined ? NaN : Date.parse(date);
    if (!Number.isFinite(second)) return;
    const at = this.#elapsed();
    const told = { low: second, high: second + 1000 + (at - sentAt), at };
    const known = this.#bounds === null ? told : laterBy(this.#bounds, at);
    const [low, high] = [Math.max(known.low, told.low), Math.min(known.high, told.high)];
    // Where the two do not meet, one of the clocks was set: what was told last counts.
    this.#bounds = low <= high ? { low, high, at } : told;
  }

  /** Milliseconds since 1970, right to half a second and less; null before the first answer. */
  now(): number | null {
    if (this.#bounds === null) return null;
    const { low, high } = laterBy(this.#bounds, this.#elapsed());
    return (low + high) / 2;
  }
}

/** Two clocks part by so much of the time that passes. */
const DRIFT = 200e-6;

function laterBy(
  { low, high, at }: { readonly low: number; readonly high: number; readonly at: number },
  now: number,
): { readonly low: number; readonly high: number } {
  const passed = Math.max(0, now - at);
  return { low: low + passed * (1 - DRIFT), high: high + passed * (1 + DRIFT) };
}
