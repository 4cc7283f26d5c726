import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { deviceName } from '../../src/gpu/claims/names.js';
import { CHECKPOINT_FILE, decodeCheckpoint, type CheckpointContent } from '../../src/gpu/ledger/checkpoint.js';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { AgentProcess } from './agent-process.js';
import { ClaimPods, share, single, specFiles, template } from './claims.js';
import { NODE, TestCluster } from './cluster.js';
import { podManifest, SHOW } from './pods.js';

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, '{"gpus":[{},{},{},{}]}');
const { gpuNodes, isUnschedulable, phase, remove, slices } = new ClaimPods(cluster, agent);
const skip = cluster.version.atLeast(36) ? false : 'shares by claims need Kubernetes 1.36';

tap.setTimeout(900_000);
tap.teardown(() => agent.stop());

/** UUID of a simulated GPU. */
const uuid = (index: number): string => `GPU-0000000${index}-0000-0000-0000-00000000000${index}`;
const mixed = (...gpus: readonly number[]): readonly string[] => [
  '--allocation=mixed',
  `--dra-gpus=${gpus.map(uuid).join()}`,
];

const gpuOf = async (name: string): Promise<number[]> =>
  (await gpuNodes(name)).map((path) => Number(/\d+$/.exec(path)?.[0])).sort((a, b) => a - b);

const vcuda = (name: string, cores: number, memoryBlocks: number): object =>
  podManifest(name, [{ name: 'main', cores, memoryBlocks, command: `${SHOW}; sleep 100000` }], [], 'Never', null);

async function offers(cores: number): Promise<void> {
  await until(
    `the node to offer ${cores} cores`,
    async () =>
      (await cluster.get<{ status: { allocatable: Record<string, string> } }>('node', NODE)).status.allocatable[
        'tencent.com/vcuda-core'
      ] === String(cores),
    120_000,
  );
}

async function publishes(...gpus: readonly number[]): Promise<void> {
  const wanted = gpus.map((gpu) => deviceName(uuid(gpu))).sort();
  await until(
    `GPUs ${gpus.join()} to be published`,
    async () => {
      const [slice] = await slices();
      return (
        // The API server leaves out an empty list.
        (slice?.spec.devices ?? [])
          .map(({ name }) => name)
          .sort()
          .join() === wanted.join()
      );
    },
    120_000,
  );
}

function checkpoint(): CheckpointContent {
  const decoded = decodeCheckpoint(readFileSync(join(agent.directory, 'checkpoint', CHECKPOINT_FILE), 'utf8'));
  if (!decoded.ok || decoded.format !== 'current') throw new Error('the checkpoint cannot be read');
  return decoded.content;
}

/** GPUs whose cores are allocated more than once, or that pods hold in both modes. */
function conflicts(): string[] {
  const { allocations, units } = checkpoint();
  return [0, 1, 2, 3].flatMap((index) => {
    const ids = allocations.flatMap(({ parts }) =>
      parts.filter(({ gpuUuid }) => gpuUuid === uuid(index)).flatMap(({ coreIds }) => coreIds),
    );
    const claims = units.flatMap(({ devices }) => devices.filter(({ gpuUuid }) => gpuUuid === uuid(index)));
    const claimed = claims.reduce((sum, { cores }) => sum + cores, 0);
    const faults: string[] = [];
    if (new Set(ids).size < ids.length || ids.length + claimed > 100)
      faults.push(`GPU ${index}: ${ids.length} core ids and ${claimed} cores of claims`);
    if (ids.length > 0 && claims.length > 0) faults.push(`GPU ${index} is held in both modes`);
    return faults;
  });
}

async function isUnschedulablePod(name: string): Promise<void> {
  await until(`${name} to be unschedulable`, async () =>
    /Insufficient tencent\.com\/vcuda-core/.test(
      await cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.conditions[*].message}'),
    ),
  );
}

test('in mixed mode pods of both kinds run at once on a node, each on the GPUs of its kind', { skip }, async (t) => {
  await agent.start(mixed(0, 1));
  await cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
  await cluster.kubectl('apply', '-f', packageFile('etc/dra/claims.yaml'));
  await offers(200);
  await publishes(0, 1);
  await cluster.apply(
    template('forty', [share(40, '2Gi')]),
    vcuda('plugin-a', 40, 8),
    vcuda('plugin-b', 40, 8),
    vcuda('plugin-whole', 100, 0),
    single('claim-a', 'forty'),
    single('claim-b', 'forty'),
    single('claim-whole', 'gpu-whole'),
  );
  for (const name of ['plugin-a', 'plugin-b', 'plugin-whole', 'claim-a', 'claim-b', 'claim-whole'])
    await phase(name, 'Running');
  const [plugin, claims] = await Promise.all([
    Promise.all(['plugin-a', 'plugin-b', 'plugin-whole'].map(gpuOf)),
    Promise.all(['claim-a', 'claim-b', 'claim-whole'].map(gpuOf)),
  ]);
  t.same([...new Set(plugin.flat())].sort(), [2, 3]);
  t.same([...new Set(claims.flat())].sort(), [0, 1]);
  t.same(conflicts(), []);
  await cluster.apply(vcuda('plugin-late', 40, 8), single('claim-late', 'forty'));
  await isUnschedulablePod('plugin-late');
  await isUnschedulable('claim-late');
  t.pass('neither kind gets what the other kind has left');
  await remove('plugin-late', 'claim-late');
});

test(
  'a GPU goes to claims when its last device plugin pod has ended, through kills of agent and kubelet',
  { skip },
  async (t) => {
    const [gpu = -1] = await gpuOf('plugin-whole');
    const [shared = -1] = await gpuOf('plugin-a');
    await agent.stop();
    await agent.start(mixed(0, 1, gpu));
    await publishes(0, 1);
    await cluster.apply(single('claim-next', 'gpu-whole'));
    await isUnschedulable('claim-next');
    t.equal((await phase('plugin-whole', 'Running')).status.phase, 'Running');
    await agent.restart('SIGKILL');
    await cluster.restartKubelet('SIGKILL');
    await cluster.kubeletIsBack('tencent.com/vcuda-core', 'tencent.com/vcuda-memory');
    await publishes(0, 1);
    t.same(conflicts(), []);
    t.equal((await phase('plugin-whole', 'Running')).status.phase, 'Running', 'its device ids are still listed');
    await remove('plugin-whole');
    await publishes(0, 1, gpu);
    await agent.restart('SIGKILL');
    await phase('claim-next', 'Running');
    t.same(await gpuOf('claim-next'), [gpu]);
    await offers(100);
    t.same(conflicts(), []);
    for (const name of ['plugin-a', 'plugin-b']) t.same(await gpuOf(name), [shared], name);
  },
);

test(
  'a GPU returns to the device plugin when its last claim has ended, through a kill of the agent',
  { skip },
  async (t) => {
    const [gpu = -1] = await gpuOf('claim-next');
    await agent.stop();
    await agent.start(mixed(0, 1));
    await publishes(0, 1);
    await cluster.apply(vcuda('plugin-next', 100, 0));
    await isUnschedulablePod('plugin-next');
    t.equal((await phase('claim-next', 'Running')).status.phase, 'Running', 'the claim keeps its GPU');
    await agent.restart('SIGKILL');
    await remove('claim-next');
    await offers(200);
    await phase('plugin-next', 'Running');
    t.same(await gpuOf('plugin-next'), [gpu]);
    t.same(conflicts(), []);
    for (const name of ['plugin-a', 'plugin-b', 'claim-a', 'claim-b', 'claim-whole'])
      t.equal((await phase(name, 'Running')).status.phase, 'Running', name);
  },
);

test('a node goes over to claims and back as a whole, and nothing of the earlier mode remains', { skip }, async (t) => {
  await remove('plugin-a', 'plugin-b', 'plugin-next', 'claim-a', 'claim-b', 'claim-whole');
  await agent.stop();
  await agent.start(['--allocation=dra']);
  await publishes(0, 1, 2, 3);
  await offers(0);
  await cluster.apply(single('claim-pair', 'gpu-pair'));
  await phase('claim-pair', 'Running');
  t.equal((await gpuOf('claim-pair')).length, 2);
  await remove('claim-pair');
  // A deletion without a grace period does not wait for the release by the kubelet.
  await until('the claims to be released', async () => specFiles().length === 0);
  await agent.stop();
  await agent.start(['--allocation=plugin']);
  await publishes();
  await offers(400);
  await cluster.apply(vcuda('plugin-all', 400, 0));
  await phase('plugin-all', 'Running');
  t.same(await gpuOf('plugin-all'), [0, 1, 2, 3]);
  t.same(conflicts(), []);
  await agent.restart('SIGTERM');
  await until('the kubelet to remove the slices of the driver', async () => (await slices()).length === 0, 120_000);
  t.equal((await phase('plugin-all', 'Running')).status.phase, 'Running');
  await remove('plugin-all');
});
