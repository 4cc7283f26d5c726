import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { coreIdsOf } from '../../src/gpu/ledger/allocation.js';
import { KUBELET_CHECKPOINT_FILE } from '../../src/agent/device-plugin/internal-checkpoint.js';
import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { eventually } from '../harness/eventually.js';
import { startedCluster } from './cluster.js';
import { admitted, gpuIndexes, only, runPod, startedNode } from './node.js';
import { container, pod, simplePod } from './pods.js';

/** The tests compare the ledger themselves: the agent's own period would free what a busy machine starts late. */
const UNHURRIED = { allocationCheckPeriodMs: 3_600_000 };
/** A node that frees at the second comparison an allocation without evidence. */
const QUICK = { config: UNHURRIED, seams: { graceMs: 0 } } as const;
/** Gives the kubelet time to write its checkpoint. */
const PATIENT = { config: UNHURRIED, seams: { graceMs: 1_000 } } as const;

const held = (node: SimulatedNode): number[] =>
  [...node.agent.allocator.state.allocations.values()].map((allocation) => coreIdsOf(allocation).length);

/** Compares the ledger until these amounts are left. */
function freed(node: SimulatedNode, left: readonly number[]): Promise<boolean> {
  return eventually(async () => {
    await node.agent.allocator.reconcile();
    return held(node).join() === left.join();
  }, 'the allocation to be freed');
}

async function restartWithoutCheckpoint(node: SimulatedNode): Promise<void> {
  await node.kubelet.stop();
  await rm(join(node.config.devicePluginPath, KUBELET_CHECKPOINT_FILE));
  await node.kubelet.start();
  await node.kubelet.ready();
}

test('a pod that was deleted while the agent was down is over, although the checkpoint of the kubelet names it', async (t) => {
  const cluster = await startedCluster(t, PATIENT);
  const [over, running] = [simplePod(30, 8), simplePod(40, 8)];
  for (const wanted of [over, running]) {
    cluster.submit(wanted);
    await cluster.known(wanted);
    admitted(await cluster.admit(wanted));
    await cluster.node.kubelet.startContainer(wanted.uid, 'main');
  }
  await cluster.node.stopAgent();
  cluster.server.remove('pods', over.namespace, over.name);
  cluster.node.kubelet.remove(over.uid);
  await cluster.node.startAgent();
  t.same(held(cluster.node), [30, 40], 'the agent reads its own checkpoint');
  await freed(cluster.node, [40]);
});

test('a pod that was deleted before its container started is over', async (t) => {
  const cluster = await startedCluster(t, PATIENT);
  const waiting = simplePod(30, 8);
  cluster.submit(waiting);
  await cluster.known(waiting);
  admitted(await cluster.admit(waiting));
  t.same(held(cluster.node), [30]);
  cluster.server.remove('pods', waiting.namespace, waiting.name);
  cluster.node.kubelet.remove(waiting.uid);
  await freed(cluster.node, []);
});

test('without an API server, a pod of which nothing remains is over', async (t) => {
  const node = await startedNode(t, QUICK);
  const [over, running] = [simplePod(30, 8), simplePod(40, 8)];
  for (const wanted of [over, running]) await runPod(node, wanted);
  node.kubelet.remove(over.uid);
  await freed(node, [40]);
});

test('an init container that pod-resources does not list keeps its GPU', async (t) => {
  const cluster = await startedCluster(t, QUICK);
  const wanted = pod([container('main', 0, 0)], [container('init', 30, 8)]);
  cluster.submit(wanted);
  await cluster.known(wanted);
  admitted(await cluster.admit(wanted));
  await cluster.node.kubelet.startContainer(wanted.uid, 'init');
  await cluster.node.stopAgent();
  await cluster.node.startAgent();
  await cluster.known(wanted);
  for (let round = 0; round < 3; round += 1) await cluster.node.agent.allocator.reconcile();
  t.same(held(cluster.node), [30]);
});

test('a kubelet that lost its checkpoint cannot reallocate devices of running containers', async (t) => {
  const node = await startedNode(t, { ...PATIENT, gpus: '{"gpus":[{},{}]}' });
  const running = simplePod(60, 16);
  const given = await runPod(node, running);
  await restartWithoutCheckpoint(node);
  for (let round = 0; round < 3; round += 1) await node.agent.allocator.reconcile();
  t.same(held(node), [60], 'no confirmation is needed while the container runs');

  const whole = await runPod(node, simplePod(100, 0));
  t.not(gpuIndexes(whole)[0], gpuIndexes(given)[0], 'another GPU');
  const part = await runPod(node, simplePod(40, 16));
  t.same(gpuIndexes(part), gpuIndexes(given), 'the remaining part');
  t.notOk(
    part.coreIds.some((id) => given.coreIds.includes(id)),
    'separate ids',
  );

  const refused = await node.kubelet.admit(simplePod(10, 4));
  t.equal(refused.ok, false);
  t.match(refused, { message: /the kubelet offers devices that containers hold \(.*main\)/ });
  node.kubelet.remove(running.uid);
  await freed(node, [100, 40]);
  t.same(gpuIndexes(await runPod(node, simplePod(60, 16))), gpuIndexes(given), 'free when the container has ended');
});

test('a kubelet that asks for no preference is refused devices that running containers hold', async (t) => {
  const node = await startedNode(t, { ...QUICK, gpus: '{"gpus":[{}]}', kubelet: { usesPreferences: false } });
  const running = simplePod(60, 16);
  const given = only(admitted(await node.kubelet.admit(running)));
  await node.kubelet.startContainer(running.uid, given.name);
  await restartWithoutCheckpoint(node);
  t.match(await node.kubelet.admit(simplePod(40, 16)), { ok: false, message: /devices that containers hold/ });
  t.same(held(node), [60]);
});
