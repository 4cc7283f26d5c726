import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import tap, { test } from 'tap';
import { until } from '../harness/eventually.js';
import { missingProgram } from '../ship/rendering.js';
import { NODE, TestCluster } from './cluster.js';
import { helm, onHostNetwork, simulatedValues } from './helm.js';
import { importOwnImage } from './image.js';
import { shareMounts } from './shared-mounts.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CHART = join(ROOT, 'charts/gpu-manager');
const IMAGE = 'docker.io/library/gpu-manager:0.1.0';
const skip = missingProgram('helm', 'version');

const cluster = new TestCluster();
const system = (...args: string[]): Promise<string> => cluster.kubectl('--namespace', 'kube-system', ...args);

tap.setTimeout(600_000);

const values = (...more: readonly string[]): readonly string[] => simulatedValues(cluster, 'image.local=true', ...more);

const cores = (): Promise<string> =>
  cluster.kubectl('get', 'node', NODE, '-o', 'jsonpath={.status.allocatable.tencent\\.com/vcuda-core}');

test('helm installs, upgrades and uninstalls the chart', { skip }, async (t) => {
  shareMounts('/etc/gpu-manager');
  importOwnImage(cluster.containerdSocket, IMAGE);
  await cluster.kubectl('label', 'node', NODE, 'nvidia-device-enable=enable', '--overwrite');
  await cluster.kubectl('taint', 'node', NODE, 'nvidia.com/gpu=present:NoSchedule', '--overwrite');
  t.teardown(() => cluster.kubectl('taint', 'node', NODE, 'nvidia.com/gpu-'));

  const notes = await helm(cluster, 'install', 'gpu-manager', CHART, ...values());
  t.match(notes, /The agent runs on nodes with nvidia-device-enable=enable/);
  t.notMatch(await cluster.kubectl('get', 'crd', '-o', 'name'), /quota\.gpu-manager\.io/);
  await onHostNetwork(cluster, 'gpu-manager');
  await system('rollout', 'status', 'daemonset/gpu-manager', '--timeout=120s');
  await until('the node to offer its GPUs in spite of its taint', async () => (await cores()) === '400');

  const more = values(
    'quota.enabled=true',
    'quota.replicas=0',
    'extender.enabled=true',
    'nodeConfig.flags.quiet={--sample-period=2}',
  );
  await helm(cluster, 'upgrade', 'gpu-manager', CHART, ...more);
  await onHostNetwork(cluster, 'gpu-manager-quiet');
  t.match(await cluster.kubectl('get', 'crd', '-o', 'name'), /bizgroupresourcequotas\.quota\.gpu-manager\.io/);
  await cluster.kubectl('label', 'node', NODE, 'gpu-manager.io/config=quiet');
  t.teardown(() => cluster.kubectl('label', 'node', NODE, 'gpu-manager.io/config-', 'nvidia-device-enable-'));
  const status = (name: string): Promise<string> =>
    system('get', 'daemonset', name, '-o', 'jsonpath={.status.desiredNumberScheduled} {.status.numberReady}');
  await until(
    'the agent with the flags of the label to be the only one',
    async () => (await status('gpu-manager')) === '0 0' && (await status('gpu-manager-quiet')) === '1 1',
    120_000,
  );
  const pods = await system('get', 'pods', '-l', 'gpu-manager.io/node-config=quiet', '-o', 'name');
  t.match(
    await system('exec', pods.trim(), '--', '/usr/bin/env'),
    /^EXTRA_FLAGS=--sample-period=2$/m,
    'its flags come from the ConfigMap',
  );
  await helm(cluster, 'upgrade', 'gpu-manager', CHART, ...more);

  await helm(cluster, 'uninstall', 'gpu-manager', '--wait');
  await until(
    'the pods of the release to end',
    async () => (await system('get', 'pods', '-o', 'name')) === '',
    120_000,
  );
  for (const kind of ['daemonset', 'deployment', 'configmap', 'secret', 'lease', 'networkpolicy'])
    t.notMatch(await system('get', kind, '-o', 'name'), /gpu-(manager|extender)/, kind);
  for (const kind of ['clusterrole', 'clusterrolebinding', 'validatingwebhookconfiguration'])
    t.notMatch(await cluster.kubectl('get', kind, '-o', 'name'), /gpu-(manager|extender)/, kind);
  const kept = await cluster.kubectl('get', 'crd', '-o', 'name');
  t.match(kept, /bizgroupresourcequotas\.quota\.gpu-manager\.io/, 'definitions stay, with the objects of their kinds');
  await helm(
    cluster,
    'install',
    'gpu-manager',
    CHART,
    ...values('agent.enabled=false', 'quota.enabled=true', 'quota.replicas=0'),
  );
  await helm(cluster, 'uninstall', 'gpu-manager', '--wait');
  await cluster.kubectl('delete', ...kept.split('\n').filter((name) => name.includes('quota.gpu-manager.io')));
});

test('the API server accepts every overlay', async (t) => {
  const overlays = ['.', 'etc/kustomize/agent', 'etc/kustomize/agent-extender'];
  // The policies of this overlay need Kubernetes 1.30.
  if (cluster.version.atLeast(30)) overlays.push('etc/kustomize/all');
  for (const overlay of overlays)
    t.match(
      await cluster.kubectl('apply', '--dry-run=server', '-k', join(ROOT, overlay)),
      /daemonset\.apps\/gpu-manager created \(server dry run\)/,
      overlay,
    );
});
