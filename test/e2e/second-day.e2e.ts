import { existsSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test, type Test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { missingProgram } from '../ship/rendering.js';
import { NODE, TestCluster } from './cluster.js';
import { commandsOf, GuideReader } from './guide-reader.js';
import { helm, onHostNetwork, simulatedValues } from './helm.js';
import { importOwnImage } from './image.js';
import { sleepingDeployment } from './pods.js';
import { shareMounts } from './shared-mounts.js';

/** Follows the guides of the second day: idle GPUs, maintenance of a node, going back to an earlier revision. */

const CHART = packageFile('charts/gpu-manager');
const IMAGE = 'docker.io/library/gpu-manager:0.1.0';
const AGENT_READY = ['rollout', 'status', 'daemonset/gpu-manager', '--timeout=120s'] as const;

const cluster = new TestCluster();
const system = (...args: readonly string[]): Promise<string> => cluster.kubectl('--namespace', 'kube-system', ...args);
const skip = missingProgram('helm', 'version');

tap.setTimeout(timeLimit(900_000));

const notebook = sleepingDeployment('notebook', { 'tencent.com/vcuda-core': '40', 'tencent.com/vcuda-memory': '20' });

/** Name and UID of the notebook's pod once it has its GPU. */
async function notebookPod(): Promise<{ readonly name: string; readonly uid: string }> {
  const fields = '{.metadata.name} {.metadata.uid} {.metadata.annotations.tencent\\.com/gpu-assigned}{"\\n"}';
  const read = async (): Promise<readonly string[] | null> => {
    const running = ['-l', 'app=notebook', '--field-selector', 'status.phase=Running'];
    const lines = await cluster.kubectl('get', 'pods', ...running, '-o', `jsonpath={range .items[*]}${fields}{end}`);
    return (
      lines
        .split('\n')
        .map((line) => line.split(' '))
        .find(([, , assigned]) => assigned === 'true') ?? null
    );
  };
  const [name = '', uid = ''] = await until('the notebook to have its GPU', read, 120_000);
  return { name, uid };
}

const values = (...more: readonly string[]): readonly string[] =>
  simulatedValues(cluster, 'image.local=true', 'quota.enabled=true', 'quota.replicas=0', ...more);

let reader: GuideReader;

async function section(t: Test, file: string, heading: string, words: Readonly<Record<string, string>> = {}) {
  const blocks = commandsOf(file).get(heading) ?? [];
  t.ok(blocks.length > 0, `commands under "${heading}" of ${file}`);
  let printed = '';
  for (const block of blocks) printed += await reader.run(block, words);
  return printed;
}

test('the guides of the second day', { skip }, async (t) => {
  reader = new GuideReader(cluster);
  t.teardown(() => reader.close());
  shareMounts('/etc/gpu-manager', t);
  importOwnImage(cluster.containerdSocket, IMAGE);
  await cluster.kubectl('label', 'node', NODE, 'nvidia-device-enable=enable', '--overwrite');
  t.teardown(() => cluster.kubectl('label', 'node', NODE, 'nvidia-device-enable-'));
  await helm(cluster, 'install', 'gpu-manager', CHART, ...values());
  t.teardown(() => helm(cluster, 'uninstall', 'gpu-manager', '--wait'));
  await onHostNetwork(cluster, 'gpu-manager');
  await system(...AGENT_READY);
  await cluster.apply(notebook);
  t.teardown(() => cluster.kubectl('delete', 'deployment', 'notebook', '--wait=true'));

  await t.test('idle: the pod that holds a GPU without using it is listed', async (t) => {
    const { name } = await notebookPod();
    // The guide asks for hours; the pod is a minute old.
    await until(
      'the pod to be idle',
      async () => (await reader.run('kubectl gpu idle -A --for 1m')).includes(name),
      180_000,
    );
    t.match(await reader.run('kubectl gpu idle -n default --for 1m -o name'), `pod/${name}`);
    t.match(await reader.run('kubectl gpu usage --by namespace --since 7d'), /^default /m);
  });

  await t.test('maintenance: the node is emptied, and takes pods again', async (t) => {
    const { name } = await notebookPod();
    const words = { POD: name, NAMESPACE: 'default' };
    t.match(await section(t, 'node-maintenance.md', '1. See who is there', words), name);
    await section(t, 'node-maintenance.md', '2. Empty the node');
    await until('the GPUs to be free', async () => /\s0$/m.test(await reader.run('kubectl gpu nodes NODE')), 60_000);
    t.match(await system('get', 'pods', '-l', 'app.kubernetes.io/name=gpu-manager', '-o', 'name'), /^pod\//);
    // An agent on simulated GPUs runs no checks, so doctor fails.
    const [service = ''] = commandsOf('node-maintenance.md').get('4. Take it back into service') ?? [];
    t.match(service, /kubectl gpu doctor NODE/);
    await reader.run(service.replace(/^(kubectl gpu doctor NODE).*$/m, '$1 || true'));
    t.not((await notebookPod()).name, name, 'the node takes pods again');
  });

  await t.test('roll back: the revision before runs, and the pod keeps its GPU', async (t) => {
    const before = await notebookPod();
    await helm(cluster, 'upgrade', 'gpu-manager', CHART, ...values('agent.extraArgs={--sample-period=2}'));
    await system(...AGENT_READY);
    await section(t, 'roll-back.md', '1. Before you begin');
    await section(t, 'roll-back.md', '2. Quota');
    await section(t, 'roll-back.md', '3. Everything else', { REVISION: '1' });
    await system(...AGENT_READY);
    t.notMatch(await system('get', 'daemonset', 'gpu-manager', '-o', 'yaml'), /sample-period=2/);
    t.match(await section(t, 'roll-back.md', '5. Check'), new RegExp(`${NODE} +Ready`));
    t.same(await notebookPod(), before, 'the pod was not made again');
    t.match(await helm(cluster, 'history', 'gpu-manager'), /Rollback to 1/);
    t.ok(existsSync(join(reader.directory, 'groups.yaml')));
  });
});
