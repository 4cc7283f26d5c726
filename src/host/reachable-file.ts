import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';

/**
 * Flags for every open of a file that other processes can open too, even through a read-only mount: such a process may
 * take a lease on it, and a conflicting open waits up to 45 s (fcntl(2), F_SETLEASE) unless it is non-blocking. Links
 * are not followed.
 */
export const NEVER_WAIT = constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** True for the error of an open that a lease would have blocked. */
export function isLeased(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EAGAIN';
}

/** Reads a whole file without waiting for a lease; rejects with EAGAIN instead. */
export function readReachableFile(path: string): Promise<Buffer> {
  return readFile(path, { flag: constants.O_RDONLY | NEVER_WAIT });
}
