import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { CHECKPOINT_FILE } from '../../src/gpu/ledger/checkpoint.js';
import type { ContainerKnowledge } from '../../src/agent/slices/ports.js';
import { slots } from '../../src/gpu/ledger/state.js';
import { MEMORY_BLOCK_BYTES } from '../../src/gpu/resources.js';
import { decodeVcudaConfig } from '../../src/abi/vcuda-config.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { silentLog } from '../../src/host/log.js';
import { devicePluginProto } from '../../src/rpc/proto.js';
import { scratchDirectory } from '../scratch.js';
import { register } from './slices/container-client.js';
import { cards } from './gpus.js';
import { gpuIndexes, runPod } from './node.js';
import { container, simplePod } from './pods.js';

const OLD: EmulatedPod = {
  uid: 'b0c1d2e3-0000-4000-8000-00000000000a',
  namespace: 'default',
  name: 'old',
  initContainers: [],
  containers: [container('main', 60, 32)],
};
const GONE = 'b0c1d2e3-0000-4000-8000-00000000000b';

/** The sources from which the agent may learn that the old pod runs on GPU 1. */
type Source = "the original's checkpoint" | 'the answer that the kubelet keeps';

/** A node of two GPUs on which tkestack gpu-manager ran until now, with one of its pods still running. */
async function upgradedNode(t: Test, source: Source): Promise<SimulatedNode> {
  const directory = await scratchDirectory(t);
  // The process of the test stands in the container of the old pod.
  const containers: ContainerKnowledge = {
    placeOf: async () => ({ containerId: 'd1f0'.repeat(16), podUid: OLD.uid }),
    pidsOf: async () => [process.pid],
    nameOf: async () => 'main',
  };
  const node = new SimulatedNode({ directory, gpus: cards(2), log: silentLog(), seams: { graceMs: 0, containers } });
  const { virtualManagerPath, checkpointPath, devicePluginPath } = node.config;
  for (const path of [
    checkpointPath,
    devicePluginPath,
    join(virtualManagerPath, OLD.uid, 'd1f0'.repeat(16)),
    join(virtualManagerPath, GONE),
    join(virtualManagerPath, 'something-else'),
  ]) {
    await mkdir(path, { recursive: true });
  }
  await writeFile(join(virtualManagerPath, OLD.uid, 'vcuda.sock'), '');
  const annotations: Record<string, string> =
    source === 'the answer that the kubelet keeps' ? { 'tencent.com/vcuda-device': '/dev/nvidia1' } : {};
  if (source === "the original's checkpoint") {
    const entry = { Devices: ['/dev/nvidia1'], Cores: 60, Memory: 32 * MEMORY_BLOCK_BYTES };
    await writeFile(
      join(checkpointPath, CHECKPOINT_FILE),
      JSON.stringify({ PodGPUMapping: { [OLD.uid]: { main: entry }, [GONE]: { main: entry } } }),
    );
  }
  const ids = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, at) => `${prefix}-${at + 10}`);
  const response = devicePluginProto().v1beta1.ContainerAllocateResponse.serialize({ annotations });
  const held = { podUid: OLD.uid, container: 'main', response };
  await node.kubelet.inherit(OLD, [
    { ...held, kind: 'core', ids: ids('tencent.com/vcuda-core', 60) },
    { ...held, kind: 'memory', ids: ids('tencent.com/vcuda-memory-268435456', 32) },
  ]);
  t.teardown(() => node.stop());
  await node.start();
  return node;
}

const free = (node: SimulatedNode): string[] =>
  slots(node.agent.allocator.state).map(
    ({ freeCores, freeMemoryBytes }) => `${freeCores}/${freeMemoryBytes / MEMORY_BLOCK_BYTES}`,
  );

for (const source of ["the original's checkpoint", 'the answer that the kubelet keeps'] as const) {
  test(`a pod of tkestack gpu-manager keeps its share until it ends, its GPU known from ${source}`, async (t) => {
    const node = await upgradedNode(t, source);
    t.equal(node.kubelet.allocatable('core'), 200, 'the scheduler subtracts the old pod itself');
    await node.agent.allocator.reconcile();
    t.same(free(node), ['100/64', '40/32']);
    t.same(
      (await readdir(node.config.virtualManagerPath)).sort(),
      [OLD.uid, 'something-else'],
      'directories of ended pods are removed, and no others',
    );
    t.same(gpuIndexes(await runPod(node, simplePod(100, 64))), [0], 'a whole GPU is allocated on an unused GPU');
    t.same(gpuIndexes(await runPod(node, simplePod(40, 16))), [1]);
    t.match(await node.kubelet.admit(simplePod(10, 4)), { ok: false, message: /gpu-manager: / });

    await node.kubelet.startContainer(OLD.uid, 'main');
    await node.stopAgent();
    await node.startAgent();
    t.same(free(node), ['0/0', '0/16'], 'after a restart, too');

    node.kubelet.remove(OLD.uid);
    await node.kubelet.admit({ ...simplePod(0, 0), containers: [] });
    for (let time = 0; time < 2; time += 1) await node.agent.allocator.reconcile();
    t.same(free(node), ['0/0', '60/48']);
    t.notOk((await readdir(node.config.virtualManagerPath)).includes(OLD.uid));
    t.same(gpuIndexes(await runPod(node, simplePod(60, 32))), [1]);
  });
}

test('a process of a container of tkestack gpu-manager registers as before', async (t) => {
  const node = await upgradedNode(t, "the original's checkpoint");
  const directory = join(node.config.virtualManagerPath, OLD.uid);
  await register(join(directory, 'vcuda.sock'), { pod_uid: OLD.uid, container_name: 'main' });
  const decoded = decodeVcudaConfig(await readFile(join(directory, 'main', 'vcuda.config')));
  t.match(decoded, {
    ok: true,
    config: { podUid: OLD.uid, containerName: 'main', cores: 60, gpuMemoryBytes: 32 * MEMORY_BLOCK_BYTES },
  });
  t.ok((await readdir(directory)).includes('d1f0'.repeat(16)), 'existing files stay');
});
