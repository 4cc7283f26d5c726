import { readdir } from 'node:fs/promises';
import { StartupError } from '../host/startup-error.js';
import { JournalStore, type JournalOptions } from '../quota/index.js';

const EXPECTED = 'expected the directory of quota replay --store';
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'the directory does not exist',
  ENOTDIR: `this is a file; ${EXPECTED}`,
};

/**
 * Opens the journal in a directory. Rejects with a `StartupError` if none is there: a misspelt path makes no new
 * journal.
 */
export async function existingStore(directory: string, options: JournalOptions = {}): Promise<JournalStore> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(`quota: ${directory}: ${REASONS[error.code ?? ''] ?? error.message}`);
  });
  if (!names.some((name) => /^(?:journal|snapshot)-\d+$/.test(name)))
    throw new StartupError(`quota: ${directory}: no journal is there; ${EXPECTED}`);
  return JournalStore.open(directory, options).catch((error: Error) => {
    throw new StartupError(`quota: ${directory}: ${error.message}`);
  });
}
