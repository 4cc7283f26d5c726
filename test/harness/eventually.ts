import { setTimeout as delay } from 'node:timers/promises';
import { timeLimit } from './time-factor.js';

/** Pauses between two queries: at first, and at most. */
const SHORTEST_MS = 3;
const LONGEST_MS = 25;
/** A pause is this part of the time that was waited: a long wait needs few queries, and ends little later. */
const PAUSE_PART = 0.05;

/**
 * Waits until `condition` returns a value other than false, null and undefined, and returns it. A generous limit turns
 * a hang into a failure; no result depends on the speed.
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  what = 'the condition',
  limitMs = 120_000,
): Promise<Exclude<T, false | null | undefined>> {
  const began = performance.now();
  for (;;) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) return value as Exclude<T, false | null | undefined>;
    const waitedMs = performance.now() - began;
    if (waitedMs > timeLimit(limitMs)) throw new Error(`${what} did not come true within ${timeLimit(limitMs)} ms`);
    await delay(Math.min(LONGEST_MS, Math.max(SHORTEST_MS, PAUSE_PART * waitedMs)));
  }
}

/**
 * Waits as `eventually` does, for another program or a cluster: a query that fails is repeated, and the last failure is
 * reported. The period is long, because each query costs a process or a request.
 */
export async function until<T>(
  what: string,
  ask: () => T | null | false | Promise<T | null | false>,
  limitMs = 180_000,
): Promise<T> {
  const end = performance.now() + timeLimit(limitMs);
  let failure = '';
  while (performance.now() < end) {
    try {
      const answer = await ask();
      if (answer !== null && answer !== false) return answer;
    } catch (error) {
      failure = `; last: ${(error as Error).message.slice(0, 500)}`;
    }
    await delay(200);
  }
  throw new Error(`waited ${timeLimit(limitMs) / 1000} s in vain for ${what}${failure}`);
}
