import { setTimeout as delay } from 'node:timers/promises';
import { timeLimit } from './time-factor.js';

/**
 * Waits until `condition` returns a value other than false, null and undefined, and returns it. A generous limit turns
 * a hang into a failure; no result depends on the speed.
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  what = 'the condition',
  limitMs = 120_000,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + timeLimit(limitMs);
  for (;;) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) return value as Exclude<T, false | null | undefined>;
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${timeLimit(limitMs)} ms`);
    await delay(3);
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
