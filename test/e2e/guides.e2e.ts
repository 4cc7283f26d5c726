import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test, type Test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { BUSYBOX_IMAGE, NODE, TestCluster } from './cluster.js';
import { commandsOf, GuideReader } from './guide-reader.js';
import { importOwnImage } from './image.js';
import { sleepingDeployment } from './pods.js';
import { shareMounts } from './shared-mounts.js';

/** Runs the commands of the guides from other projects; a DaemonSet stands for the other's device plugin. */

const IMAGE = 'docker.io/library/gpu-manager:0.1.0';
const AGENT = 'app.kubernetes.io/name=gpu-manager';

const cluster = new TestCluster();

tap.setTimeout(timeLimit(900_000));

interface Guide {
  readonly file: string;
  /** The other project's device plugin. */
  readonly plugin: {
    readonly namespace: string;
    readonly name: string;
    readonly labels: object;
    readonly nodeSelector: object;
  };
  /** Labels of the node before. */
  readonly nodeLabels: readonly string[];
  /** What a container asks for before, and what it asks for after conversion; null if nothing is converted. */
  readonly request: Readonly<Record<string, string>>;
  /** Annotations of the pod by which it asks; absent: none. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly converted: RegExp | null;
}

const GUIDES: readonly Guide[] = [
  {
    file: 'from-time-slicing.md',
    plugin: {
      namespace: 'nvidia-device-plugin',
      name: 'nvidia-device-plugin',
      labels: { 'app.kubernetes.io/name': 'nvidia-device-plugin' },
      nodeSelector: {},
    },
    nodeLabels: [],
    request: { 'nvidia.com/gpu': '1' },
    converted: /vcuda-core"?: "?25\b[^]*vcuda-memory"?: "?80\b/,
  },
  {
    file: 'from-hami.md',
    plugin: {
      namespace: 'kube-system',
      name: 'hami-device-plugin',
      labels: { 'app.kubernetes.io/component': 'hami-device-plugin' },
      nodeSelector: { gpu: 'on' },
    },
    nodeLabels: ['gpu=on'],
    request: { 'nvidia.com/gpu': '1', 'nvidia.com/gpucores': '30', 'nvidia.com/gpumem-percentage': '10' },
    converted: /vcuda-core"?: "?30\b[^]*vcuda-memory"?: "?32\b/,
  },
  {
    file: 'from-kai.md',
    plugin: {
      namespace: 'gpu-operator',
      name: 'nvidia-device-plugin-daemonset',
      labels: { app: 'nvidia-device-plugin-daemonset' },
      nodeSelector: { 'nvidia.com/gpu.deploy.operands': 'true' },
    },
    nodeLabels: ['nvidia.com/gpu.deploy.operands=true'],
    request: {},
    annotations: {
      'nvidia.com/container.main.gpu-memory.request': '8Gi',
    },
    converted: /vcuda-core"?: "?10\b[^]*vcuda-memory"?: "?32\b/,
  },
  {
    file: 'from-tkestack.md',
    plugin: {
      namespace: 'kube-system',
      name: 'gpu-manager-daemonset',
      labels: { name: 'gpu-manager-ds' },
      nodeSelector: { 'nvidia-device-enable': 'enable' },
    },
    nodeLabels: ['nvidia-device-enable=enable'],
    request: { 'tencent.com/vcuda-core': '40', 'tencent.com/vcuda-memory': '20' },
    converted: null,
  },
];

/** It runs on the nodes on which the other's device plugin would, and does nothing. */
const pluginOf = ({ namespace, name, labels, nodeSelector }: Guide['plugin']): object => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { namespace, name },
  spec: {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        hostNetwork: true,
        terminationGracePeriodSeconds: 0,
        nodeSelector,
        tolerations: [{ operator: 'Exists' }],
        containers: [
          {
            name: 'plugin',
            image: BUSYBOX_IMAGE,
            imagePullPolicy: 'Never',
            command: ['/bin/sh', '-c', 'sleep 100000'],
          },
        ],
      },
    },
  },
});

async function podsOn(namespace: string, selector: string): Promise<string> {
  return cluster.kubectl('--namespace', namespace, 'get', 'pods', '--selector', selector, '--output', 'name');
}

/** Installs the agents as install.md says, for simulated GPUs and pods without a network. */
async function installAgents(): Promise<void> {
  const system = ['--namespace', 'kube-system'];
  await cluster.kubectl('apply', '-k', packageFile('.'));
  const env = [
    { name: 'KUBERNETES_SERVICE_HOST', value: cluster.apiServer.host },
    { name: 'KUBERNETES_SERVICE_PORT', value: String(cluster.apiServer.port) },
  ];
  for (const patch of [
    readFileSync(packageFile('etc/simulated/agent.yaml'), 'utf8'),
    JSON.stringify({
      spec: { template: { spec: { hostNetwork: true, containers: [{ name: 'gpu-manager', env }] } } },
    }),
  ])
    await cluster.kubectl(...system, 'patch', 'daemonset', 'gpu-manager', '--patch', patch);
}

async function removeAll(guide: Guide): Promise<void> {
  await cluster.kubectl('uncordon', NODE);
  await cluster.kubectl('delete', 'deployment', 'web', '--ignore-not-found', '--wait=true');
  await cluster.kubectl('delete', '-k', packageFile('.'), '--ignore-not-found', '--wait=true', '--timeout=60s');
  const { namespace, name } = guide.plugin;
  await cluster.kubectl('--namespace', namespace, 'delete', 'daemonset', name, '--ignore-not-found', '--wait=true');
  await cluster.kubectl(
    'label',
    'node',
    NODE,
    'gpu-sharing-',
    'gpu-',
    'nvidia-device-enable-',
    'nvidia.com/gpu.deploy.operands-',
  );
}

async function follow(t: Test, guide: Guide): Promise<void> {
  // Each guide begins with a node on which no agent ran.
  shareMounts('/etc/gpu-manager', t);
  const reader = new GuideReader(cluster);
  t.teardown(() => reader.close());
  t.teardown(() => removeAll(guide));
  const { plugin, converted } = guide;
  const commands = commandsOf(guide.file);
  const run = async (section: string, only?: (block: string) => boolean): Promise<void> => {
    const blocks = (commands.get(section) ?? []).filter(only ?? (() => true));
    t.ok(blocks.length > 0, `commands under "${section}"`);
    for (const block of blocks) await reader.run(block);
  };

  for (const label of guide.nodeLabels) await cluster.kubectl('label', 'node', NODE, label, '--overwrite');
  if (plugin.namespace !== 'kube-system')
    await cluster.kubectl('create', 'namespace', plugin.namespace).catch(() => undefined);
  await cluster.apply(pluginOf(plugin));
  const theirs = Object.entries(plugin.labels)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(',');
  await until("the other's device plugin", async () => (await podsOn(plugin.namespace, theirs)) !== '');

  writeFileSync(
    join(reader.directory, 'web.yaml'),
    JSON.stringify(sleepingDeployment('web', guide.request, guide.annotations)),
  );
  if (converted !== null) {
    // As the other's device plugin would offer it.
    const capacity = Object.fromEntries(Object.keys(guide.request).map((name) => [name, '100']));
    const patch = JSON.stringify({ status: { capacity } });
    await cluster.kubectl('patch', 'node', NODE, '--subresource=status', '--patch', patch);
    await reader.run('kubectl apply -f web.yaml && kubectl rollout status deployment/web --timeout=2m');
    await run('Convert');
    const shared = readFileSync(join(reader.directory, 'web-shared.yaml'), 'utf8');
    t.match(shared, converted);
    t.notMatch(shared, /nvidia\.com/);
    // These GPUs have 16 GiB.
    writeFileSync(join(reader.directory, 'web-shared.yaml'), shared.replace(/(vcuda-memory"?: )"?\d+"?/g, '$116'));
  }
  // The guide of tkestack installs the agents among its commands.
  if (commands.has('Run both on one cluster') && (commands.get('Run both on one cluster') ?? []).length > 0)
    await run('Run both on one cluster');
  await installAgents();
  t.equal(await podsOn('kube-system', AGENT), '', 'no agent runs before a node is moved');
  t.not(await podsOn(plugin.namespace, theirs), '', "the other's device plugin still runs");

  await run('Move a node', (block) => block.includes('cordon'));
  t.equal(await podsOn(plugin.namespace, theirs), '', "the other's device plugin has left the node");
  t.not(await podsOn('kube-system', AGENT), '');
  if (converted === null) await cluster.kubectl('apply', '-f', join(reader.directory, 'web.yaml'));
  else await run('Move a node', (block) => !block.includes('cordon'));
  await cluster.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s');
  // A kubelet that has only one of the two resources of a new agent refuses a pod; the deployment makes another.
  const where = 'jsonpath={.items[*].metadata.annotations.tencent\\.com/gpu-assigned}';
  const running = ['get', 'pods', '-l', 'app=web', '--field-selector', 'status.phase=Running'];
  await until('the pod to have its GPU', async () => (await cluster.kubectl(...running, '-o', where)) === 'true');

  await run('Go back', (block) => !block.startsWith('cd '));
  t.equal(await podsOn('kube-system', AGENT), '', 'the agent has left the node');
  await until("the other's device plugin to be back", async () => (await podsOn(plugin.namespace, theirs)) !== '');
  if (converted !== null) {
    const back = await cluster.kubectl('get', 'deployment', 'web', '-o', 'yaml');
    for (const key of [...Object.keys(guide.request), ...Object.keys(guide.annotations ?? {})])
      t.ok(back.includes(`${key}: `), `the pod asks for ${key} again`);
  }
}

importOwnImage(cluster.containerdSocket, IMAGE);
for (const guide of GUIDES)
  test(`the commands of docs/guides/${guide.file} convert, run both, move a node, and go back`, (t) =>
    follow(t, guide));
