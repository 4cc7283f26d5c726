import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { USAGE_FILE } from '../../src/abi/vgpu-abi.js';
import { GROUP_FINALIZER } from '../../src/kube/quota/group-object.js';
import { API_VERSION, GROUP_KIND } from '../../src/kube/quota/names.js';
import { GROUP_LABEL } from '../../src/manifests/group-label.js';
import { MAIN } from '../harness/programs.js';
import { NODE, TestCluster } from './cluster.js';
import { helm, onHostNetwork, simulatedValues } from './helm.js';
import { importOwnImage } from './image.js';
import { until } from '../harness/eventually.js';
import { QuotaProcess } from './quota-process.js';
import { shareMounts } from './shared-mounts.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const IMAGE = 'docker.io/library/gpu-manager:0.1.0';
const ADDRESS = 'http://127.0.0.1:5678';
/** `TMPFS_MAGIC` of statfs(2). */
const TMPFS = '1021994';

const cluster = new TestCluster();
const execute = promisify(execFile);
const manifest = (name: string): string => join(ROOT, name);
const system = (...args: string[]): Promise<string> => cluster.kubectl('--namespace', 'kube-system', ...args);

tap.setTimeout(600_000);

/**
 * Settings for this cluster only: pods have no network of their own, and the address of the service of the API server
 * is not reachable.
 */
function hostNetwork(): string {
  const env = [
    { name: 'KUBERNETES_SERVICE_HOST', value: cluster.apiServer.host },
    { name: 'KUBERNETES_SERVICE_PORT', value: String(cluster.apiServer.port) },
  ];
  return JSON.stringify({
    spec: { template: { spec: { hostNetwork: true, containers: [{ name: 'gpu-manager', env }] } } },
  });
}

interface PodStatus {
  readonly phase: string;
  readonly message?: string;
}

interface UsageDocument {
  readonly usage: Readonly<
    Record<
      string,
      {
        readonly stat: {
          readonly main: {
            readonly dev: readonly { readonly card_idx: string; readonly gpu?: number; readonly mem?: number }[];
          };
        };
      }
    >
  >;
}

test('installed as docs/guides/install.md describes, two pods share a GPU within their limits, and a third gets the reason why it cannot run', async (t) => {
  shareMounts('/etc/gpu-manager');
  importOwnImage(cluster.containerdSocket, IMAGE);
  await cluster.kubectl('label', 'node', NODE, 'nvidia-device-enable=enable', '--overwrite');
  await cluster.kubectl('apply', '-k', ROOT);
  await system(
    'patch',
    'daemonset',
    'gpu-manager',
    '--patch',
    readFileSync(manifest('etc/simulated/agent.yaml'), 'utf8'),
  );
  await system('patch', 'daemonset', 'gpu-manager', '--patch', hostNetwork());
  t.teardown(async () => {
    await cluster.kubectl(
      'delete',
      '-f',
      manifest('etc/simulated/pods.yaml'),
      '--ignore-not-found',
      '--force',
      '--grace-period=0',
    );
    await cluster.kubectl('delete', '-k', ROOT, '--ignore-not-found', '--wait=true', '--timeout=60s');
  });
  await system('rollout', 'status', 'daemonset/gpu-manager', '--timeout=120s');
  await until(
    'the node to offer its GPUs',
    async () =>
      (await cluster.kubectl('get', 'node', NODE, '-o', 'jsonpath={.status.allocatable.tencent\\.com/vcuda-core}')) ===
      '400',
  );

  // With the network of the node, as for every pod of this cluster; otherwise the file is unchanged.
  const pods = (
    await cluster.kubectl('create', '--dry-run=client', '-f', manifest('etc/simulated/pods.yaml'), '-o', 'json')
  )
    .split(/^(?=\{)/m)
    .map((text) => JSON.parse(text) as { spec: object });
  await cluster.apply(...pods.map((pod) => ({ ...pod, spec: { ...pod.spec, hostNetwork: true } })));
  const programs = async () => {
    const { usage } = (await (await fetch(`${ADDRESS}/usage`)).json()) as Partial<UsageDocument>;
    return Object.values(usage ?? {})
      .map(({ stat }) => stat.main.dev[0])
      .map((device) => ({ gpu: device?.card_idx, cores: device?.gpu ?? 0, mib: device?.mem ?? 0 }))
      .sort((a, b) => a.mib - b.mib);
  };
  const [small, large] = await until(
    'both programs to be at work',
    async () => {
      const found = await programs();
      return found.length === 2 && found.every(({ cores, mib }) => cores > 5 && mib > 600) && found;
    },
    90_000,
  );
  t.equal(small?.gpu, large?.gpu, 'on one GPU');
  t.ok((small?.mib ?? 0) <= 1024 && (large?.mib ?? 0) <= 2048, JSON.stringify([small, large]));
  // The first samples on a loaded machine may be of the start, before the shares are steered.
  await until('both programs to keep to their shares', async () => {
    const [thirty, fifty] = await programs();
    return (thirty?.cores ?? 100) <= 36 && (fifty?.cores ?? 100) <= 56;
  });

  // The agent mounts the usage files, and the containers see them: Bidirectional mount propagation.
  const usageFile = join('/etc/vcuda', USAGE_FILE);
  const inPod = (script: string): Promise<string> =>
    cluster.kubectl('exec', 'gpu-thirty', '--', '/usr/bin/node', '-e', script);
  const kind = await inPod(`console.log(fs.statfsSync('${usageFile}').type.toString(16))`);
  t.equal(kind, TMPFS, 'the usage file has a file system of its own');
  t.match(await (await fetch('http://127.0.0.1:5679/readyz')).text(), /ok/, 'probes have a port of their own');

  const page = await fetch(`${ADDRESS}/`);
  t.match(page.headers.get('content-type'), /text\/html/);
  t.match(await (await fetch(`${ADDRESS}/metrics`)).text(), /pod="gpu-fifty"/);

  const refused = await until('the refusal', async () => {
    const { status } = await cluster.get<{ status: PodStatus }>('pod', 'gpu-refused');
    return status.phase === 'Failed' && status;
  });
  t.match(refused.message, /150 is more than one GPU and not a multiple of 100/);
  const described = await until('its event', async () => {
    const text = await cluster.kubectl('describe', 'pod', 'gpu-refused');
    return /GPURefused/.test(text) && text;
  });
  t.match(described, /GPURefused.*150 is more than one GPU/);

  t.notMatch(await cluster.kubectl('get', 'events'), /GPUAudit/, 'no program bypasses its limits');

  // The permissions of the agent are sufficient for its work.
  t.match(await cluster.kubectl('get', 'node', NODE, '-o', 'jsonpath={.metadata.annotations}'), /gpu-inventory/);
  t.match(
    await cluster.kubectl('get', 'pod', 'gpu-thirty', '-o', 'jsonpath={.metadata.annotations}'),
    /predicate-gpu-idx-0/,
  );
  t.notMatch(await system('logs', 'daemonset/gpu-manager'), /forbidden/i);

  const written = await inPod(`fs.appendFileSync('${usageFile}', Buffer.alloc(1e6))`).catch(
    (error: Error) => error.message,
  );
  t.match(written, /ENOSPC/, 'a container cannot fill the disk with the usage file');
});

test('what an uninstalled quota left is removed by the command of docs/guides/install.md', async (t) => {
  // Its kubectl does not know the rules of definitions.
  const old = cluster.version.atLeast(25) ? [] : ['--validate=false'];
  await cluster.kubectl('apply', '-f', manifest('etc/quota/crds.yaml'), ...old);
  await cluster.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s');
  const port = 18_453;
  const { kubeconfig, directory } = cluster;
  const service = new QuotaProcess({ name: 'removed', port, kubeconfig, directory, url: `https://127.0.0.1:${port}` });
  t.teardown(() => service.end('SIGTERM'));
  await service.start();
  await cluster.apply({
    apiVersion: API_VERSION,
    kind: GROUP_KIND,
    metadata: { name: 'team' },
    spec: { hard: { pods: 10 }, namespaceSelector: {} },
  });
  await until('the finalizer of the group', async () =>
    (await cluster.kubectl('get', 'bizgroupresourcequotas', 'team', '-o', 'jsonpath={.metadata.finalizers}')).includes(
      GROUP_FINALIZER,
    ),
  );
  await cluster.kubectl('create', 'deployment', 'stays', '--image=busybox', '--replicas=0');
  t.teardown(() => cluster.kubectl('delete', 'deployment', 'stays'));
  await cluster.kubectl('label', 'deployment', 'stays', `${GROUP_LABEL}=team`);

  const remove = async (...args: readonly string[]): Promise<string> => {
    const program = [MAIN, 'quota', 'remove', '--namespace', 'default', '--kubeconfig', kubeconfig, ...args];
    return (await execute(process.execPath, program)).stdout;
  };
  await t.rejects(remove('--yes'), /removed leads: uninstall quota serve first/);
  await service.end('SIGTERM');
  await t.rejects(cluster.kubectl('delete', 'bizgroupresourcequotas', 'team'), /failed calling webhook/);
  t.match(await remove(), /^group team would be removed with --yes$/m);
  t.match(await remove('--yes'), /^group team removed$/m);
  await until('the definitions to go', async () => {
    const left = await cluster.kubectl(
      'get',
      'crd,validatingwebhookconfigurations,mutatingwebhookconfigurations',
      '-o',
      'name',
    );
    return !/quota/.test(left);
  });
  t.equal(await remove(), 'nothing of the quota is left\n');
  t.match(await cluster.kubectl('get', 'deployment', 'stays', '-o', 'jsonpath={.metadata.labels}'), /team/);
  await cluster.kubectl('scale', 'deployment', 'stays', '--replicas=1');
});

/** What scripts/release published: names with digests. */
interface Release {
  readonly version: string;
  readonly image: string;
  readonly chart: string;
}

const releaseFile = process.env['GPU_MANAGER_RELEASE'];

test(
  'a published release is installed by one helm install of its chart, upgraded and removed, and nodes pull exactly its image',
  { skip: releaseFile === undefined ? 'no release is at hand: npm run release:rehearse publishes one' : false },
  async (t) => {
    const { image, chart } = JSON.parse(readFileSync(releaseFile ?? '', 'utf8')) as Release;
    const plain = /^oci:\/\/(?:127\.0\.0\.1|localhost):/.test(chart) ? ['--plain-http'] : [];
    shareMounts('/etc/gpu-manager');
    await cluster.kubectl('label', 'node', NODE, 'nvidia-device-enable=enable', '--overwrite');
    t.teardown(() => cluster.kubectl('label', 'node', NODE, 'nvidia-device-enable-'));
    await helm(cluster, 'install', 'gpu-manager', chart, ...plain, ...simulatedValues(cluster));
    await onHostNetwork(cluster, 'gpu-manager');
    const agent = async (): Promise<{ readonly image: string; readonly args: string }> => {
      await system('rollout', 'status', 'daemonset/gpu-manager', '--timeout=180s');
      const path = '{.items[0].status.containerStatuses[0].imageID} {.items[0].spec.containers[0].args}';
      const [found = '', args = ''] = (
        await system('get', 'pods', '-l', 'app.kubernetes.io/name=gpu-manager', '-o', `jsonpath=${path}`)
      ).split(' ', 2);
      return { image: found, args };
    };
    const cores = (): Promise<string> =>
      cluster.kubectl('get', 'node', NODE, '-o', 'jsonpath={.status.allocatable.tencent\\.com/vcuda-core}');
    await until('the node to offer its GPUs', async () => (await cores()) === '400');
    const digest = image.slice(image.indexOf('@'));
    t.ok((await agent()).image.endsWith(digest), `the agent runs ${image}`);

    await helm(
      cluster,
      'upgrade',
      'gpu-manager',
      chart,
      ...plain,
      ...simulatedValues(cluster, 'agent.extraArgs={--v=4}'),
    );
    await onHostNetwork(cluster, 'gpu-manager');
    await until('the agent with the new flag', async () => (await agent()).args.includes('--v=4'));
    t.ok((await agent()).image.endsWith(digest));
    await until('the node to offer its GPUs again', async () => (await cores()) === '400');

    await helm(cluster, 'uninstall', 'gpu-manager', '--wait');
    await until('the pods of the release to end', async () => (await system('get', 'pods', '-o', 'name')) === '');
    for (const kind of ['daemonset', 'serviceaccount', 'configmap', 'networkpolicy'])
      t.notMatch(await system('get', kind, '-o', 'name'), /gpu-manager/, kind);
  },
);
