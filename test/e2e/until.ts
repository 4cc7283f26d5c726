import { setTimeout as delay } from 'node:timers/promises';

/** Asks until the answer is neither null nor false, or says what was waited for in vain. */
export async function until<T>(what: string, ask: () => Promise<T | null | false>, timeoutMs = 60_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  let failure = '';
  while (Date.now() < end) {
    try {
      const answer = await ask();
      if (answer !== null && answer !== false) return answer;
    } catch (error) {
      failure = `; last: ${(error as Error).message.slice(0, 500)}`;
    }
    await delay(200);
  }
  throw new Error(`waited ${timeoutMs / 1000} s in vain for ${what}${failure}`);
}
