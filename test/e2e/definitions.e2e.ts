import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { MERGE_PATCH, type KubeAnswer } from '../../src/kube/client.js';
import { GROUPS_PATH, itemPath } from '../../src/kube/quota/names.js';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { until } from '../harness/eventually.js';
import { TestCluster } from './cluster.js';
import { clusterClient } from './cluster-client.js';
import { customResourcesOrSkip } from './custom-resources.js';
import { QuotaProcess } from './quota-process.js';

tap.setTimeout(900_000);

/** Definitions as their projects publish them, in the modules of their operators. */
const DEFINITIONS = [
  ['github.com/kubeflow/training-operator@v1.9.3', 'manifests/base/crds/kubeflow.org_pytorchjobs.yaml'],
  ['github.com/ray-project/kuberay/ray-operator@v1.4.2', 'config/crd/bases/ray.io_rayclusters.yaml'],
  ['sigs.k8s.io/lws@v0.9.0', 'config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml'],
] as const;

/** The folder of a module; null where modules cannot be had. */
function moduleFolder(name: string): string | null {
  const { status, stdout } = spawnSync('go', ['mod', 'download', '-json', name], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  return status === 0 ? (JSON.parse(stdout) as { readonly Dir: string }).Dir : null;
}

const files = DEFINITIONS.map(([name, file]) => {
  const folder = moduleFolder(name);
  return folder === null ? null : join(folder, file);
});
if (files.includes(null)) {
  tap.plan(0, 'the definitions are in Go modules, and `go mod download` cannot get them here');
  process.exit(0);
}

const cluster = new TestCluster();
const client = await clusterClient(cluster);
await customResourcesOrSkip(cluster, client);
const service = new QuotaProcess({
  name: 'definitions',
  port: 18_449,
  kubeconfig: cluster.kubeconfig,
  url: 'https://127.0.0.1:18449',
  directory: cluster.directory,
});

tap.teardown(async () => {
  await service.end('SIGTERM');
  client.close();
});

const PATHS: Readonly<Record<string, string>> = {
  PyTorchJob: '/apis/kubeflow.org/v1/namespaces/default/pytorchjobs',
  RayCluster: '/apis/ray.io/v1/namespaces/default/rayclusters',
  LeaderWorkerSet: '/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets',
};
const template = {
  spec: { containers: [{ name: 'pytorch', image: 'busybox', resources: { limits: { cpu: '1', memory: '1Gi' } } }] },
};
const SPECS: Readonly<Record<string, object>> = {
  PyTorchJob: { pytorchReplicaSpecs: { Master: { replicas: 1, template }, Worker: { replicas: 3, template } } },
  RayCluster: {
    headGroupSpec: { rayStartParams: {}, template },
    workerGroupSpecs: [
      { groupName: 'workers', replicas: 2, minReplicas: 0, maxReplicas: 4, rayStartParams: {}, template },
    ],
  },
  LeaderWorkerSet: { replicas: 2, leaderWorkerTemplate: { size: 3, workerTemplate: template } },
};

function create(kind: string, name: string): Promise<KubeAnswer> {
  const path = PATHS[kind] ?? '';
  const apiVersion = path.split('/').slice(2, 4).join('/');
  const metadata = { name, namespace: 'default', labels: { [GROUP_LABEL]: 'team' } };
  return client.request({ method: 'POST', path, body: { apiVersion, kind, metadata, spec: SPECS[kind] } });
}

const patch = (kind: string, name: string, body: object, subresource = ''): Promise<KubeAnswer> =>
  client.request({
    method: 'PATCH',
    path: `${PATHS[kind] ?? ''}/${name}${subresource}`,
    body,
    contentType: MERGE_PATCH,
  });

async function uses(cores: string): Promise<void> {
  await until(`${cores} cores to be used`, async () => {
    const answer = await client.request({ method: 'GET', path: itemPath(GROUPS_PATH, 'team') });
    const { used } = (answer.ok ? (answer.body as KubeObject).status : {}) as {
      readonly used?: Readonly<Record<string, string>>;
    };
    return used?.['limits.cpu'] === cores;
  });
}

test('published definitions of PyTorchJob, RayCluster and LeaderWorkerSet are charged, scaled and suspended', async (t) => {
  await service.start();
  for (const file of files) await cluster.kubectl('apply', '--server-side', '-f', file ?? '');
  await until('the group to be created', async () => {
    const metadata = { name: 'team' };
    const spec = { namespaceSelector: {}, hard: { 'limits.cpu': 20 } };
    const body = { apiVersion: 'quota.gpu-manager.io/v1', kind: 'BizGroupResourceQuota', metadata, spec };
    const answer = await client.request({ method: 'POST', path: GROUPS_PATH, body });
    return answer.ok || answer.code === 'already-exists';
  });
  let cores = 0;
  for (const [kind, each] of [
    ['PyTorchJob', 4],
    ['RayCluster', 3],
    ['LeaderWorkerSet', 6],
  ] as const) {
    await until(`a ${kind} to be served`, async () => (await create(kind, 'first')).ok);
    cores += each;
    await uses(`${cores}`);
  }
  // The webhooks know the new kinds by now: a second set of each would not fit.
  const refused = async (kind: string): Promise<boolean> => {
    const answer = await create(kind, 'second');
    if (answer.ok) await client.request({ method: 'DELETE', path: `${PATHS[kind] ?? ''}/second` });
    return !answer.ok && answer.message.includes('QuotaExceeded');
  };
  t.match(await patch('LeaderWorkerSet', 'first', { spec: { replicas: 4 } }, '/scale'), { ok: true });
  await uses('19');
  for (const kind of Object.keys(PATHS)) await until(`a second ${kind} to be refused`, () => refused(kind));
  await uses('19');
  t.match(await patch('LeaderWorkerSet', 'first', { spec: { replicas: 5 } }, '/scale'), {
    ok: false,
    message: /QuotaExceeded/,
  });
  t.match(await patch('PyTorchJob', 'first', { spec: { runPolicy: { suspend: true } } }), { ok: true });
  await uses('15');
  t.match(await patch('RayCluster', 'first', { spec: { suspend: true } }), { ok: true });
  await uses('12');
  t.match(await patch('LeaderWorkerSet', 'first', { spec: { replicas: 5 } }, '/scale'), { ok: true });
  await uses('15');
  t.match(await patch('LeaderWorkerSet', 'first', { spec: { leaderWorkerTemplate: { size: 5 } } }), {
    ok: false,
    message: /QuotaExceeded/,
  });
  for (const kind of Object.keys(PATHS)) await client.request({ method: 'DELETE', path: `${PATHS[kind] ?? ''}/first` });
  await uses('0');
});
