import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { eventually } from '../harness/eventually.js';
import { KUBECTL_GPU } from '../harness/programs.js';
import { deployment, QuotaCluster } from '../quota-controller/cluster.js';
import { Commands, type CommandLine, type Ended } from './commands.js';

const commands = new Commands();

const directory = await mkdtemp(join(tmpdir(), 'gm-quota-cluster-'));
/** A cluster with a company of two teams that have Deployments. The commands read it and change nothing. */
const cluster = await QuotaCluster.start();
tap.teardown(async () => {
  await commands.close();
  await cluster.stop();
  await rm(directory, { recursive: true });
});
await writeFile(join(directory, 'kubeconfig'), kubeconfig(cluster.server, {}));
await cluster.createGroup('company', { 'limits.cpu': 100, pods: 50 });
await cluster.createGroup('vision', { 'limits.cpu': 10, pods: 20 }, 'company');
await cluster.createGroup('speech', { 'limits.cpu': 40, pods: 20 }, 'company');
await cluster.deploy('web', 'vision', 4, 2);
await cluster.deploy('api', 'vision', 1, 1);
await cluster.deploy('bot', 'speech', 1, 30);
await eventually(
  () => cluster.used('vision') === '9' && cluster.used('speech') === '30',
  'the Deployments to be in the ledger',
);

const ENVIRONMENT = { PATH: process.env.PATH ?? '', HOME: directory, KUBECONFIG: join(directory, 'kubeconfig') };

function run(program: CommandLine['program'], ...args: readonly string[]): Promise<Ended> {
  return commands.run({ program, args, env: ENVIRONMENT, directory, input: '' });
}

function quota(...args: readonly string[]): Promise<Ended> {
  return run('gpu-manager', 'quota', ...args);
}

test('tree shows limits and usage of groups, children below their parents, or one branch', async (t) => {
  const { out, code } = await quota('tree');
  t.equal(code, 0);
  t.match(
    out,
    /^GROUP .*\ncompany +limits\.cpu +100 +50 +0 +50 +50%\n +pods .*\n {2}speech +limits\.cpu +40 +30 +30 +10 +75%\n.*\n {2}vision +limits\.cpu +10 +9 +9 +1 +90%\n/,
  );
  const branch = await quota('tree', 'vision', '-o', 'json');
  t.match(
    branch.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    [{ name: 'vision', parent: 'company', used: { 'limits.cpu': '9' }, workloads: 2 }],
  );
  const missing = await quota('tree', 'nobody');
  t.match(missing, { code: 1, err: /no group nobody/ });
});

test('top lists groups and workloads by how near they are to their limits, or by one limit', async (t) => {
  const groups = (await quota('top')).out
    .split('\n')
    .slice(1, -1)
    .map((line) => line.split(/ +/).slice(0, 5));
  t.strictSame(groups, [
    ['vision', 'limits.cpu', '9', '10', '90%'],
    ['company', 'pods', '40', '50', '80%'],
    ['speech', 'limits.cpu', '30', '40', '75%'],
  ]);
  const workloads = (await quota('top', 'workloads', '--by', 'limits.cpu')).out
    .split('\n')
    .slice(1, -1)
    .map((line) => line.split(/ +/));
  t.strictSame(workloads, [
    ['Deployment.apps/default/web', 'vision', '4', 'limits.cpu', '8', '10', '80%'],
    ['Deployment.apps/default/bot', 'speech', '1', 'limits.cpu', '30', '40', '75%'],
    ['Deployment.apps/default/api', 'vision', '1', 'limits.cpu', '1', '10', '10%'],
  ]);
  const one = JSON.parse((await quota('top', 'workloads', '--group', 'speech', '-o', 'json')).out) as unknown;
  t.match(one, {
    workload: 'Deployment.apps/default/bot',
    pods: 1,
    reserved: false,
    charged: { 'limits.cpu': '30', pods: '1' },
  });
  t.match(await quota('top', '--by', 'limits.gold'), { code: 1, err: /no group limits limits.gold/ });
  t.match(await quota('top', 'pods'), { code: 2, err: /groups, workloads/ });
});

test('explain answers for scaling and for manifests, and follows owners to the charged workload', async (t) => {
  t.match(await quota('explain', 'deploy/web'), {
    code: 0,
    out: /^Deployment default\/web\nallowed {2}Deployment\.apps\/default\/web in vision\n/,
  });
  const more = await quota('explain', 'deployments.apps/web', '--replicas', '5');
  t.match(more, {
    code: 1,
    out: /REFUSED .*exceeded quota: vision, requested: limits.cpu=2, used: limits.cpu=9.*short by: limits.cpu=1/,
  });
  t.match(more.out, /vision +limits\.cpu +10 +9 +2 +1 +no room/);
  await writeFile(
    join(directory, 'new.json'),
    JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', ...deployment('new', 'vision', 2, 1) }),
  );
  t.match(await quota('explain', '-f', 'new.json', '-o', 'json'), {
    code: 1,
    out: /"code":"QuotaExceeded".*"maxReplicas":1/,
  });
  const owner = cluster.server.read('deployments', 'default', 'web');
  await cluster.client.request({
    method: 'POST',
    path: '/api/v1/namespaces/default/pods',
    body: {
      metadata: {
        name: 'web-1',
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: owner?.metadata.uid, controller: true },
        ],
      },
      spec: { containers: [{ name: 'main', image: 'busybox' }] },
    },
  });
  t.match(await quota('explain', 'pod/web-1'), {
    code: 0,
    out: /^Pod default\/web-1\n {2}of Deployment default\/web\nallowed {2}Deployment\.apps\/default\/web in vision\n/,
  });
  t.equal(cluster.used('vision'), '9');
});

test('explain shows how the numbers of a group come about', async (t) => {
  const { out, code } = await quota('explain', 'bizrq/vision');
  t.equal(code, 0);
  t.match(out, /^vision: carved, 2 workloads, 0 reserved, 0 children\n {2}Ready=True/);
  t.match(out, /\ncompany +limits\.cpu[^]*\n {2}vision +limits\.cpu +10 +9/);
  t.match(out, /\nDeployment\.apps\/default\/web +vision +4 +limits\.cpu +8 +10 +80%\n/);
  t.match(JSON.parse((await quota('explain', 'bizrq/vision', '-o', 'json')).out), {
    name: 'vision',
    above: [{ name: 'company' }],
    largest: [{ workload: 'Deployment.apps/default/web' }],
  });
});

test('explain refuses invalid input in one line', async (t) => {
  t.match(await quota('explain'), { code: 2, err: /name objects as kind\/name/ });
  t.match(await quota('explain', 'web'), { code: 2, err: /"web" is not kind\/name/ });
  t.match(await quota('explain', 'teapot/web'), { code: 2, err: /no kind "teapot".*Deployment/ });
  t.match(await quota('explain', 'deploy/nobody'), {
    code: 1,
    err: /deployments "nobody" not found in namespace default/,
  });
  t.match(await quota('explain', 'pods/x', '--replicas', '-1'), {
    code: 2,
    err: /Expected a whole number from 0 to 1000000/,
  });
  t.match(await quota('tree', '--kubeconfig', 'nowhere'), { code: 2, err: /--kubeconfig: / });
  const fault = cluster.server.inject({ verb: 'list', resource: 'bizgroupledgers' }, { do: 'answer', code: 403 });
  t.match(await quota('tree'), { code: 2, err: /quota: .*bizgroupledgers cannot be listed/ });
  fault.remove();
});

test('kubectl gpu shows and creates quota as gpu-manager does, and takes the options of kubectl', async (t) => {
  const gpu = (...args: readonly string[]): Promise<Ended> => run('kubectl-gpu', 'quota', ...args);
  t.same(await gpu('tree'), await quota('tree'));
  t.same(await gpu('tree', '-A', '-n', 'default'), await gpu('tree'), 'groups have no namespaces');
  t.match((await gpu('tree', 'vision', '-o', 'yaml')).out, /^---\nname: vision\n/);
  t.match((await gpu('tree', 'vision', '-o', 'wide')).out, /^GROUP .*\nvision /);
  t.match((await gpu('top', '-o', 'json')).out, /^\{"group":"vision"/);
  t.match((await gpu('explain', 'deployment/web')).out, /^deployment\/web|^Deployment|web/);
  t.match(await gpu('create', 'hearing', 'limits.cpu=2', 'pods=3', '--parent', 'company', '--dry-run', '-o', 'yaml'), {
    code: 0,
    err: '',
    out: /^apiVersion: quota\.gpu-manager\.io\/[^]*name: hearing\n[^]*parentBizGroup: company\n/,
  });
  const child = spawn(process.execPath, [KUBECTL_GPU, 'quota', 'tree', '-w'], {
    env: ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let watched = '';
  child.stdout.on('data', (chunk: Buffer) => (watched += chunk.toString()));
  await eventually(() => /^GROUP .*\ncompany .*\n {2}vision /s.test(watched), 'the tree');
  t.match(await gpu('create', 'hearing', 'limits.cpu=2', 'pods=3', '--parent', 'company'), {
    code: 0,
    out: 'bizgroupresourcequota/hearing created\n',
  });
  await eventually(() => /\n\nGROUP .*\ncompany .*\n {2}hearing /s.test(watched), 'the tree with the new group');
  child.kill('SIGTERM');
  t.equal(await new Promise((resolve) => child.once('close', resolve)), 0);
});
