import { readFileSync } from 'node:fs';

/** How many descriptors this process may have open at once, by `/proc/self/limits`; null where that is not said. */
export function openFileLimit(path = '/proc/self/limits'): number | null {
  let text: string;
  try {
    text = readFileSync(path, 'latin1');
  } catch {
    return null;
  }
  // The soft limit; Node raises it to the hard one when it starts.
  const limit = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1];
  if (limit === undefined) return null;
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}
