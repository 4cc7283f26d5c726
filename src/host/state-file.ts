import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

/**
 * Reads a whole text file that an earlier run, another program or an administrator wrote. Never waits: a fifo, a
 * device, a socket or a directory in its place rejects with a sentence; a missing file with ENOENT.
 */
export async function readStateFile(path: string): Promise<string> {
  const file = await openStateFile(path, constants.O_RDONLY);
  try {
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** Opens a regular file, as `readStateFile` does; `flags` of open(2). */
export async function openStateFile(path: string, flags: number, mode?: number): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NONBLOCK, mode).catch((error: unknown) => {
    // A fifo without a reader, or a device or socket without an other side.
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') throw notRegular(path, 'no regular file');
    throw error;
  });
  const stat = await file.stat();
  if (stat.isFile()) return file;
  await file.close();
  const kind = stat.isFIFO() ? 'a fifo' : stat.isDirectory() ? 'a directory' : 'a device or a socket';
  throw notRegular(path, kind);
}

function notRegular(path: string, kind: string): Error {
  return new Error(`${path} is ${kind}; expected a regular file: remove it, or move it away`);
}
