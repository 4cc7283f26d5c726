/** Rounds of the reference computation; an idle core of 2020 needs some 5 ms for them. */
const REFERENCE_ROUNDS = 2_000_000;
const REFERENCE_MS = 5;

/**
 * Measures the longest turn of this process's event loop, in CPU time: other programs of the machine do not lengthen it
 * as they lengthen the time on the clock. Figures are divided by how much slower than usual this machine computes.
 */
export class LoopMeter {
  #longestMs = 0;
  #lastCpuMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #slowness = 1;

  start(): void {
    this.#slowness = slowness();
    this.#longestMs = 0;
    this.#lastCpuMs = cpuMs();
    this.#timer = setInterval(() => this.#sample(), 1);
  }

  /** The longest turn since the start, in milliseconds of a machine of usual speed. */
  stop(): number {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#sample();
    return this.#longestMs / Math.max(1, this.#slowness, slowness());
  }

  #sample(): void {
    const now = cpuMs();
    this.#longestMs = Math.max(this.#longestMs, now - this.#lastCpuMs);
    this.#lastCpuMs = now;
  }
}

function slowness(): number {
  let least = Infinity;
  for (let time = 0; time < 5; time++) {
    const before = cpuMs();
    let sum = 0;
    for (let round = 0; round < REFERENCE_ROUNDS; round++) sum = (sum * 31 + round) | 0;
    if (sum === Infinity) throw new Error('the sum is a whole number');
    least = Math.min(least, cpuMs() - before);
  }
  return least / REFERENCE_MS;
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
