import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { NodeClient } from '../../src/cli/node-client.js';
import { SimDriver } from '../../src/agent/gpus/sim/sim-driver.js';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { CHECKPOINT_FILE } from '../../src/gpu/ledger/checkpoint.js';
import type { ContainerKnowledge } from '../../src/agent/runtimes/index.js';
import { slots } from '../../src/gpu/ledger/state.js';
import { MEMORY_BLOCK_BYTES } from '../../src/gpu/resources.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { silentLog } from '../../src/host/log.js';
import { devicePluginProto } from '../../src/rpc/proto.js';
import { readVcudaConfig } from '../abi/read-vcuda-config.js';
import { eventually } from '../harness/eventually.js';
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

function twoGpus(): SimDriver {
  const parsed = parseSimNode(cards(2));
  if (!parsed.ok) throw new Error(parsed.reason);
  return new SimDriver(parsed.node);
}

/** The sources from which the agent may learn that the old pod runs on GPU 1. */
type Source = "the original's checkpoint" | 'the answer that the kubelet keeps';

/** A node of two GPUs on which tkestack gpu-manager ran until now, with one of its pods still running. */
async function upgradedNode(t: Test, source: Source, driver?: SimDriver): Promise<SimulatedNode> {
  const directory = await scratchDirectory(t);
  // The process of the test stands in the container of the old pod.
  const containers: ContainerKnowledge = {
    placeOf: async () => ({ containerId: 'd1f0'.repeat(16), podUid: OLD.uid }),
    pidsOf: async () => [process.pid],
    sliceOf: () => null,
    nameOf: async () => 'main',
  };
  const node = new SimulatedNode({
    directory,
    gpus: cards(2),
    log: silentLog(),
    seams: { graceMs: 0, containers, ...(driver === undefined ? {} : { driver }) },
    config: { samplePeriodMs: 100 },
  });
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
  t.match(readVcudaConfig(await readFile(join(directory, 'main', 'vcuda.config'))), {
    podUid: OLD.uid,
    containerName: 'main',
    cores: 60,
    gpuMemoryBytes: 32 * MEMORY_BLOCK_BYTES,
  });
  t.ok((await readdir(directory)).includes('d1f0'.repeat(16)), 'existing files stay');
});

test('the display shows pods of tkestack gpu-manager with their use, and not as foreign processes', async (t) => {
  const driver = twoGpus();
  const node = await upgradedNode(t, "the original's checkpoint", driver);
  const { gpus } = await driver.inventory();
  for (const { uuid } of gpus)
    driver.setLoad(uuid, {
      utilizationPercent: 40,
      processes: [{ pid: process.pid, usedMemoryBytes: 258 << 20, utilizationPercent: 40 }],
    });
  const client = new NodeClient(node.config.displaySocket);
  t.teardown(() => client.close());
  const snapshot = await eventually(async () => {
    const taken = await client.snapshot();
    return taken.allocations[0]?.slices[0]?.pids.length === 1 && taken.gpus[0]?.foreignPids.length === 1 && taken;
  }, 'the processes of both GPUs');
  t.match(snapshot.allocations, [
    {
      owners: [{ podUid: OLD.uid, namespace: 'default', pod: 'old', container: 'main' }],
      cores: 60,
      processes: 1,
      findings: [],
      slices: [{ gpuIndex: 1, allocatedCores: 60, usedPercent: 40, usedMemoryBytes: 258 << 20, pids: [process.pid] }],
    },
  ]);
  t.same(snapshot.gpus[1]?.foreignPids, [], 'on its own GPU the process belongs to the pod');
  t.same(snapshot.gpus[0]?.foreignPids, [process.pid], 'on another GPU it is foreign');

  const answer = async (path: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${node.agent.httpPort()}${path}`)).text();
  t.match(JSON.parse(await answer('/usage')), {
    usage: {
      [OLD.uid]: {
        project: 'default',
        spec: { main: { gpu: 0.6, mem: 8192 } },
        stat: { main: { dev: [{ card_idx: '1', gpu: 40, mem: 258, pids: [process.pid], device_mem: 16384 }] } },
      },
    },
  });
  t.match(
    await answer('/metric'),
    /^container_gpu_memory_total\{pod_name="old",namespace="default",node="simulated",container_name="main",gpu_memory="gpu1"\} 258$/m,
  );
});

test('the graph shows no free memory on a GPU that one container has as a whole, as the original does', async (t) => {
  const node = await upgradedNode(t, "the original's checkpoint");
  await runPod(node, simplePod(100, 0));
  const { graph } = (await (await fetch(`http://127.0.0.1:${node.agent.httpPort()}/graph`)).json()) as {
    graph: string;
  };
  t.match(graph, /GPU0 .*allocatableCores: 0, allocatableMemory: 0\)/);
  t.match(graph, new RegExp(`GPU1 .*allocatableCores: 40, allocatableMemory: ${32 * MEMORY_BLOCK_BYTES}\\)`));
});

test("the original's own checkpoint is kept for the way back, and our restarts leave it as it is", async (t) => {
  const node = await upgradedNode(t, "the original's checkpoint");
  const kept = join(node.config.checkpointPath, `${CHECKPOINT_FILE}.original`);
  const text = await readFile(kept, 'utf8');
  t.same(Object.keys((JSON.parse(text) as { PodGPUMapping: object }).PodGPUMapping), [OLD.uid, GONE]);
  await runPod(node, simplePod(10, 4));
  await node.stopAgent();
  await node.startAgent();
  t.equal(await readFile(kept, 'utf8'), text);
  t.not(await readFile(join(node.config.checkpointPath, CHECKPOINT_FILE), 'utf8'), text);
});
