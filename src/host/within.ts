import type { Clock } from './clock.js';

/** Settles like `work`, or rejects with `late` after `limitMs`. */
export async function within<T>(work: Promise<T>, limitMs: number, clock: Clock, late: () => Error): Promise<T> {
  let cancel = (): void => undefined;
  const limit = new Promise<never>((_, reject) => {
    cancel = clock.after(limitMs, () => reject(late()));
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    cancel();
  }
}
