import { join } from 'node:path';
import type { CheckpointStore } from './ports.js';
import { CHECKPOINT_FILE } from '../../gpu/ledger/checkpoint.js';
import { removeHalfWritten, writeFileAtomically } from '../../host/atomic-file.js';
import { readStateFile } from '../../host/state-file.js';

/** Suffix of the original's checkpoint file after this agent has replaced the file. */
const ORIGINAL_SUFFIX = '.original';

/** Stores the checkpoint in its file in `directory`. */
export function checkpointFile(directory: string): CheckpointStore {
  const path = join(directory, CHECKPOINT_FILE);
  return {
    async load() {
      await removeHalfWritten(directory).catch(() => undefined);
      try {
        return await readStateFile(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
        throw error;
      }
    },
    save: (text) => writeFileAtomically(path, text),
    keepOriginal: (text) => writeFileAtomically(`${path}${ORIGINAL_SUFFIX}`, text),
  };
}
