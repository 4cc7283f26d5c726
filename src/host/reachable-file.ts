import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';

/**
 * Flags for every open of a file that somebody else can open too, be it through a read-only mount: who may open a file
 * may take a lease on it, and an open that conflicts with a lease waits for 45 s (fcntl(2), F_SETLEASE) unless it says
 * that it does not want to. Links are not followed.
 */
export const NEVER_WAIT = constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** True for the error of an open that would have waited. */
export function isLeased(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EAGAIN';
}

/** Reads a whole file without ever waiting for its holder; rejects with EAGAIN where it would have to. */
export function readReachableFile(path: string): Promise<Buffer> {
  return readFile(path, { flag: constants.O_RDONLY | NEVER_WAIT });
}
