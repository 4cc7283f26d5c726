import { readFileSync } from 'node:fs';

/** Limit of open file descriptors of this process, from `/proc/self/limits`; null if it is not listed. */
export function openFileLimit(path = '/proc/self/limits'): number | null {
  let text: string;
  try {
    text = readFileSync(path, 'latin1');
  } catch {
    return null;
  }
  // The soft limit, which Node raises to the hard one at its start.
  const limit = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1];
  if (limit === undefined) return null;
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}
