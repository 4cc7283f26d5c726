/** A watch of the API server that stays open and silent: what its cache lacks proves nothing. */
import { test } from 'tap';
import { coreIdsOf } from '../../src/gpu/ledger/allocation.js';
import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { eventually } from '../harness/eventually.js';
import { NODE_NAME, startedCluster } from './cluster.js';
import { startedDraNode } from './claims/dra-node.js';
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

/** The collections that an agent with claims follows. */
const FOLLOWED = ['pods', 'resourceclaims', 'resourceslices'] as const;

for (let bits = 0; bits < 2 ** FOLLOWED.length; bits++) {
  const silent = FOLLOWED.filter((_, at) => (bits >> at) % 2 === 1);
  test(`units follow their claims while the watches of ${silent.join(', ') || 'nothing'} are silent`, async (t) => {
    const node = await startedDraNode(t, 2, { graceMs: 0 }, { allocationCheckPeriodMs: 3_600_000 });
    const { server } = node.cluster;
    const start = async (name: string, cores: number, ...names: readonly string[]): Promise<void> => {
      server.seed('pods', {
        metadata: { name, namespace: 'team', uid: name },
        spec: {
          nodeName: NODE_NAME,
          containers: [{ name: 'main' }],
          resourceClaims: [{ name, resourceClaimName: name }],
        },
        status: { phase: 'Running' },
      });
      node.allocate(name, { cores, pods: [name] });
      t.type(await node.given(name), Array);
      await node.recordClaims(...names, name);
    };
    const compare = async (): Promise<void> => {
      for (let round = 0; round < 3; round++) await node.agent.allocator.reconcile();
    };
    await start('seen', 30);
    await eventually(() => FOLLOWED.every((followed) => server.watches(followed).length > 0), 'the watches');
    for (const followed of silent) for (const watch of server.watches(followed)) watch.silence();
    await start('unseen', 40, 'seen');
    await compare();
    t.same(node.booked(), ['30/16', '40/16'], 'both keep their units');
    for (const resource of ['pods', 'resourceclaims']) server.remove(resource, 'team', 'seen');
    await start('late', 60, 'unseen');
    await compare();
    t.same(node.booked(), ['40/16', '60/16'], 'the room of the deleted claim is free, and no other');
  });
}
