// Embeds the quota engine in TypeScript, on a journal: what was admitted is known after a restart.
//
//     node node_modules/gpu-manager-quota/examples/quota-engine.js DIRECTORY
import { createEngine, JournalStore, type Demand } from 'gpu-manager-quota';

const [directory] = process.argv.slice(2);
if (directory === undefined) {
  console.error('usage: quota-engine.js DIRECTORY');
  process.exit(2);
}

const train: Demand = {
  workload: { kind: 'Job', namespace: 'vision', name: 'train' },
  group: 'vision',
  podSets: [{ count: 4, requests: { 'nvidia.com/gpu': 1 } }],
};

const first = await createEngine({ store: await JournalStore.open(directory) });
await first.createGroup({ name: 'vision', hard: { 'requests.nvidia.com/gpu': 6 } });
console.log(`train: ${(await first.admit(train)).code}`);
await first.close();

const second = await createEngine({ store: await JournalStore.open(directory) });
console.log(`after a restart: ${second.status('vision')?.used.get('requests.nvidia.com/gpu')} GPUs used`);
await second.close();
