import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';

/** A directory that belongs to this process until `release`. */
export interface Lock {
  release(): Promise<void>;
}

/** What flock(1) ends with where somebody else has the lock. */
const TAKEN = 1;

/**
 * Takes the lock of a file with flock(2), or rejects and says which process has it. The kernel holds the lock for the
 * open file of this process and releases it when the process ends, however it ends, in whatever PID namespace. Node
 * cannot call flock(2): flock(1), which inherits the open file, takes the lock for it and ends. The file stays; only
 * its lock counts.
 */
export async function takeLock(path: string): Promise<Lock> {
  const file = await open(path, 'a+', 0o640);
  try {
    const code = await flock(file.fd);
    if (code === TAKEN) {
      const holder = (await file.readFile('utf8')).trim();
      throw new Error(`${path}: in use by ${holder === '' ? 'another process' : `process ${holder}`}`);
    }
    if (code !== 0) throw new Error(`${path}: flock ended with status ${code}`);
    await file.truncate(0);
    // For people only: the number means nothing in another PID namespace.
    await file.write(`${process.pid}\n`);
  } catch (error) {
    await file.close();
    throw error;
  }
  return { release: () => file.close() };
}

/** The exit status of flock(1) on an open file. */
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
