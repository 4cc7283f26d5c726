import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { parseAllDocuments } from 'yaml';
import { packageFile } from '../../src/host/package-files.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';
import { AgentProcess } from './agent-process.js';
import { ClaimPods, template } from './claims.js';
import { BUSYBOX_IMAGE, TestCluster } from './cluster.js';

const PORT = 18_643;
const MANIFESTS = 'etc/dra/webhook.yaml';

/** Two GPUs of 16 GiB. */
const GPUS = `\tGPU0\tGPU1
GPU0\tX\tPIX
GPU1\tPIX\tX
`;

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, GPUS, ['--allocation=dra']);
const { phase, remove, limitsOnDisk } = new ClaimPods(cluster, agent);
const skip = cluster.version.atLeast(34) ? false : 'claims need Kubernetes 1.34';
/** Consumable capacity and extended resources are on by default from 1.36 on. */
const skipShares = cluster.version.atLeast(36) ? false : 'shares by claims need Kubernetes 1.36';

tap.setTimeout(900_000);
tap.teardown(async () => {
  await cluster.processes.stop('claim-webhook');
  await agent.stop();
});

interface CreatedPod {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly resourceClaims?: readonly { readonly resourceClaimTemplateName: string }[];
    readonly containers: readonly { readonly resources: { readonly limits?: object } }[];
  };
}

/** A pod that asks for the two extended resources, or for another one. */
function vcudaPod(name: string, limits: object, metadata: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: {
      hostNetwork: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'main',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          command: ['sleep', '100000'],
          resources: { limits },
        },
      ],
    },
  };
}

const vcuda = (cores: number, blocks: number): object => ({
  'tencent.com/vcuda-core': cores,
  ...(blocks === 0 ? {} : { 'tencent.com/vcuda-memory': blocks }),
});

const viaClaims = (annotations: object = {}): object => ({ labels: { 'tencent.com/vcuda-via': 'dra' }, annotations });

/** The error text with which kubectl ends. */
const refusal = (...objects: object[]): Promise<string> =>
  cluster.apply(...objects).then(
    () => 'accepted',
    ({ stderr }: { readonly stderr?: string }) => stderr ?? '',
  );

const templates = async (): Promise<readonly string[]> => {
  const names = await cluster.kubectl('get', 'resourceclaimtemplates', '-o', 'jsonpath={.items[*].metadata.name}');
  return names.split(' ').filter((name) => name.startsWith('vcuda-'));
};

/** Starts the webhook with the rights of the shipped role and no others. */
async function startWebhook(): Promise<void> {
  const objects = parseAllDocuments(readFileSync(packageFile(MANIFESTS), 'utf8')).map(
    (document) => document.toJS() as { readonly kind: string },
  );
  const isRun = ({ kind }: { readonly kind: string }): boolean =>
    ['Deployment', 'Service', 'NetworkPolicy', 'PodDisruptionBudget'].includes(kind);
  await cluster.apply(...objects.filter((object) => !isRun(object)));
  const token = await cluster.kubectl('-n', 'kube-system', 'create', 'token', 'gpu-manager-claims');
  const kubeconfig = join(cluster.directory, 'claim-webhook.kubeconfig');
  const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')) as object;
  writeFileSync(kubeconfig, JSON.stringify({ ...config, users: [{ name: 'admin', user: { token } }] }));
  cluster.processes.start('claim-webhook', process.execPath, [
    MAIN,
    'claim-webhook',
    `--kubeconfig=${kubeconfig}`,
    '--address=127.0.0.1',
    `--port=${PORT}`,
    `--probe-port=${PORT + 1}`,
    `--url=https://127.0.0.1:${PORT}`,
  ]);
  await until('the webhook to be ready', async () => (await fetch(`http://127.0.0.1:${PORT + 1}/readyz`)).ok, 30_000);
}

const wrong = { apiVersion: 'gpu.tencent.com/v1', kind: 'SliceConfig', softLimit: 120 };
const opaque = (parameters: object): object => ({ config: [{ opaque: { driver: 'gpu.tencent.com', parameters } }] });

test('wrong parameters are refused when a claim, a template or a class is created', { skip }, async (t) => {
  await agent.start();
  await cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
  await startWebhook();
  const request = [{ name: 'gpu', exactly: { deviceClassName: 'gpu.tencent.com' } }];
  await until('the webhook to be called', async () =>
    /softLimit/.test(await refusal(template('wrong', request, opaque(wrong)))),
  );
  const claim = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: 'wrong' },
    spec: { devices: { requests: request, ...opaque(wrong) } },
  };
  t.match(await refusal(claim), /spec\.devices\.config\[0\]\.opaque\.parameters: softLimit: 120 is not a whole number/);
  const deviceClass = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    metadata: { name: 'wrong.example.com' },
    spec: opaque({ ...wrong, softLimit: 60, speed: 1 }),
  };
  t.match(await refusal(deviceClass), /spec\.config\[0\]\.opaque\.parameters: speed: no such field/);
  const right = opaque({ ...wrong, softLimit: 60 });
  t.equal(await refusal(template('right', request, right)), 'accepted');
  const foreign = { config: [{ opaque: { driver: 'gpu.example.com', parameters: wrong } }] };
  t.equal(await refusal(template('foreign', request, foreign)), 'accepted');
});

test('a pod with the label gets whole GPUs by a claim instead of vcuda-core', { skip }, async (t) => {
  await cluster.apply(vcudaPod('whole', vcuda(200, 0), viaClaims()));
  await phase('whole', 'Running');
  const { spec } = await cluster.get<CreatedPod>('pod', 'whole');
  t.same(spec.containers[0]?.resources.limits ?? {}, {});
  t.same(
    spec.resourceClaims?.map(({ resourceClaimTemplateName }) => resourceClaimTemplateName),
    await templates(),
  );
  t.same(limitsOnDisk(), ['100/all+100/all']);
  await remove('whole');
  await until('all allocations to be released', async () => limitsOnDisk().length === 0);
});

test('pods of a labelled namespace run as shares of one template', { skip: skipShares }, async (t) => {
  await cluster.kubectl('label', 'namespace', 'default', 'tencent.com/vcuda-via=dra');
  const { spec } = vcudaPod('web', vcuda(30, 16)) as { readonly spec: object };
  const labels = { app: 'web' };
  await cluster.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { ...spec, restartPolicy: 'Always' } },
    },
  });
  await cluster.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s');
  t.same(limitsOnDisk(), ['30/16', '30/16']);
  t.equal((await templates()).filter((name) => name.startsWith('vcuda-30-16-')).length, 1);
  await cluster.kubectl('delete', 'deployment', 'web', '--wait=true');
  await until('all allocations to be released', async () => limitsOnDisk().length === 0);
});

test(
  'limit annotations of a converted pod hold, and change its limits while it runs',
  { skip: skipShares },
  async () => {
    await cluster.apply(vcudaPod('limited', vcuda(50, 32), viaClaims({ 'tencent.com/vcuda-memory-limit': '16' })));
    await phase('limited', 'Running');
    await until('the memory limit to hold', async () => limitsOnDisk().join() === '50/16');
    await cluster.kubectl('annotate', 'pod', 'limited', 'tencent.com/vcuda-share-limit=20');
    await until('the share to be lowered', async () => limitsOnDisk().join() === '20/16');
    await remove('limited');
    await until('all allocations to be released', async () => limitsOnDisk().length === 0);
  },
);

test('a pod that cannot be converted is refused with the reason; a dry run creates nothing', { skip }, async (t) => {
  t.match(
    await refusal(vcudaPod('odd', vcuda(150, 0), viaClaims())),
    /cannot be converted into resource claims: container main: tencent\.com\/vcuda-core: 150 /,
  );
  const before = await templates();
  const file = join(cluster.directory, 'dry-run.json');
  writeFileSync(file, JSON.stringify(vcudaPod('dry', vcuda(7, 4), viaClaims())));
  const dry = JSON.parse(await cluster.kubectl('create', '--dry-run=server', '-o', 'json', '-f', file)) as CreatedPod;
  t.equal(dry.spec.resourceClaims?.length, 1);
  t.same(await templates(), before);
});

test('a pod without the label, or whose label says otherwise, keeps its request', { skip }, async (t) => {
  await cluster.kubectl('label', 'namespace', 'default', 'tencent.com/vcuda-via=dra', '--overwrite');
  await cluster.apply(vcudaPod('other', vcuda(30, 16), { labels: { 'tencent.com/vcuda-via': 'plugin' } }));
  await cluster.kubectl('label', 'namespace', 'default', 'tencent.com/vcuda-via-');
  await cluster.apply(vcudaPod('plain', vcuda(30, 16)));
  for (const name of ['other', 'plain']) {
    const { spec } = await cluster.get<CreatedPod>('pod', name);
    t.match(spec.containers[0]?.resources.limits, { 'tencent.com/vcuda-core': '30' }, name);
    t.equal(spec.resourceClaims, undefined, name);
  }
  await remove('other', 'plain');
});

test(
  'a pod that asks for tencent.com/gpu gets a whole GPU by a claim of the scheduler',
  { skip: skipShares },
  async (t) => {
    await cluster.kubectl('apply', '-f', packageFile('etc/dra/extended-resource.yaml'));
    await cluster.apply(vcudaPod('mapped', { 'tencent.com/gpu': 1 }));
    await phase('mapped', 'Running');
    t.same(limitsOnDisk(), ['100/all']);
    await remove('mapped');
    await until('all allocations to be released', async () => limitsOnDisk().length === 0);
  },
);
