/**
 * The requests of native/bench/tenant.c, from the same seed, and how long they take on a GPU without any delay: alone,
 * or beside a batch that has one kernel on the GPU whenever a request comes and waits afterwards. Pure.
 */

/** Patterns of requests. */
export type RequestPattern = 'infer' | 'decode';

const SEED = 88172645463325252n;
const WORD = (1n << 64n) - 1n;

/** Uniform in [0, 1). */
function uniform(): () => number {
  let state = SEED;
  return () => {
    state ^= (state << 13n) & WORD;
    state ^= state >> 7n;
    state ^= (state << 17n) & WORD;
    return Number(state >> 11n) / 2 ** 53;
  };
}

/** The work of one request: of each of its steps, in seconds. */
function stepsOf(pattern: RequestPattern, next: () => number): number[] {
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  if (pattern === 'decode') return Array.from({ length: between(8, 32) }, () => 30 * 60e-6);
  const kernels = Array.from({ length: between(20, 60) }, () => Math.floor(50 * 60 ** next()) / 1e6);
  return [kernels.reduce((sum, one) => sum + one, 0)];
}

/**
 * The 99th percentile of the latencies, in ms, that the program prints within this time. `load`: percent of the GPU;
 * `kernelMs`: a kernel of the batch, 0 without one. The GPU divides its time equally between that and the service.
 */
export function shortestP99Ms(pattern: RequestPattern, load: number, seconds: number, kernelMs: number): number {
  const next = uniform();
  const kernel = kernelMs / 1000;
  const latencies: number[] = [];
  let [arrival, free, left] = [0, 0, 0];
  for (;;) {
    const steps = stepsOf(pattern, next);
    arrival += -((steps.reduce((sum, one) => sum + one, 0) * 100) / load) * Math.log(1 - next());
    if (arrival >= seconds) break;
    const idle = Math.max(0, arrival - free);
    if (kernel > 0 && idle > 0) left = idle < left ? left - idle : kernel - ((idle - left) % kernel);
    let from = arrival;
    let now = Math.max(arrival, free);
    for (const work of steps) {
      const delay = Math.min(work, left);
      left -= delay;
      now += work + delay;
      if (arrival >= 2) latencies.push((now - from) * 1000);
      from = now;
    }
    free = now;
  }
  return latencies.toSorted((a, b) => a - b)[Math.floor(0.99 * latencies.length)] ?? NaN;
}
