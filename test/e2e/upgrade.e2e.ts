import tap, { test, type Test } from 'tap';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster, whyNoCluster } from './cluster.js';
import { kubeletEntries } from './kubelet-entries.js';
import { builtVersions, KubernetesVersion } from './kubernetes-version.js';
import { podManifest, type TestContainer } from './pods.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';

const cluster = new TestCluster();
/** The first version whose kubelet writes device ids by NUMA node, as all later ones do. */
const FIRST = new KubernetesVersion('1.20');
const GPUS = '{"gpus":[{},{},{},{}]}';
const NAMES = ['initial', 'pair', 'part', 'whole'] as const;

tap.setTimeout(timeLimit(900_000));

/**
 * An older version whose kubelet may run beside the API server of this version (at most three minor versions older), on
 * the same container runtime.
 */
function older(): KubernetesVersion | null {
  const candidates = builtVersions().filter(
    (version) => version.atLeast(30) && version.name !== cluster.version.name && isWithinSkew(version),
  );
  return candidates.at(-1) ?? null;
}

function isWithinSkew(version: KubernetesVersion): boolean {
  const minor = (name: string): number => Number(name.slice(2));
  const skew = minor(cluster.version.name) - minor(version.name);
  return skew > 0 && skew <= 3;
}

interface ListedPod {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly containerStatuses?: readonly { readonly restartCount: number; readonly ready: boolean }[];
  };
}

const pods = async (): Promise<readonly ListedPod[]> =>
  (JSON.parse(await cluster.kubectl('get', 'pods', '-o', 'json')) as { readonly items: readonly ListedPod[] }).items;

const kubeletVersion = (): Promise<string> =>
  cluster.kubectl('get', 'node', '-o', 'jsonpath={.items[0].status.nodeInfo.kubeletVersion}');

const container = (cores: number, memoryBlocks: number, command = 'sleep 100000'): TestContainer => ({
  name: 'main',
  cores,
  memoryBlocks,
  command,
});

/** Runs a pod of each kind; they hold 330 of the 400 cores of the node. */
async function runPods(restartPolicy: string): Promise<void> {
  const before = { ...container(20, 8, 'true'), name: 'before' };
  await cluster.apply(
    podManifest('part', [container(30, 16)], [], restartPolicy),
    podManifest('initial', [container(10, 4)], [before], restartPolicy),
    podManifest('whole', [container(100, 0)], [], restartPolicy),
    podManifest('pair', [container(200, 0)], [], restartPolicy),
  );
  await podsRun();
}

const podsRun = (): Promise<unknown> =>
  until('the pods to run', async () =>
    (await pods()).every(({ status }) => status.phase === 'Running' && status.containerStatuses?.[0]?.ready === true),
  );

/** The free part of the node is allocated once, and no more. */
async function freePartIsAllocatedOnce(t: Test): Promise<void> {
  await cluster.apply(podManifest('fits', [container(50, 16)]), podManifest('too-much', [container(100, 0)]));
  await until('the later pods to be decided', async () => {
    const phases = new Map((await pods()).map(({ metadata, status }) => [metadata.name, status.phase]));
    return phases.get('fits') === 'Running' && phases.get('too-much') === 'Failed';
  });
  t.pass('what is free is allocated, and nothing twice');
}

const earlier = older();

test(
  `the kubelet is upgraded from ${earlier?.name ?? 'an older version'} to ${cluster.version.name} with GPU pods running, and no allocation is lost or doubled`,
  { skip: earlier === null ? 'no older version within three minor versions is built' : false },
  async (t) => {
    if (earlier === null) return;
    const agent = new AgentProcess(cluster, GPUS);
    t.teardown(() => agent.stop());
    await cluster.processes.stop('kubelet');
    cluster.startKubelet({ version: earlier });
    await agent.start();
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    t.match(await kubeletVersion(), `v${earlier.name}.`);
    await runPods('Never');
    const usage = await agent.usage();
    t.equal(Object.keys(usage).length, NAMES.length);

    await cluster.processes.stop('kubelet');
    cluster.startKubelet();
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    await agent.ready();
    await until('the node to report its new version', async () =>
      (await kubeletVersion()).startsWith(`v${cluster.version.name}.`),
    );
    t.same(await agent.usage(), usage, 'the same pods hold the same GPUs');
    t.same(
      (await pods()).map(({ metadata, status }) => [
        metadata.name,
        status.phase,
        status.containerStatuses?.[0]?.restartCount,
      ]),
      NAMES.map((name) => [name, 'Running', 0]),
    );
    await agent.restart();
    t.same(await agent.usage(), usage, 'the agent reads the checkpoint of the new kubelet');
    await freePartIsAllocatedOnce(t);
  },
);

// Kubernetes does not promise such a step, and the new kubelet makes all containers again: they must get the same GPUs.
test(
  `a kubelet of ${cluster.version.name} continues with the checkpoint of ${FIRST.name}, and no allocation is lost or doubled`,
  { skip: cluster.version.atLeast(30) ? (whyNoCluster(() => FIRST) ?? false) : 'needs a later version to upgrade to' },
  async (t) => {
    await cluster.stop();
    const old = new TestCluster(FIRST);
    await old.start();
    t.teardown(() => old.stop());
    const agent = new AgentProcess(old, GPUS);
    t.teardown(() => agent.stop());
    await agent.start();
    await old.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    t.match(await kubeletVersion(), `v${FIRST.name}.`);
    await runPods('Always');
    const usage = await agent.usage();
    t.equal(Object.keys(usage).length, NAMES.length);
    const written = kubeletEntries();
    t.equal(written.length, 8, 'one entry for each resource of each container');

    await cluster.takeOver();
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    await agent.ready();
    await until('the node to report its new version', async () =>
      (await kubeletVersion()).startsWith(`v${cluster.version.name}.`),
    );
    await until(
      'the containers to be made again',
      async () =>
        (await pods()).every(({ status }) => status.containerStatuses?.every(({ restartCount }) => restartCount > 0)),
      180_000,
    );
    await podsRun();
    t.same(kubeletEntries(), written, 'the new kubelet has every device of every container');
    t.same(await agent.usage(), usage, 'the same pods hold the same GPUs');
    await agent.restart();
    t.same(await agent.usage(), usage, 'the agent reads the checkpoint of the new kubelet');
    await freePartIsAllocatedOnce(t);
  },
);
