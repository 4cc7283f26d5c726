import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test, type Test } from 'tap';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { AgentProcess } from './agent-process.js';
import { KUBELET_CHECKPOINT, NODE, TestCluster } from './cluster.js';
import { kubeletEntries } from './kubelet-entries.js';
import { podManifest, type TestContainer } from './pods.js';
import { bootId } from './process-table.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';

/**
 * A reboot of the node while GPU pods run, on a machine that keeps its disk: `reboot.js before` starts a cluster and
 * its pods and ends without stopping anything, `reboot.js after` runs on the next boot of that machine. A file in /run
 * shows that nothing but the disk is left. scripts/test-cgroup2 runs both.
 */
const phase = process.argv[2];

const GPUS = '{"gpus":[{},{},{},{}]}';
const CORES = 400;
const IN_MEMORY = '/run/before-the-reboot';
const REPLICAS = 2;

const cluster = new TestCluster();
/** On the disk, as /etc/gpu-manager is. */
const directory = join(cluster.directory, 'agent');
const record = join(cluster.directory, 'before-the-reboot.json');

tap.setTimeout(timeLimit(900_000));

interface Before {
  readonly bootId: string;
  readonly usage: Awaited<ReturnType<AgentProcess['usage']>>;
  readonly kubelet: ReturnType<typeof kubeletEntries>;
}

interface ListedPod {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: {
    readonly containers: readonly { readonly resources: { readonly limits?: Record<string, string> } }[];
  };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly containerStatuses?: readonly { readonly restartCount: number; readonly ready: boolean }[];
  };
}

const pods = async (): Promise<readonly ListedPod[]> =>
  (JSON.parse(await cluster.kubectl('get', 'pods', '-o', 'json')) as { readonly items: readonly ListedPod[] }).items;

const runs = ({ status }: ListedPod): boolean =>
  status.phase === 'Running' && (status.containerStatuses ?? []).every(({ ready }) => ready);

const container = (cores: number, memoryBlocks: number, command = 'sleep 100000'): TestContainer => ({
  name: 'main',
  cores,
  memoryBlocks,
  command,
});

/** Two pods that a controller makes again when they fail. */
function replicaSet(): object {
  const { metadata, spec } = podManifest('owned', [container(40, 8)], [], 'Always', null) as {
    readonly metadata: { readonly labels: object };
    readonly spec: object;
  };
  const labels = { ...metadata.labels, app: 'owned' };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'owned' },
    spec: { replicas: REPLICAS, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

async function before(t: Test): Promise<void> {
  await cluster.start();
  const agent = new AgentProcess(cluster, GPUS, [], { directory });
  await agent.start();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
  const first = { ...container(20, 8, 'true'), name: 'before' };
  await cluster.apply(
    podManifest('part', [container(30, 16)], [], 'Always'),
    podManifest('initial', [container(10, 4)], [first], 'Always'),
    podManifest('whole', [container(100, 0)], [], 'Always'),
    podManifest('once', [container(15, 4)]),
    replicaSet(),
  );
  await until('the pods to run', async () => {
    const found = await pods();
    return found.length === 4 + REPLICAS && found.every(runs);
  });
  const usage = await agent.usage();
  t.equal(Object.keys(usage).length, 4 + REPLICAS);
  writeFileSync(IN_MEMORY, '');
  writeFileSync(record, JSON.stringify({ bootId: bootId(), usage, kubelet: kubeletEntries() } satisfies Before));
}

async function after(t: Test): Promise<void> {
  const earlier = JSON.parse(readFileSync(record, 'utf8')) as Before;
  t.not(bootId(), earlier.bootId, 'the machine was booted');
  t.notOk(existsSync(IN_MEMORY), 'what was in memory is lost');
  t.ok(existsSync(KUBELET_CHECKPOINT), "the kubelet's checkpoint is there");
  t.same(kubeletEntries(), earlier.kubelet, 'with the same entries');

  // containerd keeps it in /run on a node.
  rmSync(join(cluster.directory, 'containerd-state'), { recursive: true, force: true });
  await cluster.start({ keepState: true });
  const agent = new AgentProcess(cluster, GPUS, [], { directory, keepState: true });
  t.teardown(() => cluster.stop());
  // The agent is itself a pod of the node, so the kubelet is always the first.
  await agent.start();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);

  await until('every pod to be decided', async () => {
    const found = await pods();
    const owned = found.filter(({ metadata }) => metadata.name.startsWith('owned-'));
    return owned.filter(runs).length === REPLICAS && found.every((pod) => runs(pod) || pod.status.phase === 'Failed');
  });
  const found = await pods();
  for (const { metadata, status } of found)
    t.comment(
      `${metadata.name}: ${status.phase} ${status.reason ?? ''} ${status.message ?? ''}, ${status.containerStatuses?.[0]?.restartCount ?? 0} restarts`,
    );
  const running = found.filter(runs);
  await until('the agent to count the running pods and no others', async () =>
    same(
      Object.keys(await agent.usage()),
      running.map(({ metadata }) => metadata.uid),
    ),
  );
  const usage = await agent.usage();
  for (const { metadata } of running)
    if (earlier.usage[metadata.uid] !== undefined)
      t.same(usage[metadata.uid], earlier.usage[metadata.uid], `${metadata.name} has the GPUs that it had`);

  const used = running
    .flatMap(({ spec }) => spec.containers)
    .reduce((sum, { resources }) => sum + Number(resources.limits?.[CORE_RESOURCE] ?? 0), 0);
  const whole = Math.floor(CORES / 100) - wholeGpusInUse(usage);
  await cluster.apply(
    ...Array.from({ length: whole + 1 }, (_, index) => podManifest(`later-${index}`, [container(100, 0)])),
  );
  await until('the later pods to be decided', async () => {
    const later = (await pods()).filter(({ metadata }) => metadata.name.startsWith('later-'));
    return later.filter(runs).length === whole && later.filter(({ status }) => status.phase === 'Failed').length === 1;
  });
  t.pass(`${used} cores are held, ${whole} free GPUs were allocated once, and one more was refused on ${NODE}`);
}

/** GPUs of which any part is held. */
function wholeGpusInUse(usage: Before['usage']): number {
  const gpus = Object.values(usage).flatMap(({ stat }) =>
    Object.values(stat).flatMap(({ dev }) => dev.map(({ card_idx }) => card_idx)),
  );
  return new Set(gpus).size;
}

const same = (left: readonly string[], right: readonly string[]): boolean =>
  JSON.stringify([...left].sort()) === JSON.stringify([...right].sort());

if (phase === 'before') test('pods run on GPUs before the node is rebooted', before);
else if (phase === 'after')
  test('after a reboot, pods that run hold GPUs, GPUs of rejected pods are free, and none is allocated twice', after);
else throw new Error(`expected the phase before or after, found ${phase ?? 'none'}`);
