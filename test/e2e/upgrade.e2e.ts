import tap, { test } from 'tap';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { AgentProcess } from './agent-process.js';
import { TestCluster } from './cluster.js';
import { builtVersions, type KubernetesVersion } from './kubernetes-version.js';
import { podManifest } from './pods.js';
import { until } from '../harness/eventually.js';

const cluster = new TestCluster();

tap.setTimeout(900_000);

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

interface Listed {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string };
    readonly status: object;
  }[];
}

const pods = async (): Promise<Listed['items']> =>
  (JSON.parse(await cluster.kubectl('get', 'pods', '-o', 'json')) as Listed).items;

const earlier = older();

test(
  `the kubelet is upgraded from ${earlier?.name ?? 'an older version'} to ${cluster.version.name} with GPU pods running, and no allocation is lost or doubled`,
  { skip: earlier === null ? 'no older version within three minor versions is built' : false },
  async (t) => {
    if (earlier === null) return;
    const agent = new AgentProcess(cluster, '{"gpus":[{},{},{},{}]}');
    t.teardown(() => agent.stop());
    await cluster.processes.stop('kubelet');
    cluster.startKubelet({ version: earlier });
    await agent.start();
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    t.match(
      await cluster.kubectl('get', 'node', '-o', 'jsonpath={.items[0].status.nodeInfo.kubeletVersion}'),
      `v${earlier.name}.`,
    );

    const container = (cores: number, memoryBlocks: number) => ({
      name: 'main',
      cores,
      memoryBlocks,
      command: 'sleep 100000',
    });
    const before = { name: 'before', cores: 20, memoryBlocks: 8, command: 'true' };
    await cluster.apply(
      podManifest('part', [container(30, 16)]),
      podManifest('initial', [container(10, 4)], [before]),
      podManifest('whole', [container(100, 0)]),
      podManifest('pair', [container(200, 0)]),
    );
    await until('the pods to run', async () =>
      (await pods()).every(({ status }) => (status as { phase: string }).phase === 'Running'),
    );
    const usage = await agent.usage();
    t.equal(Object.keys(usage).length, 4);

    await cluster.processes.stop('kubelet');
    cluster.startKubelet();
    await cluster.kubeletIsBack(CORE_RESOURCE, MEMORY_RESOURCE);
    await agent.ready();
    await until('the node to report its new version', async () =>
      (await cluster.kubectl('get', 'node', '-o', 'jsonpath={.items[0].status.nodeInfo.kubeletVersion}')).startsWith(
        `v${cluster.version.name}.`,
      ),
    );
    t.same(await agent.usage(), usage, 'the same pods hold the same GPUs');
    t.same(
      (await pods()).map(({ metadata, status }) => [
        metadata.name,
        (status as { phase: string }).phase,
        (status as { containerStatuses: { restartCount: number }[] }).containerStatuses[0]?.restartCount,
      ]),
      ['initial', 'pair', 'part', 'whole'].map((name) => [name, 'Running', 0]),
    );
    await agent.restart();
    t.same(await agent.usage(), usage, 'the agent reads the checkpoint of the new kubelet');

    // 400 cores: 30 and 20 and 100 and 200 are held. The free part is allocated once, and no more.
    await cluster.apply(podManifest('fits', [container(50, 16)]), podManifest('too-much', [container(100, 0)]));
    await until('the later pods to be decided', async () => {
      const phases = new Map(
        (await pods()).map(({ metadata, status }) => [metadata.name, (status as { phase: string }).phase]),
      );
      return phases.get('fits') === 'Running' && phases.get('too-much') === 'Failed';
    });
    t.pass('what is free is given, and nothing twice');
  },
);
