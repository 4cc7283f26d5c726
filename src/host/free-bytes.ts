import { statfsSync } from 'node:fs';

/** Free bytes of the file system that holds `path`, those for root included; null if they cannot be read. */
export function freeBytes(path: string): number | null {
  try {
    const { bfree, bsize } = statfsSync(path);
    return bfree * bsize;
  } catch {
    return null;
  }
}
