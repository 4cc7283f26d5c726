import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

/** Flags of open(2) for a file that is read and appended to, and created if it is missing. */
export const READ_AND_APPEND = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;

/**
 * Opens a file of the engine. Never waits: a fifo, a device, a socket or a directory in its place rejects with a
 * sentence. `flags`: of open(2).
 */
export async function openRegularFile(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NONBLOCK, 0o640).catch((error: NodeJS.ErrnoException) => {
    throw ['ENXIO', 'EISDIR'].includes(error.code ?? '') ? notRegular(path) : error;
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw notRegular(path);
}

/** The content of such a file. */
export async function readRegularFile(path: string): Promise<Buffer> {
  const file = await openRegularFile(path, constants.O_RDONLY);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}

function notRegular(path: string): Error {
  return new Error(`${path} is a fifo, a device, a socket or a directory; expected a regular file: move it away`);
}
