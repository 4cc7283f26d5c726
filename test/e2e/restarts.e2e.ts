import { readFileSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import tap, { test, type Test } from 'tap';
import { readKubeletCheckpoint } from '../../src/agent/device-plugin/internal-checkpoint.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { AgentProcess } from './agent-process.js';
import { KUBELET_CHECKPOINT, NODE, TestCluster } from './cluster.js';
import { clusterClient } from './cluster-client.js';
import { startExtender } from './extender-process.js';
import { podManifest } from './pods.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';

/** At least as many blocks of memory as cores on each GPU: pods of one of each exhaust neither while others end. */
const GPUS = JSON.stringify({ gpus: Array.from({ length: 8 }, () => ({ memoryMiB: 81_920 })) });
const KUBELET_SOCKET = '/var/lib/kubelet/device-plugins/kubelet.sock';
const KUBELET_RESTARTS = 20;
const RUNNING_PODS = 10;
const AGENT_RESTARTS = 10;
const POD_PERIOD_MS = 100;
/** Pods that have not ended, beyond which no more are created. */
const MOST_WAITING = 40;

const cluster = new TestCluster();
const client = await clusterClient(cluster);

tap.setTimeout(1_800_000);
tap.teardown(async () => {
  client.close();
  for (const name of ['agent', 'plugin-proxy', 'extender']) await cluster.processes.stop(name);
});

interface ListedPod {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly containerStatuses?: readonly object[];
  };
}

async function pods(): Promise<readonly ListedPod[]> {
  return (JSON.parse(await cluster.kubectl('get', 'pods', '-o', 'json')) as { items: readonly ListedPod[] }).items;
}

const removePods = (): Promise<string> =>
  cluster.kubectl('delete', 'pods', '--all', '--wait=true', '--timeout=300s', '--grace-period=0', '--force');

/** Failed pods, with the reason of the kubelet; the list must be empty. */
const failures = (listed: readonly ListedPod[]): readonly string[] =>
  listed
    .filter(({ status }) => status.phase === 'Failed')
    .map(({ metadata, status }) => `${metadata.name}: ${status.reason ?? ''} ${status.message ?? ''}`);

/**
 * Starts pods that continue after an init container with a GPU has ended: a kubelet that restarts admits them again.
 */
async function startRunningPods(): Promise<void> {
  const running = Array.from({ length: RUNNING_PODS }, (_, index) =>
    podManifest(
      `running-${index}`,
      [{ name: 'main', cores: 10, memoryBlocks: 4, command: 'sleep 100000' }],
      [{ name: 'before', cores: 20, memoryBlocks: 8, command: 'true' }],
    ),
  );
  await cluster.apply(...running);
  await until(
    'the pods to run',
    async () => (await pods()).filter(({ status }) => status.phase === 'Running').length === RUNNING_PODS,
    180_000,
  );
}

async function stillRunning(t: Test): Promise<void> {
  t.same(
    (await pods())
      .filter(({ status }) => status.phase !== 'Running')
      .map(({ metadata, status: { phase, reason, message } }) => [metadata.name, phase, reason, message]),
    [],
    'no pod was denied',
  );
}

/** Milliseconds from the socket of the kubelet to the registration of the second resource. */
function registrationMs(log: string): number {
  const lines = log.split('\n').filter((line) => line.includes('"msg":"registered with the kubelet"'));
  const { time } = JSON.parse(lines.at(-1) ?? '{}') as { readonly time?: string };
  return Date.parse(time ?? '') - statSync(KUBELET_SOCKET).ctimeMs;
}

test(`${KUBELET_RESTARTS} restarts of the kubelet deny none of ${RUNNING_PODS} pods with GPU init containers`, async (t) => {
  const agent = new AgentProcess(cluster, GPUS);
  await agent.start();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
  await startRunningPods();
  const times: number[] = [];
  for (let restart = 0; restart < KUBELET_RESTARTS; restart += 1) {
    await cluster.restartKubelet(restart % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    times.push(registrationMs(agent.log()));
  }
  const sorted = times.map(Math.round).sort((a, b) => a - b);
  t.comment(
    `registered ${sorted[0]} to ${sorted.at(-1)} ms after the kubelet's socket, median ${sorted[sorted.length >> 1]}`,
  );
  await stillRunning(t);
  await removePods();
  await agent.stop();
});

/** Ends the processes and removes the pods that a failed test left. */
tap.afterEach(async () => {
  for (const name of ['agent', 'plugin-proxy', 'extender']) await cluster.processes.stop(name);
  await removePods();
});

/**
 * Waits until the node offers both resources, or neither. The kubelet admits pods that name their node by what it last
 * reported, every ten seconds: it may have reported the one resource and not yet the other.
 */
async function nodeOffers(expected: boolean): Promise<void> {
  await until(`the node to offer ${expected ? 'both resources' : 'no GPU'}`, async () => {
    const { status } = await cluster.get<{ status: { allocatable: Record<string, string> } }>('node', NODE);
    return [CORE_RESOURCE, MEMORY_RESOURCE].every((name) => Number(status.allocatable[name] ?? 0) > 0 === expected);
  });
}

/** The proxy, and an agent that registers with it. */
async function startBehindProxy(): Promise<AgentProcess> {
  // Of an agent before.
  await nodeOffers(false);
  const directory = '/var/run/gm-e2e-proxy';
  const agent = new AgentProcess(cluster, GPUS, [`--plugin-proxy-path=${directory}`]);
  cluster.processes.start('plugin-proxy', process.execPath, [
    MAIN,
    'plugin-proxy',
    `--plugin-proxy-path=${directory}`,
    '--agent-timeout=60',
  ]);
  await until('the proxy', async () =>
    readFileSync(cluster.processes.logOf('plugin-proxy'), 'utf8').includes('the device plugin proxy started'),
  );
  await agent.start();
  await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
  await nodeOffers(true);
  return agent;
}

const isEnded = ({ status }: ListedPod): boolean => status.phase === 'Succeeded' || status.phase === 'Failed';

/**
 * Creates a pod every 100 ms during `action`, unless too many have not ended, waits until all have, and returns their
 * failures.
 */
async function podsDuring(
  prefix: string,
  node: string | null,
  action: () => Promise<void>,
): Promise<readonly string[]> {
  let created = 0;
  let isOver = false;
  const creating = (async () => {
    while (!isOver) {
      const next = delay(POD_PERIOD_MS);
      created += 1;
      const body = podManifest(
        `${prefix}-${created}`,
        [{ name: 'main', cores: 1, memoryBlocks: 1, command: 'true' }],
        [],
        'Never',
        node,
      );
      const answer = await client.request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body });
      if (!answer.ok) throw new Error(answer.message);
      await next;
      // A slow machine starts fewer pods than come.
      if (created % 10 === 0)
        await until(
          'pods to end',
          async () => isOver || created - (await pods()).filter(isEnded).length <= MOST_WAITING,
          300_000,
        );
    }
  })();
  try {
    await action();
  } finally {
    isOver = true;
    await creating;
  }
  const ended = await until(
    `${created} pods to end`,
    async () => {
      const listed = await pods();
      return listed.length === created && listed.every(isEnded) && listed;
    },
    900_000,
  );
  await removePods();
  return failures(ended);
}

for (const extender of [false, true]) {
  const how = extender ? 'placed by the extender' : 'on a node that is named';
  test(`pods every ${POD_PERIOD_MS} ms, ${how}, run without failure during ${AGENT_RESTARTS} restarts of the agent`, async (t) => {
    const agent = await startBehindProxy();
    if (extender) await startExtender(cluster);
    const failed = await podsDuring(extender ? 'placed' : 'named', extender ? null : NODE, async () => {
      for (let restart = 0; restart < AGENT_RESTARTS; restart += 1) {
        await delay(500);
        if (restart % 2 === 0) await agent.handOver();
        else await agent.restart(restart % 4 === 1 ? 'SIGTERM' : 'SIGKILL');
      }
    });
    t.same(failed, []);
    await agent.stop();
    await cluster.processes.stop('plugin-proxy');
  });
}

test('a concurrent restart of kubelet and agent denies no running pod, and no new one', async (t) => {
  const agent = await startBehindProxy();
  await startRunningPods();
  for (let restart = 0; restart < 3; restart += 1) {
    await Promise.all([cluster.restartKubelet('SIGKILL'), agent.restart('SIGKILL')]);
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    const name = `new-${restart}`;
    await cluster.apply(podManifest(name, [{ name: 'main', cores: 10, memoryBlocks: 4, command: 'sleep 100000' }]));
    // A kubelet that is killed before it has admitted a pod admits it at its next start, maybe before any plugin.
    const { metadata } = await cluster.get<{ metadata: { uid: string } }>('pod', name);
    await until('the kubelet to have devices of both kinds for the pod', async () => {
      const checkpoint = await readKubeletCheckpoint(KUBELET_CHECKPOINT);
      return checkpoint.ok && checkpoint.entries.filter(({ podUid }) => podUid === metadata.uid).length === 2;
    });
  }
  await until(
    'the new pods to start',
    async () => (await pods()).every(({ status }) => status.phase !== 'Pending'),
    120_000,
  );
  const listed = await pods();
  const isDenied = ({ status }: ListedPod): boolean => status.phase === 'Failed' && status.reason !== undefined;
  t.same(failures(listed.filter(isDenied)), [], 'no pod was denied');
  const isOld = ({ metadata }: ListedPod): boolean => metadata.name.startsWith('running-');
  t.same(
    listed.filter((pod) => isOld(pod) && pod.status.phase !== 'Running').map(({ metadata }) => metadata.name),
    [],
    'the pods that ran before run',
  );
  // A kubelet that was killed while it started a container may end that container and start no other.
  for (const { metadata, status } of listed)
    if (status.phase === 'Failed')
      t.comment(`${metadata.name} was admitted and ended: ${JSON.stringify(status.containerStatuses ?? null)}`);
  await removePods();
});
