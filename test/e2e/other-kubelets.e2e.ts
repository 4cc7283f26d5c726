import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import tap, { test, type Test } from 'tap';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { missingProgram } from '../ship/rendering.js';
import { NODE, TestCluster, type KubeletOptions } from './cluster.js';
import { helm, onHostNetwork, simulatedValues } from './helm.js';
import { importOwnImage } from './image.js';
import { podManifest, readShown, SHOW } from './pods.js';
import { shareMounts } from './shared-mounts.js';

/** Kubelets that other distributions start: with an IPv6 address, and in another directory. */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CHART = join(ROOT, 'charts/gpu-manager');
const IMAGE = 'docker.io/library/gpu-manager:0.1.0';
/** Unique local, so that it may be a node's: a kubelet takes no address of loopback. */
const ADDRESS = 'fd00:254::1';
/** Of k0s. */
const OTHER_ROOT = '/var/lib/k0s/kubelet';

const cluster = new TestCluster();
const system = (...args: string[]): Promise<string> => cluster.kubectl('--namespace', 'kube-system', ...args);

tap.setTimeout(timeLimit(900_000));

tap.before(async () => {
  shareMounts('/etc/gpu-manager');
  importOwnImage(cluster.containerdSocket, IMAGE);
  await cluster.kubectl('label', 'node', NODE, 'nvidia-device-enable=enable', '--overwrite');
});

/** Replaces the kubelet by one with these options, and waits until it reports its node. */
async function replaceKubelet(options: KubeletOptions): Promise<void> {
  const heartbeat = (): Promise<string> =>
    cluster.kubectl('get', 'node', NODE, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")]}');
  await cluster.processes.stop('kubelet');
  const before = await heartbeat();
  cluster.startKubelet(options);
  await until(
    'the other kubelet to report a ready node',
    async () => {
      const now = await heartbeat();
      return now !== before && /"status":"True"/.test(now);
    },
    timeLimit(120_000),
  );
}

/** Waits until the agent is ready and has stayed the first one of its pod; resolves to its pod. */
async function readyAgent(): Promise<{ readonly name: string; readonly address: string }> {
  await system('rollout', 'status', 'daemonset/gpu-manager', `--timeout=${timeLimit(180)}s`);
  const [name = '', address = '', restarts = ''] = (
    await system(
      ...['get', 'pods', '-l', 'app.kubernetes.io/name=gpu-manager', '-o'],
      'jsonpath={.items[0].metadata.name} {.items[0].status.podIP} {.items[0].status.containerStatuses[0].restartCount}',
    )
  ).split(' ');
  if (restarts !== '0') throw new Error(`the agent was restarted ${restarts} times`);
  return { name, address };
}

async function offersGpus(): Promise<void> {
  await until(
    'the node to offer its GPUs',
    async () =>
      (await cluster.kubectl('get', 'node', NODE, '-o', 'jsonpath={.status.allocatable.tencent\\.com/vcuda-core}')) ===
      '400',
    timeLimit(90_000),
  );
}

/** A pod gets a part of a GPU. */
async function sharesGpus(t: Test, name: string): Promise<void> {
  await cluster.apply(podManifest(name, [{ name: 'main', cores: 30, memoryBlocks: 16, command: SHOW }]));
  await until(
    'the pod to end',
    async () => (await cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.phase}')) === 'Succeeded',
    timeLimit(90_000),
  );
  t.equal(readShown(await cluster.kubectl('logs', name)).devices.filter((path) => /nvidia\d/.test(path)).length, 1);
  await cluster.removePods(name);
}

const noIpv6 = existsSync('/proc/net/if_inet6') ? false : 'this machine has no IPv6';

test(
  'on a node with an IPv6 address the probes reach the agent, and readers its page',
  { skip: missingProgram('helm', 'version') || noIpv6 },
  async (t) => {
    execFileSync('ip', ['-6', 'address', 'add', `${ADDRESS}/128`, 'dev', 'lo', 'nodad']);
    t.teardown(() => execFileSync('ip', ['-6', 'address', 'del', `${ADDRESS}/128`, 'dev', 'lo']));
    await replaceKubelet({ settings: { address: '::' }, flags: [`--node-ip=${ADDRESS}`] });
    await until(
      'the address of the node',
      async () =>
        (await cluster.kubectl(
          ...['get', 'node', NODE, '-o', 'jsonpath={.status.addresses[?(@.type=="InternalIP")].address}'],
        )) === ADDRESS,
      timeLimit(60_000),
    );
    await helm(cluster, 'install', 'gpu-manager', CHART, ...simulatedValues(cluster, 'image.local=true'));
    t.teardown(() => helm(cluster, 'uninstall', 'gpu-manager', '--wait'));
    await onHostNetwork(cluster, 'gpu-manager');
    const agent = await readyAgent();
    t.equal(agent.address, ADDRESS, 'where the kubelet probes it');
    await offersGpus();
    t.match(await (await fetch(`http://[${ADDRESS}]:5678/metrics`)).text(), /^vgpu_/m);
    t.match(await (await fetch('http://127.0.0.1:5679/readyz')).text(), /ok/, 'IPv4 is answered as well');
    await sharesGpus(t, 'ipv6');
  },
);

test('with the overlay for k0s the agent works beside a kubelet in that directory', async (t) => {
  mkdirSync(join(cluster.directory, 'k0s'), { recursive: true });
  mkdirSync('/var/lib/k0s', { recursive: true });
  execFileSync('mount', ['--bind', join(cluster.directory, 'k0s'), '/var/lib/k0s']);
  t.teardown(async () => {
    await cluster.processes.stop('kubelet');
    execFileSync('umount', ['--recursive', '--lazy', '/var/lib/k0s']);
  });
  await replaceKubelet({ flags: [`--root-dir=${OTHER_ROOT}`] });
  const overlay = join(ROOT, 'etc/kustomize/agent-k0s');
  await cluster.kubectl('apply', '-k', overlay);
  t.teardown(() => cluster.kubectl('delete', '-k', overlay, '--ignore-not-found', '--wait=true', '--timeout=60s'));
  const simulated = readFileSync(join(ROOT, 'etc/simulated/agent.yaml'), 'utf8');
  await system('patch', 'daemonset', 'gpu-manager', '--patch', simulated);
  const env = [
    { name: 'KUBERNETES_SERVICE_HOST', value: cluster.apiServer.host },
    { name: 'KUBERNETES_SERVICE_PORT', value: String(cluster.apiServer.port) },
  ];
  await system(
    ...['patch', 'daemonset', 'gpu-manager', '--patch'],
    JSON.stringify({ spec: { template: { spec: { hostNetwork: true, containers: [{ name: 'gpu-manager', env }] } } } }),
  );
  const { name } = await readyAgent();
  await offersGpus();
  await sharesGpus(t, 'other-root');
  const doctor = await system('exec', name, '--', 'gpu-manager', 'doctor').catch(
    (error: { readonly stdout?: string }) => error.stdout ?? '',
  );
  t.match(doctor, /pod-resources lists \d+ containers/, 'the socket in the other directory answers');
});
