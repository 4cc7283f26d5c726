import { readFile, stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { StartupError } from '../host/startup-error.js';
import { MAX_FILE_BYTES } from '../quota/command/tree-file.js';

/**
 * A file named on the command line, `-` for standard input. Rejects with a `StartupError` if it cannot be read or is
 * too large.
 */
export async function contentOf(file: string): Promise<string> {
  try {
    if (file === '-') return await text(process.stdin);
    const { size } = await stat(file);
    if (size > MAX_FILE_BYTES)
      throw new StartupError(`quota: ${file}: ${size} bytes, at most ${MAX_FILE_BYTES} are read`);
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`quota: ${file}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  }
}
