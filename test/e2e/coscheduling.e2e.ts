import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { parse } from 'yaml';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';
import { AgentProcess } from './agent-process.js';
import { bareNode } from './bare-node.js';
import { TestCluster } from './cluster.js';
import { kubernetesHome } from './kubernetes-version.js';
import { podManifest } from './pods.js';

/** Gangs through the scheduler of scheduler-plugins, with the profile of docs/guides/gangs.md and our extender. */

const ENGINE = join(kubernetesHome(), 'engines/coscheduling');
const CORE = 'tencent.com/vcuda-core';
const GPUS = 4;

const cluster = new TestCluster();
if (!cluster.version.atLeast(34) || !existsSync(ENGINE)) {
  tap.plan(0, 'coscheduling is not built: run scripts/build-engines coscheduling (for Kubernetes 1.34 and later)');
  process.exit(0);
}
const agent = new AgentProcess(cluster, JSON.stringify({ gpus: Array.from({ length: GPUS }, () => ({})) }));

/** The first document of a heading of the guide that has this key. */
function fromGuide(key: string): Record<string, unknown> {
  const guide = readFileSync(packageFile('docs/guides/gangs.md'), 'utf8');
  const documents = [...guide.matchAll(/^```yaml\n([^]*?)^```/gm)].map(
    ([, text = '']) => parse(text) as Record<string, unknown>,
  );
  const found = documents.find((document) => key in document);
  if (found === undefined) throw new Error(`docs/guides/gangs.md has no document with ${key}`);
  return found;
}

interface PodObject {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly nodeName?: string };
  readonly status: { readonly phase: string };
}

async function podsOf(gang: string): Promise<readonly PodObject[]> {
  const text = await cluster.kubectl('get', 'pods', '-l', `scheduling.x-k8s.io/pod-group=${gang}`, '-o', 'json');
  return (JSON.parse(text) as { readonly items: readonly PodObject[] }).items;
}

const pod = (name: string, cores: number, gang: string | null = null, nodeSelector: object = {}): object => {
  const made = podManifest(
    name,
    [{ name: 'main', cores, memoryBlocks: 0, command: 'sleep 600' }],
    [],
    'Never',
    null,
  ) as {
    readonly metadata: object;
    readonly spec: object;
  };
  const labels = gang === null ? {} : { 'scheduling.x-k8s.io/pod-group': gang };
  return { ...made, metadata: { ...made.metadata, labels }, spec: { ...made.spec, nodeSelector } };
};

/** The PodGroup of the guide with another name and minimum, and that many pods. */
async function submit(gang: string, members: number, cores: number, nodeSelector: object = {}): Promise<void> {
  const group = fromGuide('spec') as { readonly spec: object };
  await cluster.apply({ ...group, metadata: { name: gang }, spec: { ...group.spec, minMember: members } });
  await cluster.apply(
    ...Array.from({ length: members }, (_, index) => pod(`${gang}-${index}`, cores, gang, nodeSelector)),
  );
}

const allPlaced = (gang: string, members: number): Promise<readonly PodObject[]> =>
  until(`the pods of ${gang} to be placed`, async () => {
    const pods = await podsOf(gang);
    return pods.length === members && pods.every(({ spec }) => spec.nodeName !== undefined) && pods;
  });

tap.setTimeout(600_000);
tap.before(async () => {
  await agent.start();
  cluster.processes.start('extender', process.execPath, [
    ...[MAIN, 'extender', `--kubeconfig=${cluster.kubeconfig}`, '--offer=best'],
  ]);
  await until('the extender to be ready', async () => (await fetch('http://127.0.0.1:3456/readyz')).ok, 30_000);
  await cluster.kubectl('apply', '-f', join(ENGINE, 'crd.yaml'));
  const shipped = readFileSync(packageFile('etc/extender/scheduler-config.yaml'), 'utf8');
  const config = join(cluster.directory, 'coscheduling.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      ...(parse(shipped.replace('/etc/kubernetes/scheduler.conf', cluster.kubeconfig)) as object),
      ...fromGuide('profiles'),
      leaderElection: { leaderElect: false },
    }),
  );
  await cluster.processes.stop('scheduler');
  cluster.processes.start('scheduler', join(ENGINE, 'scheduler'), [`--config=${config}`, '--secure-port=0', '--v=2']);
});
tap.teardown(async () => {
  await cluster.kubectl('delete', 'pods', '--all', '--force', '--grace-period=0').catch(() => '');
  await cluster.kubectl('delete', 'nodes', '-l', 'example.com/bare=true');
  await cluster.processes.stop('extender');
  await agent.stop();
});

test('a gang starts as a whole, on GPUs of its own', async (t) => {
  await submit('first', 3, 100);
  const pods = await allPlaced('first', 3);
  await until('them to run', async () => (await podsOf('first')).every(({ status }) => status.phase === 'Running'));
  const gpus = pods.map(({ metadata }) => metadata.annotations?.['tencent.com/predicate-gpu-idx-0']);
  t.equal(new Set(gpus).size, 3, gpus.join());
});

test('of a gang that does not fit no pod starts, and it holds no GPU against others', async (t) => {
  await submit('second', 2, 100);
  await cluster.apply(pod('alone', 100));
  await until(
    'the single pod to be placed on the last GPU',
    async () => (await cluster.get<PodObject>('pod', 'alone')).spec.nodeName !== undefined,
  );
  t.same(
    (await podsOf('second')).map(({ spec }) => spec.nodeName),
    [undefined, undefined],
  );
  await cluster.removePods('first-0', 'first-1', 'first-2');
  await allPlaced('second', 2);
  await cluster.removePods('second-0', 'second-1', 'alone');
});

test('a gang of whole nodes finds one node for each member', async (t) => {
  const labels = { 'example.com/bare': 'true' };
  const names = Array.from({ length: 4 }, (_, index) => `bare-${index}`);
  await cluster.apply(...names.map((name) => bareNode(name, { [CORE]: '800' }, { labels })));
  await until(
    'the nodes to take pods',
    async () =>
      !/NoSchedule/.test(
        await cluster.kubectl('get', 'nodes', '-l', 'example.com/bare=true', '-o', 'jsonpath={..taints}'),
      ),
  );
  await submit('large', 4, 800, labels);
  const pods = await allPlaced('large', 4);
  t.same(pods.map(({ spec }) => spec.nodeName).sort(), names);
});
