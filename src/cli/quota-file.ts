import { readFile, stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { fileReason } from '../host/file-reason.js';
import { StartupError } from '../host/startup-error.js';
import { readManifests } from '../quota-command/manifest-file.js';
import { MAX_FILE_BYTES } from '../quota-command/tree-file.js';

/** `-f` of the commands that read manifests. */
export interface FilenameOption {
  readonly filename: readonly string[];
}

export const FILENAME_OPTION: readonly [
  string,
  string,
  (file: string, files: readonly string[]) => readonly string[],
  readonly string[],
] = [
  '-f, --filename <file>',
  'YAML or JSON of objects; - reads standard input; may be repeated',
  (file, files) => [...files, file],
  [],
];

/** The objects of some files, in order. Rejects with a `StartupError` if one cannot be read. */
export async function manifestsOf(files: readonly string[]): Promise<readonly unknown[]> {
  const manifests: unknown[] = [];
  for (const file of files) {
    const read = readManifests(await contentOf(file));
    if (!read.ok) throw new StartupError(`quota: ${file}: ${read.problems.join('; ')}`);
    manifests.push(...read.manifests);
  }
  return manifests;
}

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
    throw new StartupError(`quota: ${file}: ${fileReason(error)}`);
  }
}
