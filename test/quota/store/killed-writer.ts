import { createEngine } from '../../../src/quota/engine.js';
import { JournalStore } from '../../../src/quota/store/journal/journal-store.js';

/** Admits workloads without end, some at a time, and prints each acknowledged one. */
const [, , directory = ''] = process.argv;
const engine = await createEngine({
  store: await JournalStore.open(directory, { compactBytes: 20_000 }),
  clock: () => 0,
});
await engine.createGroup({ name: 'g', hard: { pods: 1_000_000 } });
for (let index = 0; ; index += 8) {
  await Promise.all(
    Array.from({ length: 8 }, async (_, at) => {
      const name = `${process.pid}-${index + at}`;
      const { allowed } = await engine.admit({ workload: { kind: 'Job', name }, group: 'g', podSets: [{ count: 1 }] });
      if (allowed) process.stdout.write(`Job//${name}\n`);
    }),
  );
}
