/** A watch of the API server that stays open and silent: what its cache lacks proves nothing. */
import { test } from 'tap';
import { coreIdsOf } from '../../src/gpu/ledger/allocation.js';
import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { startedCluster } from './cluster.js';
import { admitted } from './node.js';
import { container, pod, simplePod } from './pods.js';

/** A node that frees at the second comparison an allocation without evidence. */
const QUICK = { config: { allocationCheckPeriodMs: 3_600_000 }, seams: { graceMs: 0 } } as const;

const held = (node: SimulatedNode): number[] =>
  [...node.agent.allocator.state.allocations.values()].map((allocation) => coreIdsOf(allocation).length).sort();

async function compared(node: SimulatedNode): Promise<readonly number[]> {
  for (let round = 0; round < 3; round += 1) await node.agent.allocator.reconcile();
  return held(node);
}

for (const isSilent of [false, true])
  test(`a pod whose init container has the GPU keeps it before its start, ${isSilent ? 'unseen by a silent watch' : 'seen'}`, async (t) => {
    const cluster = await startedCluster(t, QUICK);
    const first = simplePod(10, 4);
    cluster.submit(first);
    await cluster.known(first);
    if (isSilent) for (const watch of cluster.server.watches('pods')) watch.silence();
    const wanted = pod([container('main', 0, 0)], [container('init', 30, 8)]);
    cluster.submit(wanted);
    admitted(await cluster.admit(wanted));
    t.same(await compared(cluster.node), [30]);
  });
