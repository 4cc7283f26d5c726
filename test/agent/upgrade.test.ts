import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test, type Test } from 'tap';
import { NodeClient } from '../../src/cli/node-client.js';
import { SimDriver } from '../../src/agent/gpus/sim/sim-driver.js';
import { parseSimNode } from '../../src/agent/gpus/sim/node.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { CHECKPOINT_FILE } from '../../src/gpu/ledger/checkpoint.js';
import type { ContainerKnowledge } from '../../src/agent/runtimes/index.js';
import { slots } from '../../src/gpu/ledger/state.js';
import { MEMORY_BLOCK_BYTES } from '../../src/gpu/resources.js';
import { DeviceManager } from '../../src/simulation/kubelet/device-manager.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { silentLog } from '../../src/host/log.js';
import { readVcudaConfig } from '../abi/read-vcuda-config.js';
import { eventually } from '../harness/eventually.js';
import { scratchDirectory } from '../scratch.js';
import { register } from './slices/container-client.js';
import { contentOf, readRecorded } from '../tkestack/recorded.js';
import type { Usage } from '../tkestack/tkestack-node.js';
import { admitted, gpuIndexes, runPod } from './node.js';
import { simplePod } from './pods.js';

/**
 * What the real daemon wrote and answered: test/tkestack. Its containers have GPU 0 (share, multi) and GPU 1 (whole).
 */
const recorded = readRecorded();
const podNamed = (name: string): EmulatedPod => {
  const found = recorded.pods.find((pod) => pod.name === name);
  if (found === undefined) throw new Error(`no pod ${name} was recorded`);
  return found;
};
const [SHARE, MULTI, WHOLE] = [podNamed('share'), podNamed('multi'), podNamed('whole')];
const GPUS = JSON.stringify(recorded.gpus);
const GONE = 'b0c1d2e3-0000-4000-8000-00000000000b';

function recordedDriver(): SimDriver {
  const parsed = parseSimNode(GPUS);
  if (!parsed.ok) throw new Error(parsed.reason);
  return new SimDriver(parsed.node);
}

/** The sources from which the agent may learn which GPUs the old pods have. */
type Source = "the original's checkpoint" | 'the answer that the kubelet keeps';

/** The node of the recording, on which tkestack gpu-manager ran until now, with its pods still running. */
async function upgradedNode(t: Test, source: Source, driver?: SimDriver): Promise<SimulatedNode> {
  const directory = await scratchDirectory(t);
  // The process of the test stands in the container of the pod "share".
  const containers: ContainerKnowledge = {
    placeOf: async () => ({ containerId: 'd1f0'.repeat(16), podUid: SHARE.uid }),
    pidsOf: async () => [process.pid],
    sliceOf: () => null,
    nameOf: async () => 'main',
  };
  const node = new SimulatedNode({
    directory,
    gpus: GPUS,
    log: silentLog(),
    seams: { graceMs: 0, containers, ...(driver === undefined ? {} : { driver }) },
    config: { samplePeriodMs: 100 },
  });
  const { virtualManagerPath, checkpointPath, devicePluginPath } = node.config;
  for (const path of [
    checkpointPath,
    devicePluginPath,
    join(virtualManagerPath, GONE),
    join(virtualManagerPath, 'something-else'),
  ])
    await mkdir(path, { recursive: true });
  for (const [name, file] of Object.entries(recorded.files)) {
    const path = join(virtualManagerPath, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, contentOf(file), { mode: Number.parseInt(file.mode, 8) });
  }
  for (const { uid } of recorded.pods) await writeFile(join(virtualManagerPath, uid, 'vcuda.sock'), '');
  if (source === "the original's checkpoint") {
    const content = JSON.parse(recorded.checkpoint) as { PodGPUMapping: Record<string, object> };
    const [first] = Object.values(content.PodGPUMapping);
    // It has pods that ended until its next look.
    const text = JSON.stringify({ PodGPUMapping: { ...content.PodGPUMapping, [GONE]: first } });
    await writeFile(join(checkpointPath, CHECKPOINT_FILE), text);
  }
  const devices = new DeviceManager();
  devices.decode(JSON.stringify(recorded.kubeletCheckpoint));
  for (const pod of recorded.pods)
    await node.kubelet.inherit(
      pod,
      devices.held
        .filter(({ podUid }) => podUid === pod.uid)
        .map((held) => (source === "the original's checkpoint" ? { ...held, response: Buffer.alloc(0) } : held)),
    );
  t.teardown(() => node.stop());
  await node.start();
  return node;
}

const free = (node: SimulatedNode): string[] =>
  slots(node.agent.allocator.state).map(
    ({ freeCores, freeMemoryBytes }) => `${freeCores}/${freeMemoryBytes / MEMORY_BLOCK_BYTES}`,
  );

for (const source of ["the original's checkpoint", 'the answer that the kubelet keeps'] as const) {
  test(`pods of tkestack gpu-manager keep their shares until they end, their GPUs known from ${source}`, async (t) => {
    const node = await upgradedNode(t, source);
    t.equal(node.kubelet.allocatable('core'), 400, 'the scheduler subtracts the old pods itself');
    await node.agent.allocator.reconcile();
    t.same(free(node), ['10/24', '0/64', '100/64', '100/64']);
    t.same(
      (await readdir(node.config.virtualManagerPath)).sort(),
      [...recorded.pods.map(({ uid }) => uid), 'something-else'].sort(),
      'directories of ended pods are removed, and no others',
    );
    t.same(gpuIndexes(await runPod(node, simplePod(200, 0))), [2, 3], 'whole GPUs are allocated on unused GPUs');
    t.same(gpuIndexes(await runPod(node, simplePod(10, 16))), [0]);
    t.match(await node.kubelet.admit(simplePod(10, 4)), { ok: false, message: /gpu-manager: / });

    await node.kubelet.startContainer(SHARE.uid, 'main');
    await node.stopAgent();
    await node.startAgent();
    t.same(free(node).slice(0, 2), ['0/8', '0/64'], 'after a restart, too');

    for (const pod of [SHARE, WHOLE]) node.kubelet.remove(pod.uid);
    await node.kubelet.admit({ ...simplePod(0, 0), containers: [] });
    for (let time = 0; time < 2; time += 1) await node.agent.allocator.reconcile();
    t.same(free(node).slice(0, 2), ['30/24', '100/64']);
    const left = await readdir(node.config.virtualManagerPath);
    t.notOk(left.includes(SHARE.uid));
    t.ok(left.includes(MULTI.uid));
    t.same(gpuIndexes(await runPod(node, simplePod(100, 0))), [1]);
    t.same(gpuIndexes(await runPod(node, simplePod(30, 24))), [0]);
  });
}

test('a process of a container of tkestack gpu-manager registers, and gets the limits that the original wrote', async (t) => {
  const node = await upgradedNode(t, "the original's checkpoint");
  const directory = join(node.config.virtualManagerPath, SHARE.uid);
  const [name, file] =
    Object.entries(recorded.files).find(([path]) => path.startsWith(SHARE.uid) && path.endsWith('vcuda.config')) ?? [];
  if (name === undefined || file === undefined) throw new Error('no file of the pod was recorded');
  await register(join(directory, 'vcuda.sock'), { pod_uid: SHARE.uid, container_name: 'main' });
  const [ours, theirs] = [await readFile(join(directory, 'main', 'vcuda.config')), contentOf(file)].map((bytes) =>
    readVcudaConfig(bytes),
  );
  t.match(ours, { cores: 30, gpuMemoryBytes: 16 * MEMORY_BLOCK_BYTES });
  // The original takes the container's name from the runtime where its library sends the id, and knows no minor
  // version.
  if (ours === undefined || theirs === undefined) throw new Error('no vcuda.config');
  t.same(
    { ...ours, driverVersion: ours.driverVersion.major },
    { ...theirs, driverVersion: theirs.driverVersion.major },
  );
  t.ok((await readdir(directory)).includes(basename(dirname(name))), 'existing files stay');
});

test('the display shows pods of tkestack gpu-manager as the original did, and not as foreign processes', async (t) => {
  const driver = recordedDriver();
  const node = await upgradedNode(t, "the original's checkpoint", driver);
  const { gpus } = await driver.inventory();
  for (const { uuid } of gpus)
    driver.setLoad(uuid, {
      utilizationPercent: 40,
      processes: [{ pid: process.pid, usedMemoryBytes: 258 << 20, utilizationPercent: 40 }],
    });
  const client = new NodeClient(node.config.displaySocket);
  t.teardown(() => client.close());
  const ofShare = async () =>
    (await client.snapshot()).allocations.find(({ owners }) => owners[0]?.podUid === SHARE.uid);
  await eventually(async () => (await ofShare())?.slices[0]?.pids.length === 1, 'the process of the pod');
  t.match(await ofShare(), {
    owners: [{ podUid: SHARE.uid, namespace: 'default', pod: 'share', container: 'main' }],
    cores: 30,
    processes: 1,
    findings: [],
    slices: [{ gpuIndex: 0, allocatedCores: 30, usedPercent: 40, usedMemoryBytes: 258 << 20, pids: [process.pid] }],
  });
  const snapshot = await eventually(async () => {
    const taken = await client.snapshot();
    return taken.gpus[1]?.foreignPids.length === 1 && taken;
  }, 'the foreign process');
  t.same(snapshot.gpus[0]?.foreignPids, [], 'on its own GPU the process belongs to the pod');
  t.same(snapshot.gpus[1]?.foreignPids, [process.pid], 'on another GPU it is foreign');

  const { usage } = JSON.parse(await answer(node, '/usage')) as { usage: Usage };
  const theirs = recorded.usage[SHARE.uid];
  t.match(usage[SHARE.uid], { project: theirs?.project, spec: theirs?.spec });
  t.match(usage[SHARE.uid]?.stat['main'], {
    dev: [{ card_idx: theirs?.stat['main']?.dev[0]?.card_idx, mem: 258, pids: [process.pid] }],
  });
  // Go and JavaScript write a fraction of 32 bits in another number of digits.
  const requests = (text: string): string[] =>
    text
      .split('\n')
      .filter((line) => line.startsWith('container_request_gpu_') && line.includes('pod_name="share"'))
      .map((line) => line.replace(/(?<=\} )[\d.]+$/, (value) => Number(value).toFixed(3)))
      .map((line) =>
        line
          .replace(/node="[^"]*"/, 'node')
          .replace(/\{(.*)\}/, (_, labels: string) => labels.split(',').sort().join()),
      )
      .sort();
  const text = await answer(node, '/metric');
  t.same(requests(text), requests(recorded.metric.join('\n')));
  t.match(
    text,
    /^container_gpu_memory_total\{pod_name="share",namespace="default",node="simulated",container_name="main",gpu_memory="gpu0"\} 258$/m,
  );
});

const answer = async (node: SimulatedNode, path: string): Promise<string> =>
  (await fetch(`http://127.0.0.1:${node.agent.httpPort()}${path}`)).text();

test('the graph is the one that the original showed', async (t) => {
  const node = await upgradedNode(t, 'the answer that the kubelet keeps');
  await node.agent.allocator.reconcile();
  const withoutUse = (lines: readonly string[]): string[] =>
    lines.map((line) => line.replace(/pids: \[.*?\], usedMemory: \d+/, 'pids, usedMemory'));
  const { graph } = JSON.parse(await answer(node, '/graph')) as { graph: string };
  t.same(withoutUse(graph.split('\n')), withoutUse(recorded.graph));
  t.match(graph, /GPU1 .*allocatableCores: 0, allocatableMemory: 0\)/, 'a whole GPU that is taken has no free memory');
});

test('the answers to Allocate have the devices, variables and annotations of the original', async (t) => {
  const node = new SimulatedNode({
    directory: await scratchDirectory(t),
    gpus: GPUS,
    log: silentLog(),
    knowsPods: true,
  });
  t.teardown(() => node.stop());
  await node.start();
  for (const pod of recorded.pods)
    for (const { name, environment, annotations, deviceNodes } of admitted(await node.kubelet.admit(pod))) {
      const theirs = recorded.allocateAnswers[`${pod.name}/${name}`] as AllocateAnswer;
      t.same(annotations, theirs.annotations, `${pod.name}/${name}`);
      t.match(environment, theirs.envs);
      t.same(
        deviceNodes.map(({ containerPath }) => basename(containerPath)).filter((path) => /nvidia\d/.test(path)),
        theirs.devices.map(({ container_path: path }) => basename(path)).filter((path) => /nvidia\d/.test(path)),
      );
    }
});

interface AllocateAnswer {
  readonly envs: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly devices: readonly { readonly container_path: string }[];
}

test("the original's own checkpoint is kept for the way back, and our restarts leave it as it is", async (t) => {
  const node = await upgradedNode(t, "the original's checkpoint");
  const kept = join(node.config.checkpointPath, `${CHECKPOINT_FILE}.original`);
  const text = await readFile(kept, 'utf8');
  t.match(JSON.parse(text), JSON.parse(recorded.checkpoint));
  await runPod(node, simplePod(10, 4));
  await node.stopAgent();
  await node.startAgent();
  t.equal(await readFile(kept, 'utf8'), text);
  t.not(await readFile(join(node.config.checkpointPath, CHECKPOINT_FILE), 'utf8'), text);
});
