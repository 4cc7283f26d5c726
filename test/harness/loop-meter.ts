import { openSync, readSync } from 'node:fs';

const schedstat = openSync('/proc/self/schedstat', 'r');
const text = Buffer.alloc(64);
/** A core of 2020 without other work needs this long for one round of the reference work. */
const REFERENCE_MS = 10;
const REFERENCE_ROUNDS = 8;

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

/** The CPU time of the reference work: objects, strings and JSON, which the programs handle too. */
function referenceMs(): number {
  const before = threadCpuMs();
  for (let round = 0; round < REFERENCE_ROUNDS; round++) {
    const pods = new Map<string, object>();
    for (let at = 0; at < 5_000; at++)
      pods.set(`pod-${at}`, { name: `pod-${at}`, labels: { app: `app-${at % 50}` }, cores: at % 100 });
    const read = JSON.parse(JSON.stringify([...pods.values()])) as unknown[];
    if (read.length !== pods.size) throw new Error('JSON lost a pod');
  }
  return (threadCpuMs() - before) / REFERENCE_ROUNDS;
}

/** The CPU time of the main thread, exact to a tick of the kernel; `process.threadCpuUsage` needs Node 23. */
function threadCpuMs(): number {
  readSync(schedstat, text, 0, text.length, 0);
  return Number(text.toString('latin1', 0, text.indexOf(' '))) / 1e6;
}
