import { open, readFile, unlink } from 'node:fs/promises';
import { readFileSync } from 'node:fs';

/** A directory that belongs to this process until `release`. */
export interface Lock {
  release(): Promise<void>;
}

/**
 * Takes a lock file, or says whose it is. The file names a process and when that began; one that ended without releasing it, or whose
 * number another process has now, does not hold it any more.
 */
export async function takeLock(path: string): Promise<Lock> {
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      const file = await open(path, 'wx', 0o640);
      await file.writeFile(`${process.pid} ${beginOf(process.pid) ?? ''}\n`);
      await file.close();
      return { release: () => unlink(path) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = await readFile(path, 'utf8').catch(() => '');
    const [pid = '', begin = ''] = holder.trim().split(' ');
    if (holder.endsWith('\n') && isAlive(Number(pid), begin)) throw new Error(`${path}: in use by process ${pid}`);
    await unlink(path).catch(() => undefined);
  }
  throw new Error(`${path}: others take it again and again`);
}

function isAlive(pid: number, begin: string): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  const now = beginOf(pid);
  return now !== null && (begin === '' || now === begin);
}

/** When a process began, in the kernel's clock ticks (field 22 of /proc/PID/stat); null if there is none. */
function beginOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the name in parentheses, which may hold anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}
