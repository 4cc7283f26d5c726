import { spawn } from 'node:child_process';
import { openRegularFile, READ_AND_APPEND } from '../regular-file.js';

/** Exclusive ownership of a directory until `release`. */
export interface Lock {
  release(): Promise<void>;
}

/** Exit status of flock(1) if another process has the lock. */
const LOCKED = 1;

/**
 * Locks a file with flock(2), or rejects with the process that has the lock. The kernel holds the lock for the open
 * file of this process and releases it when the process ends, in any PID namespace. Node cannot call flock(2);
 * therefore flock(1) inherits the open file and locks it. The file stays; only its lock counts.
 */
export async function takeLock(path: string): Promise<Lock> {
  const file = await openRegularFile(path, READ_AND_APPEND);
  try {
    const code = await flock(file.fd);
    if (code === LOCKED) {
      const holder = (await file.readFile('utf8')).trim();
      throw new Error(`${path}: in use by ${holder === '' ? 'another process' : `process ${holder}`}`);
    }
    if (code !== 0) throw new Error(`${path}: flock ended with status ${code}`);
    await file.truncate(0);
    // For administrators; the number is meaningless in another PID namespace.
    await file.write(`${process.pid}\n`);
  } catch (error) {
    await file.close();
    throw error;
  }
  return { release: () => file.close() };
}

/** Returns the exit status of flock(1) for an open file. */
function flock(fd: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
    child.on('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT' ? new Error('the command flock is not found: install util-linux or busybox') : error,
      ),
    );
    child.on('exit', (code, signal) => (code === null ? reject(new Error(`flock: ${signal ?? ''}`)) : resolve(code)));
  });
}
