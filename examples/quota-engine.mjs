// Embeds the quota engine in JavaScript: a group with six GPUs, and two workloads that ask for them.
//
//     node node_modules/gpu-manager-quota/examples/quota-engine.mjs
import { createEngine } from 'gpu-manager-quota';

const engine = await createEngine();
await engine.createGroup({ name: 'vision', hard: { 'requests.nvidia.com/gpu': 6 } });

/** Asks for `count` pods with one GPU each. */
async function admit(name, count) {
  const workload = { kind: 'Job', namespace: 'vision', name };
  const podSets = [{ count, requests: { 'nvidia.com/gpu': 1 } }];
  const decision = await engine.admit({ workload, group: 'vision', podSets });
  console.log(`${name}: ${decision.code}${decision.allowed ? '' : ` (${decision.hints.maxReplicas} of ${count} fit)`}`);
}

await admit('train', 4);
await admit('tune', 3);
console.log(`used: ${engine.status('vision').used.get('requests.nvidia.com/gpu')} GPUs`);
await engine.close();
