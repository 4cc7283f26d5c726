import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { memoryIdsOf } from '../../src/gpu/ledger/allocation.js';
import { CHECKPOINT_FILE } from '../../src/gpu/ledger/checkpoint.js';
import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { cards } from './gpus.js';
import { gpuIndexes, runPod, startedNode } from './node.js';
import { simplePod } from './pods.js';

const gpuNodes = ({ deviceNodes }: { readonly deviceNodes: readonly { readonly containerPath: string }[] }) =>
  deviceNodes.map(({ containerPath }) => containerPath).filter((path) => /nvidia\d/.test(path));

test('memory that the GPU of the cores lacks moves the cores to an idle GPU before any is allocated', async (t) => {
  const node = await startedNode(t, { gpus: cards(2) });
  t.same(gpuIndexes(await runPod(node, simplePod(50, 32))), [0]);
  const given = await runPod(node, simplePod(20, 48));
  t.same(gpuIndexes(given), [1]);
  t.same(gpuNodes(given), ['/dev/nvidia1'], 'one GPU and no other');
  t.equal(given.environment.NVIDIA_VISIBLE_DEVICES?.split(',').length, 1);
  t.same(gpuIndexes(await runPod(node, simplePod(20, 16))), [0], 'available memory moves nothing');
});

test('a restarted agent uses the GPU that the answer for the memory named', async (t) => {
  const node = await startedNode(t, { gpus: cards(2) });
  await runPod(node, simplePod(50, 32));
  const moved = simplePod(20, 48);
  t.same(gpuIndexes(await runPod(node, moved)), [1]);
  await node.stopAgent();
  await rm(join(node.config.checkpointPath, CHECKPOINT_FILE));
  await node.startAgent();
  await node.kubelet.startContainer(moved.uid, 'main');
  t.same(
    gpuIndexes(await runPod(node, simplePod(60, 16))),
    [1],
    'its ids are those of GPU 0, the allocation is on GPU 1',
  );
  t.notOk((await node.kubelet.admit(simplePod(10, 48))).ok, 'no GPU has that memory');
});

test('an agent that is restarted before its answer for the memory arrives names the GPU again', async (t) => {
  let isArmed = false;
  const node: SimulatedNode = await startedNode(t, {
    gpus: cards(2),
    kubelet: {
      async beforeAllocate(kind, ids) {
        if (kind !== 'memory' || !isArmed) return;
        isArmed = false;
        t.ok((await node.agent.allocator.allocate(kind, ids)).ok);
        await node.stopAgent();
        await node.startAgent();
      },
    },
  });
  await runPod(node, simplePod(50, 32));
  isArmed = true;
  const given = await runPod(node, simplePod(20, 48));
  t.same(gpuNodes(given), ['/dev/nvidia1']);
  t.same(gpuIndexes(given), [1]);
  const sizes = [...node.agent.allocator.state.allocations.values()].map((each) => memoryIdsOf(each).length);
  t.same(sizes.sort(), [32, 48]);
});

test('a kubelet that asks for no preference is not refused memory that another GPU has', async (t) => {
  const node = await startedNode(t, { gpus: cards(2), kubelet: { usesPreferences: false } });
  await runPod(node, simplePod(50, 32));
  const given = await runPod(node, simplePod(20, 48));
  t.same(gpuNodes(given), ['/dev/nvidia1']);
});
