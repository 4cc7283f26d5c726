import { MemoryStore, SharedMemory } from '../../../src/quota/store/memory-store.js';
import { storeContract } from './contract.js';

storeContract(
  'memory',
  async () => {
    const memory = new SharedMemory();
    return { open: async () => new MemoryStore(memory), destroy: async () => undefined };
  },
  true,
);
