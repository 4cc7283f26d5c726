import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JournalStore } from '../../../src/quota/store/journal/journal-store.js';
import { storeContract } from './contract.js';

// Without waiting for the disk; the crash tests cover durability.
for (const [name, compactBytes] of [
  ['journal', undefined],
  ['journal with a snapshot after each commit', 1],
] as const) {
  storeContract(
    name,
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'gm-quota-'));
      return {
        open: () => JournalStore.open(directory, { compactBytes, durable: false }),
        destroy: () => rm(directory, { recursive: true, force: true }),
      };
    },
    false,
  );
}
