import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../../src/gpu/resources.js';
import { until } from '../harness/eventually.js';
import { KUBECTL_GPU } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';
import { AgentProcess } from './agent-process.js';
import { BUSYBOX_IMAGE, NODE, TestCluster } from './cluster.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const GPUS = '\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPIX\tX\n';

const cluster = new TestCluster();
/** Reachable from the API server at the address of the node, and only with tokens. */
const PORT = 15_679;
const FLAGS = ['--query-addr=::', '--token-review=true', '--tls-self-signed=true', `--query-port=${PORT}`];
const agent = new AgentProcess(cluster, GPUS, [...FLAGS, '--probe-port=15678']);

tap.setTimeout(timeLimit(600_000));
tap.teardown(() => agent.stop());

/** What a pod of the node's network does that does nothing. */
function idle(container: object): object {
  return {
    hostNetwork: true,
    terminationGracePeriodSeconds: 0,
    containers: [
      { image: BUSYBOX_IMAGE, imagePullPolicy: 'Never', command: ['sh', '-c', 'sleep 100000'], ...container },
    ],
  };
}

/** A DaemonSet with the labels, the name and the account of the agents, whose pod stands for the agent. */
function agentDaemonSet(): object {
  const labels = { 'app.kubernetes.io/name': 'gpu-manager' };
  const spec = { serviceAccountName: 'gpu-manager', ...idle({ name: 'gpu-manager', args: FLAGS }) };
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'gpu-manager', namespace: 'kube-system' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

/** A pod that asks for 30 cores and 16 blocks. */
function trainingPod(): object {
  const resources = { limits: { [CORE_RESOURCE]: 30, [MEMORY_RESOURCE]: 16 } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'train', namespace: 'default' },
    spec: idle({ name: 'main', resources }),
  };
}

/** A kubeconfig of a user who has the two roles of the manifests and no other rights. */
async function viewer(directory: string): Promise<string> {
  await cluster.kubectl('create', 'serviceaccount', 'jane');
  const jane = '--serviceaccount=default:jane';
  await cluster.kubectl('create', 'clusterrolebinding', 'jane', '--clusterrole=gpu-manager-viewer', jane);
  await cluster.kubectl('-n', 'kube-system', 'create', 'rolebinding', 'jane', '--role=gpu-manager-viewer', jane);
  const request = join(directory, 'token-request.json');
  writeFileSync(
    request,
    JSON.stringify({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3_600 },
    }),
  );
  const path = '/api/v1/namespaces/default/serviceaccounts/jane/token';
  const { status } = JSON.parse(await cluster.kubectl('create', '--raw', path, '-f', request)) as {
    status: { token: string };
  };
  const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')) as { users: object[] };
  config.users = [{ name: 'admin', user: { token: status.token } }];
  const file = join(directory, 'jane');
  writeFileSync(file, JSON.stringify(config));
  return file;
}

test('kubectl finds the plugin, which reads the agent through the API server with the rights of a viewer', async (t) => {
  const directory = t.testdir();
  mkdirSync(join(directory, 'bin'));
  chmodSync(KUBECTL_GPU, 0o755);
  symlinkSync(KUBECTL_GPU, join(directory, 'bin', 'kubectl-gpu'));
  const env = { ...process.env, PATH: `${join(directory, 'bin')}:${process.env.PATH}` };
  // The roles only: the DaemonSet of the manifest needs the image.
  await cluster.kubectl('apply', '-f', join(ROOT, 'daemonset.yaml'));
  t.teardown(() => cluster.kubectl('delete', '-f', join(ROOT, 'daemonset.yaml'), '--ignore-not-found', '--wait=false'));
  await cluster.kubectl('-n', 'kube-system', 'delete', 'daemonset', 'gpu-manager');
  const jane = await viewer(directory);
  const gpu = async (kubeconfig: string, ...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)('kubectl', ['gpu', ...args, '--kubeconfig', kubeconfig], { env });
    return stdout;
  };

  await agent.start();
  // The agent is a process of the node; the pod stands for it at the API server, with the node's address.
  await cluster.apply(agentDaemonSet(), trainingPod());
  for (const [namespace, labels] of [
    ['kube-system', 'app.kubernetes.io/name=gpu-manager'],
    ['default', ''],
  ] as const)
    await until(`the pod in ${namespace} to run`, async () =>
      /Running/.test(await cluster.kubectl('-n', namespace, 'get', 'pods', '-l', labels)),
    );

  const nodes = await until('the node to be shown with its slice', async () => {
    const text = await gpu(jane, 'nodes');
    return / 30\/200 /.test(text) && text;
  });
  t.match(nodes, new RegExp(`^NAME .*\n${NODE} +Ready +2 `));
  t.match(await gpu(jane, 'pods'), new RegExp(`\ntrain +Running +${NODE} +[01] +0/30 `));
  t.match(
    await gpu(jane, 'top', NODE),
    new RegExp(`^NODE +GPU +CONTAINER .*\n${NODE} +[01] +default/train/main +0/30 +0\\.0/4\\.0 GiB `),
  );
  t.match(
    await gpu(jane, 'describe', 'train'),
    /Container main: asks for 30 cores, 4\.0 GiB\n {2}GPU .*[^]*Events:[^]*Events of the agent:/,
  );
  t.match(
    await gpu(jane, 'doctor', NODE).catch((error: { stdout: string }) => error.stdout),
    /ok +access .*\n[^]*ok +driver +sim /,
  );

  await t.rejects(gpu(jane, 'limits', 'set', 'train', '--memory=2Gi'), /cannot be annotated: .*forbidden/);
  t.match(
    await gpu(cluster.kubeconfig, 'limits', 'set', 'train', '--memory=2Gi', '--share=20'),
    /vcuda-memory-limit=2Gi/,
  );
  await until('the agent to apply the limits', async () =>
    /20 of 30 .* 2\.0 of 4\.0 GiB /.test(await gpu(jane, 'limits', 'get', 'train')),
  );

  // kubectl of 1.24 and older does not know the validation rules of the definitions.
  await cluster.kubectl('apply', '--validate=false', '-f', join(ROOT, 'etc/quota/crds.yaml'));
  await until('the quota resources', async () => (await cluster.kubectl('get', 'bizgroupresourcequotas')) !== null);
  t.match(await gpu(cluster.kubeconfig, 'quota', 'create', 'company', 'limits.cpu=10'), /company created/);
  t.equal(
    await gpu(jane, 'quota', 'tree'),
    '1 group, none in the ledger: is quota serve running?\n',
    'the service that would charge it does not run',
  );
});
