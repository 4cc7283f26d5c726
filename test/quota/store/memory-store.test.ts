import { test } from 'tap';
import { createEngine } from '../../../src/quota/engine.js';
import { generator } from '../../generator.js';
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

test('engines that put one workload into two groups at once agree with each other and with the store', async (t) => {
  for (let seed = 1; seed <= 221; seed++) {
    const random = generator(seed * 2_654_435_761);
    const below = (limit: number): number => Math.floor(random() * limit);
    const memory = new SharedMemory();
    const opened = () =>
      createEngine({ store: new MemoryStore(memory), clock: () => 0, pause: () => Promise.resolve() });
    const engines = [await opened(), await opened()] as const;
    for (const name of ['g', 'h']) await engines[0].createGroup({ name, hard: { 'limits.cpu': 100 } });
    await engines[1].catchUp();
    const asked: Promise<unknown>[] = [];
    for (let step = 0; step < 6; step++) {
      const engine = engines[below(2) as 0 | 1];
      const workload = { kind: 'Job', name: `w${below(2)}` };
      const group = below(2) === 0 ? 'g' : 'h';
      if (below(5) === 0) asked.push(engine.release(workload));
      else asked.push(engine.admit({ workload, group, podSets: [{ count: 1 + below(4), limits: { cpu: 1 } }] }));
      if (below(2) === 0) await Promise.resolve();
    }
    await Promise.all(asked);
    for (const engine of engines) await engine.catchUp();
    const fresh = await opened();
    const counters = [...engines, fresh].map((engine) =>
      ['g', 'h'].map((group) => engine.status(group)?.used.get('limits.cpu')),
    );
    const drift = engines.flatMap((engine) => engine.refresh().drift);
    const [one, two, stored] = counters;
    if (drift.length > 0 || String(one) !== String(two) || String(one) !== String(stored))
      t.same({ seed, drift, one, two }, { seed, drift: [], one: stored, two: stored });
  }
  t.pass('221 schedules');
  t.end();
});
