import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { nativeSkipReason } from '../containers/simulated-host.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';
import { AgentProcess } from './agent-process.js';
import { NODE, TestCluster } from './cluster.js';
import { kubernetesHome } from './kubernetes-version.js';
import { podManifest } from './pods.js';
import { SECOND_NODE, SecondNode } from './second-node.js';

/**
 * The guide of the GPU Operator: NVIDIA's device plugin and GPU feature discovery on one node, our agent on another,
 * and a node that moves between them. A loop stands for the operator and for the DaemonSet controller: it runs on a
 * node what the labels say.
 */

const NVIDIA = join(kubernetesHome(), 'engines/nvidia');
const OURS = ['GPU-0aaaaaaa-0000-0000-0000-000000000000', 'GPU-0aaaaaaa-0000-0000-0000-000000000001'];
const THEIRS = ['GPU-0bbbbbbb-0000-0000-0000-000000000000', 'GPU-0bbbbbbb-0000-0000-0000-000000000001'];

const cluster = new TestCluster();
const reason =
  nativeSkipReason() ||
  (cluster.version.atLeast(34) ? null : 'needs Kubernetes 1.34') ||
  (existsSync(NVIDIA) ? null : "NVIDIA's device plugin is not built: run scripts/build-engines nvidia");
if (reason !== null) {
  tap.plan(0, reason);
  process.exit(0);
}
const gpusOf = (uuids: readonly string[]): string => JSON.stringify({ gpus: uuids.map((uuid) => ({ uuid })) });
const agent = new AgentProcess(cluster, gpusOf(OURS));
const node = new SecondNode(cluster);
const directory = join(cluster.directory, 'gpu-operator');
const at = (name: string): string => join(directory, name);

const PLUGIN = 'nvidia-device-plugin';
const AGENT = 'agent-2';

function startPlugin(): void {
  node.run(PLUGIN, 'env', [
    ...simulatedNvml,
    join(NVIDIA, 'nvidia-device-plugin'),
    ...['--device-discovery-strategy=nvml', '--gdrcopy-enabled=false', '--gds-enabled=false', '--mofed-enabled=false'],
  ]);
}

function startAgent(): void {
  mkdirSync(at('agent'), { recursive: true });
  node.run(AGENT, process.execPath, [
    ...[MAIN, 'run', '--driver=sim', '--share-mode=true', '--allocation-check-period=2', '--query-port=15778'],
    `--sim-node=${at('gpus')}`,
    `--sim-device-path=${at('agent/devices')}`,
    `--kubeconfig=${cluster.kubeconfig}`,
    `--hostname-override=${SECOND_NODE}`,
    `--virtual-manager-path=${at('agent/vm')}`,
    `--checkpoint-path=${at('agent/checkpoint')}`,
    `--display-socket=${at('agent/display.sock')}`,
  ]);
}

const simulatedNvml = [
  `LD_LIBRARY_PATH=${packageFile('native/build/sim')}`,
  `GPU_SIM_NODE=${at('gpus')}`,
  `GPU_SIM_STATE=${at('state')}`,
];

interface NodeObject {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly status: { readonly allocatable: Readonly<Record<string, string>> };
}

/** Runs on the second node what its labels say, as the operator and the DaemonSet controller do. */
class Operator {
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  start(): void {
    this.#running = this.#loop();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    for (const name of [PLUGIN, AGENT]) await cluster.processes.stop(name);
  }

  async #loop(): Promise<void> {
    const { processes } = cluster;
    while (!this.#isStopped) {
      const { labels } = (await cluster.get<NodeObject>('node', SECOND_NODE)).metadata;
      for (const [name, wanted, begin] of [
        [PLUGIN, labels['nvidia.com/gpu.deploy.operands'] !== 'false', startPlugin],
        [AGENT, labels['nvidia-device-enable'] === 'enable', startAgent],
      ] as const) {
        if (wanted && !processes.isAlive(name)) begin();
        if (!wanted && processes.isAlive(name)) await processes.stop(name);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

const operator = new Operator();

tap.setTimeout(600_000);
tap.before(async () => {
  mkdirSync(at('state'), { recursive: true });
  writeFileSync(at('gpus'), gpusOf(THEIRS));
  await agent.start();
  await node.start();
  operator.start();
});
tap.teardown(async () => {
  await cluster.kubectl('delete', 'pods', '--all', '--force', '--grace-period=0').catch(() => '');
  await operator.stop();
  await node.stop();
  await agent.stop();
});

/** The commands of the guide below a heading, one block after another, with the second node in place of NODE. */
async function follow(heading: string, block = 0): Promise<string> {
  const guide = readFileSync(packageFile('docs/guides/gpu-operator.md'), 'utf8');
  const section = guide.split(/^## /m).find((text) => text.startsWith(heading)) ?? '';
  const commands = [...section.matchAll(/^```sh\n([^]*?)^```/gm)][block]?.[1] ?? 'exit 1';
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-euo', 'pipefail', '-c', commands.replaceAll(/\bNODE\b(?!:)/g, SECOND_NODE)],
    { env: { ...process.env, KUBECONFIG: cluster.kubeconfig } },
  );
  return stdout;
}

/** What each node offers, by the table of the guide: cores of ours, GPUs of NVIDIA's. */
async function offers(): Promise<Readonly<Record<string, string>>> {
  const [, ...rows] = (await follow('Give a node to gpu-manager', 1)).trim().split('\n');
  return Object.fromEntries(
    rows.map((row) => {
      const [name = '', ...amounts] = row.split(/\s+/);
      return [name, amounts.map((amount) => amount.replace('<none>', '0')).join('/')];
    }),
  );
}

const SHOW = 'echo UUID=$NVIDIA_VISIBLE_DEVICES; exec sleep 1000';

const nvidiaPod = (name: string): object => {
  const made = podManifest(name, [{ name: 'main', cores: 0, memoryBlocks: 0, command: SHOW }], [], 'Never', null) as {
    readonly spec: { readonly containers: readonly [object] };
  };
  const resources = { limits: { 'nvidia.com/gpu': '1' } };
  return { ...made, spec: { ...made.spec, containers: [{ ...made.spec.containers[0], resources }] } };
};

const ourPod = (name: string): object =>
  podManifest(name, [{ name: 'main', cores: 30, memoryBlocks: 4, command: SHOW }], [], 'Never', null);

interface PodObject {
  readonly spec: { readonly nodeName?: string };
  readonly status: { readonly phase: string };
}

/** The node and the GPUs of a pod when it runs. */
async function placed(name: string): Promise<{ readonly node: string | undefined; readonly uuid: string }> {
  await until(`${name} to run`, async () => (await cluster.get<PodObject>('pod', name)).status.phase === 'Running');
  // The log of a pod on the second node, whose kubelet listens on another port.
  const log = await until(`the output of ${name}`, async () => {
    const text = await cluster.kubectl('logs', name);
    return text.includes('UUID=') && text;
  });
  const { spec } = await cluster.get<PodObject>('pod', name);
  return { node: spec.nodeName, uuid: /^UUID=(.*)$/m.exec(log)?.[1] ?? '' };
}

test('each node offers its own GPUs by one of the two device plugins', async (t) => {
  await until('both to offer their GPUs', async () => {
    const { [NODE]: ours, [SECOND_NODE]: theirs } = await offers();
    return ours === '200/0' && theirs === '0/2';
  });
  t.notMatch(agent.log(), "NVIDIA's device plugin offers GPUs on this node too");
});

test('GPU feature discovery describes the GPUs of its node', async (t) => {
  const { stdout } = await promisify(execFile)('env', [
    ...simulatedNvml,
    join(NVIDIA, 'gpu-feature-discovery'),
    ...['--oneshot', '--device-discovery-strategy=nvml', '--use-node-feature-api=false', '--output-file='],
  ]);
  t.match(stdout, /^nvidia\.com\/gpu\.count=2$/m);
  t.match(stdout, /^nvidia\.com\/gpu\.product=Tesla-V100/m);
});

test('pods of both kinds run, each on the GPUs that its node offers', async (t) => {
  await cluster.apply(nvidiaPod('theirs'), ourPod('ours'));
  const [theirs, ours] = [await placed('theirs'), await placed('ours')];
  t.equal(theirs.node, SECOND_NODE);
  t.ok(THEIRS.includes(theirs.uuid), theirs.uuid);
  t.equal(ours.node, NODE);
  t.ok(OURS.includes(ours.uuid), ours.uuid);
  await cluster.removePods('theirs', 'ours');
});

test('a node moves to gpu-manager by the commands of the guide', async (t) => {
  await follow('Give a node to gpu-manager');
  t.match(await offers(), { [SECOND_NODE]: '200/0' });
  await cluster.kubectl('cordon', NODE);
  await cluster.apply(ourPod('moved'));
  const { node: on, uuid } = await placed('moved');
  t.equal(on, SECOND_NODE);
  t.ok(THEIRS.includes(uuid), 'the GPUs of that node');
  await cluster.removePods('moved');
});

test('and back', async (t) => {
  await follow('Give it back');
  t.match(await offers(), { [SECOND_NODE]: '0/2' });
  await cluster.apply(nvidiaPod('back'));
  t.ok(THEIRS.includes((await placed('back')).uuid));
  await cluster.removePods('back');
});

test('an agent beside the other device plugin says so', async (t) => {
  await cluster.kubectl('label', 'node', SECOND_NODE, 'nvidia-device-enable=enable');
  const text = "NVIDIA's device plugin offers GPUs on this node too";
  await until('the agent to log it', () => readFileSync(cluster.processes.logOf(AGENT), 'utf8').includes(text));
  await cluster.kubectl('label', 'node', SECOND_NODE, 'nvidia-device-enable-');
  await cluster.kubectl('uncordon', NODE);
  t.pass();
});
