import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { decodeLimits } from '../../src/abi/limits-file.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { AgentProcess } from './agent-process.js';
import { NODE, TestCluster } from './cluster.js';
import { podManifest, readShown, SHOW, type Shown, type TestContainer } from './pods.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';

/** Four GPUs of 16 GiB; 0-1 and 2-3 share a PCIe switch. */
const GPUS = `\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\tX\tPIX\tSYS\tSYS
GPU1\tPIX\tX\tSYS\tSYS
GPU2\tSYS\tSYS\tX\tPIX
GPU3\tSYS\tSYS\tPIX\tX
`;

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, GPUS, ['--allow-resize']);

tap.setTimeout(timeLimit(900_000));
tap.teardown(() => agent.stop());

interface PodStatus {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly containerStatuses?: { readonly restartCount: number; readonly ready: boolean }[];
  };
}

const pod = (name: string): Promise<PodStatus> => cluster.get<PodStatus>('pod', name);

async function phase(name: string, wanted: string): Promise<PodStatus> {
  return until(`pod ${name} to be ${wanted}`, async () => {
    const status = await pod(name);
    return status.status.phase === wanted ? status : null;
  });
}

async function shown(name: string, container: string): Promise<Shown> {
  return readShown(await cluster.kubectl('logs', name, '-c', container));
}

/** Share and blocks of 256 MiB of the limits on disk, one entry for each container of the agent, sorted. */
function limitsOnDisk(): string[] {
  const base = join(agent.directory, 'vm');
  return readdirSync(base)
    .map((id) => {
      const decoded = decodeLimits(readFileSync(join(base, id, 'vgpu.limits')));
      if (!decoded.ok) return decoded.reason;
      const share = decoded.limits.devices.reduce((sum, device) => sum + device.share, 0);
      const blocks = decoded.limits.devices.reduce((sum, device) => sum + (device.memoryBytes ?? 0), 0) / 268_435_456;
      return `${share}/${blocks}`;
    })
    .sort();
}

const worker = (cores: number, memoryBlocks: number, name = 'main'): TestContainer => ({
  name,
  cores,
  memoryBlocks,
  command: `${SHOW}; sleep 100000`,
});

test('the node offers both resources', async (t) => {
  await agent.start();
  const node = await until('allocatable resources', async () => {
    const { status } = await cluster.get<{ status: { allocatable: Record<string, string> } }>('node', NODE);
    return status.allocatable['tencent.com/vcuda-memory'] === '256' ? status : null;
  });
  t.equal(node.allocatable['tencent.com/vcuda-core'], '400');
});

test('a part of a GPU runs to completion with its device node, environment and mounts', async (t) => {
  await cluster.apply(podManifest('part', [{ name: 'main', cores: 30, memoryBlocks: 16, command: SHOW }]));
  await phase('part', 'Succeeded');
  const seen = await shown('part', 'main');
  t.match(seen.devices, ['/dev/nvidia-uvm', '/dev/nvidia0', '/dev/nvidiactl']);
  t.equal(seen.libraryPath, '/usr/local/nvidia/lib64');
  t.equal(seen.uuids.length, 1);
  t.same(seen.readOnly, {
    '/etc/vcuda': true,
    '/etc/vcuda/usage/vgpu.usage': false,
    '/etc/vcuda/usage/vgpu.activity': false,
  });
  t.match(seen.text, /vgpu\.limits/);
  t.match(seen.text, /READABLE/, 'the device node can be opened');
  await cluster.removePods('part');
});

test('a running pod gets more of its GPU by an annotation, and its events say what came of it', async (t) => {
  await cluster.apply(podManifest('grows', [worker(30, 16)]));
  await phase('grows', 'Running');
  const resize = (cores: number, blocks: number): Promise<string> =>
    cluster.kubectl(
      ...['annotate', 'pod', 'grows', '--overwrite'],
      ...[`tencent.com/vcuda-core-resize=${cores}`, `tencent.com/vcuda-memory-resize=main=${blocks}`],
    );
  const status = async (): Promise<unknown> => {
    const { metadata } = await cluster.get<{ metadata: { annotations: Record<string, string> } }>('pod', 'grows');
    return JSON.parse(metadata.annotations['tencent.com/vcuda-resize-status'] ?? 'null');
  };
  const told = (reason: string): Promise<true> =>
    until(`the event ${reason}`, async () =>
      (await cluster.kubectl('get', 'events', '-o', 'jsonpath={.items[*].reason}')).split(' ').includes(reason)
        ? (true as const)
        : null,
    );
  await resize(80, 32);
  await told('GPUResized');
  t.ok(limitsOnDisk().includes('80/32'));
  t.same(await status(), { main: { cores: 80, memoryBlocks: 32 } });
  await resize(80, 65);
  await told('GPUResizeInfeasible');
  t.match(await status(), { main: { cores: 80, memoryBlocks: 32, pending: { reason: 'Infeasible' } } });
  await resize(40, 16);
  await until('the smaller limits', async () => (limitsOnDisk().includes('40/16') ? true : null));
  await cluster.kubectl('delete', 'pod', 'grows', '--grace-period=1');
  await until('its allocation to be freed', async () => (limitsOnDisk().includes('40/16') ? null : true));
});

test('whole GPUs, several containers and init containers each get what they requested', async (t) => {
  await cluster.apply(
    podManifest('whole', [worker(100, 0)]),
    podManifest('pair', [worker(200, 0)]),
    podManifest('two', [worker(20, 8, 'a'), worker(30, 12, 'b')]),
    podManifest('init', [worker(20, 8)], [{ name: 'before', cores: 40, memoryBlocks: 10, command: SHOW }]),
  );
  for (const name of ['whole', 'pair', 'two', 'init']) await phase(name, 'Running');
  t.equal((await shown('whole', 'main')).uuids.length, 1);
  t.equal((await shown('pair', 'main')).uuids.length, 2);
  const two = [await shown('two', 'a'), await shown('two', 'b')];
  t.ok(two.every((seen) => seen.devices.length === 3));
  t.same((await shown('init', 'main')).uuids, (await shown('init', 'before')).uuids);
  t.same(limitsOnDisk(), ['100/0', '20/8', '20/8', '200/0', '30/12', '40/10']);
});

test('cores that are not a multiple of a whole GPU are refused with the rule, and nothing of them remains', async (t) => {
  await cluster.apply(podManifest('odd', [worker(150, 8)]));
  const { status } = await phase('odd', 'Failed');
  t.equal(status.reason, 'UnexpectedAdmissionError');
  t.match(status.message, /more than one GPU and not a multiple of 100|Requested: 150/);
  await cluster.removePods('odd');
});

test('a restarted kubelet and a restarted agent find the same allocations', async (t) => {
  const before = await agent.usage();
  const limits = limitsOnDisk();
  t.ok(Object.keys(before).length >= 4, 'pods are running');
  await cluster.restartKubelet();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
  await agent.ready();
  t.same(await agent.usage(), before);
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await agent.restart(signal);
    t.same(await agent.usage(), before, signal);
    t.same(limitsOnDisk(), limits, signal);
  }
  for (const name of ['whole', 'pair', 'two', 'init']) t.equal((await pod(name)).status.phase, 'Running', name);
});

test('a container that starts again keeps its GPU and limits', async (t) => {
  await cluster.removePods('pair');
  await cluster.apply(
    podManifest(
      'again',
      [{ name: 'main', cores: 30, memoryBlocks: 16, command: `${SHOW}; sleep 2; exit 1` }],
      [],
      'OnFailure',
    ),
  );
  await until(
    'two restarts',
    async () => ((await pod('again')).status.containerStatuses?.[0]?.restartCount ?? 0) >= 2,
    120_000,
  );
  t.ok(limitsOnDisk().includes('30/16'));
  await cluster.removePods('again');
});

test('no allocation remains when all pods are deleted', async (t) => {
  await cluster.removePods('whole', 'two', 'init');
  // A kubelet releases devices of ended pods when it admits the next one.
  await cluster.apply(podManifest('last', [{ name: 'main', cores: 10, memoryBlocks: 4, command: 'true' }]));
  await phase('last', 'Succeeded');
  await until('directories to be removed', async () => limitsOnDisk().every((limits) => limits === '10/4'), 60_000);
  t.ok(Object.keys(await agent.usage()).length <= 1);
});
