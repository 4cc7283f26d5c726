/** What the accounts of the programs may not do, tried with their tokens on a real API server. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import tap, { test } from 'tap';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { BUSYBOX_IMAGE, NODE, TestCluster } from './cluster.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const cluster = new TestCluster();
const hasPolicies = cluster.version.atLeast(30);
const hasClaims = cluster.version.atLeast(34);
const ACCOUNTS = ['gpu-manager', 'gpu-extender', 'gpu-console', 'gpu-manager-quota', 'gpu-manager-reader'];

tap.setTimeout(timeLimit(900_000));

/** Runs kubectl with the token of an account alone. Returns null if it succeeds, else what it printed. */
type Account = (...args: readonly string[]) => Promise<string | null>;

async function account(name: string, ...bound: readonly string[]): Promise<Account> {
  const token = await cluster.kubectl('-n', 'kube-system', 'create', 'token', name, ...bound);
  const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')) as object;
  const file = join(cluster.directory, `${name}.kubeconfig`);
  writeFileSync(file, JSON.stringify({ ...config, users: [{ name: 'admin', user: { token } }] }));
  return (...args) =>
    cluster.kubectl(...args, `--kubeconfig=${file}`).then(
      () => null,
      ({ stderr }: { readonly stderr: string }) => stderr,
    );
}

const standIn = (name: string, node: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { nodeName: node, containers: [{ name: 'main', image: BUSYBOX_IMAGE, imagePullPolicy: 'Never' }] },
});

/** A pod that no scheduler places. */
const unscheduled = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { schedulerName: 'none', containers: [{ name: 'main', image: BUSYBOX_IMAGE, imagePullPolicy: 'Never' }] },
});

const slice = (name: string, nodeName: string, driver: string): string => {
  const pool = { name: nodeName, generation: 1, resourceSliceCount: 1 };
  const file = join(cluster.directory, `${name}.json`);
  const object = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name },
    spec: { nodeName, driver, pool, devices: [] },
  };
  writeFileSync(file, JSON.stringify(object));
  return file;
};

let agent: Account;

tap.before(async () => {
  const files = [
    'daemonset.yaml',
    'etc/extender/deployment.yaml',
    'etc/console/deployment.yaml',
    'etc/quota/deployment.yaml',
    'etc/quota/arbitrator.yaml',
    ...(hasClaims ? ['etc/dra/webhook.yaml'] : []),
  ];
  // Older API servers do not know the rules of its fields.
  await cluster.kubectl('apply', '--validate=false', '-f', join(ROOT, 'etc/quota/crds.yaml'));
  for (const file of files) await cluster.kubectl('apply', '-f', join(ROOT, file));
  await cluster.kubectl('-n', 'kube-system', 'delete', 'daemonset/gpu-manager');
  await cluster.kubectl('-n', 'kube-system', 'delete', 'deployment', '--all');
  if (hasPolicies)
    for (const file of ['agent-node.yaml', 'classes.yaml', 'extender.yaml', 'quota.yaml'])
      await cluster.kubectl('apply', '-f', join(ROOT, 'etc/admission', file));
  await cluster.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'other' } });
  await cluster.apply(standIn('own', NODE), standIn('foreign', 'other'));
  const node = await cluster.get<{ readonly metadata: { readonly uid: string } }>('node', NODE);
  const bound = ['--bound-object-kind=Node', `--bound-object-name=${NODE}`, `--bound-object-uid=${node.metadata.uid}`];
  agent = await account('gpu-manager', ...(hasPolicies ? bound : []));
});

const FORBIDDEN = /forbidden/iu;

test('no account reads Secrets, makes pods or takes other rights', async (t) => {
  for (const name of [...ACCOUNTS, ...(hasClaims ? ['gpu-manager-claims'] : [])]) {
    const run = name === 'gpu-manager' ? agent : await account(name);
    for (const attempt of [
      ['get', 'secrets', '-A'],
      ['run', 'evil', '--image=evil'],
      ['delete', 'node', 'other'],
      ['create', 'token', 'default'],
      ['create', 'clusterrolebinding', 'evil', '--clusterrole=cluster-admin', '--user=evil'],
    ])
      t.match(await run(...attempt), FORBIDDEN, `${name}: ${attempt.join(' ')}`);
  }
});

test(
  'an agent changes labels and annotations of its own node and annotations of its pods, and nothing else',
  { skip: hasPolicies ? false : 'needs Kubernetes 1.30' },
  async (t) => {
    await until('the policy to count', async () => (await agent('label', 'node', 'other', 'tencent.com/x=1')) !== null);
    for (const allowed of [
      ['label', 'node', NODE, 'gaia.tencent.com/gpu-model=H200'],
      ['annotate', 'node', NODE, 'tencent.com/gpu-inventory=x'],
      ['annotate', 'pod', 'own', 'tencent.com/gpu-assigned=true'],
    ])
      t.equal(await agent(...allowed), null, allowed.join(' '));
    for (const refused of [
      ['label', 'node', 'other', 'tencent.com/x=1'],
      ['label', 'node', NODE, 'node-restriction.kubernetes.io/pool=mine'],
      ['label', 'node', NODE, 'kubernetes.io/arch-'],
      ['annotate', 'node', NODE, 'other.example/x=1'],
      ['taint', 'node', NODE, 'reserved=x:NoSchedule'],
      ['patch', 'node', NODE, '-p', '{"spec":{"unschedulable":true}}'],
      ['patch', 'node', NODE, '-p', '{"metadata":{"finalizers":["evil.example/x"]}}'],
      ['set', 'image', 'pod/own', 'main=evil'],
      ['label', 'pod', 'own', 'app=evil'],
      ['annotate', 'pod', 'own', 'kubernetes.io/x=1'],
      ['annotate', 'pod', 'foreign', 'tencent.com/gpu-assigned=true'],
      ['delete', 'pod', 'foreign'],
    ])
      t.type(await agent(...refused), 'string', refused.join(' '));
  },
);

test(
  'only the DaemonSet controller makes pods under the account of the agents',
  { skip: hasPolicies ? false : 'needs Kubernetes 1.30' },
  async (t) => {
    const posing = join(cluster.directory, 'posing.json');
    const { metadata, spec } = standIn('gpu-manager-x', 'other') as {
      readonly metadata: object;
      readonly spec: object;
    };
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'gpu-manager', uid: 'made-up', controller: true };
    writeFileSync(
      posing,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...metadata, namespace: 'kube-system', ownerReferences: [owner] },
        spec: { ...spec, serviceAccountName: 'gpu-manager' },
      }),
    );
    const made = cluster.kubectl('create', '-f', posing).then(
      () => null,
      ({ stderr }: { readonly stderr: string }) => stderr,
    );
    t.match(await made, /only the DaemonSet controller makes pods under the account of the agents/u);
    await cluster.kubectl('label', 'node', 'other', 'nvidia-device-enable=enable');
    await cluster.kubectl('apply', '-f', join(ROOT, 'daemonset.yaml'));
    await until('the pod of the DaemonSet', async () =>
      (await cluster.kubectl('-n', 'kube-system', 'get', 'pods', '-o', 'name')).includes('pod/gpu-manager-'),
    );
    await cluster.kubectl('-n', 'kube-system', 'delete', 'daemonset/gpu-manager');
  },
);

test(
  'an agent writes no ResourceSlice without claims, and with them those of its own node and driver',
  { skip: hasClaims ? false : 'needs Kubernetes 1.34' },
  async (t) => {
    const own = slice('own', NODE, 'gpu.tencent.com');
    t.match(await agent('create', '-f', own), FORBIDDEN);
    for (const file of ['agent-role.yaml', 'own-node-policy.yaml'])
      await cluster.kubectl('apply', '-f', join(ROOT, 'etc/dra', file));
    const foreign = slice('foreign', 'other', 'gpu.tencent.com');
    await until('the policy to count', async () =>
      /may not write ResourceSlices of node 'other'/u.test((await agent('create', '-f', foreign)) ?? ''),
    );
    t.match(await agent('create', '-f', slice('driver', NODE, 'gpu.nvidia.com')), /driver gpu\.tencent\.com only/u);
    t.equal(await agent('create', '-f', own), null);
    t.equal(await agent('delete', 'resourceslice', 'own'), null);
  },
);

test(
  'a pod takes precedence, or memory of the host, only in a namespace whose label allows it',
  { skip: hasPolicies ? false : 'needs Kubernetes 1.30' },
  async (t) => {
    const annotate = (value: string): Promise<string | null> =>
      cluster.kubectl('annotate', '--overwrite', 'pod', 'foreign', value).then(
        () => null,
        ({ stderr }: { readonly stderr: string }) => stderr,
      );
    const cases = [
      ['tencent.com/vcuda-priority=main=high', 'tencent.com/vcuda-high-priority'],
      ['tencent.com/vcuda-memory-oversubscribe=low', 'tencent.com/vcuda-low-memory'],
    ] as const;
    for (const [annotation, label] of cases) {
      const needed = new RegExp(`needs the label ${label}=allowed`, 'u');
      await until('the policy to count', async () => {
        await cluster.kubectl('annotate', 'pod', 'foreign', `${annotation.split('=')[0]}-`);
        return needed.test((await annotate(annotation)) ?? '');
      });
      await cluster.kubectl('label', 'namespace', 'default', `${label}=allowed`);
      await until('the label to count', async () => (await annotate(annotation)) === null);
    }
    t.equal(await annotate('tencent.com/vcuda-priority=normal'), null);
  },
);

/** A file with the object, for kubectl. */
function fileOf(name: string, object: object): string {
  const file = join(cluster.directory, `${name}.json`);
  writeFileSync(file, JSON.stringify(object));
  return file;
}

test('the account of the reader reads the agents through no object', async (t) => {
  const reader = await account('gpu-manager-reader');
  for (const attempt of [
    ['get', 'pods', '-A'],
    ['get', 'nodes'],
    ['get', 'bizrq'],
    ['annotate', 'pod', 'own', 'x=1'],
  ])
    t.match(await reader(...attempt), FORBIDDEN, attempt.join(' '));
});

test(
  'the extender changes annotations of tencent.com, in pods and bindings, and nothing else',
  { skip: hasPolicies ? false : 'needs Kubernetes 1.30' },
  async (t) => {
    const extender = await account('gpu-extender');
    await until(
      'the policy to count',
      async () => (await extender('annotate', 'pod', 'own', 'evil.example/x=1')) !== null,
    );
    t.equal(await extender('annotate', 'pod', 'own', 'tencent.com/predicate-node=x'), null);
    for (const refused of [
      ['set', 'image', 'pod/own', 'main=evil'],
      ['label', 'pod', 'own', 'app=evil'],
      ['annotate', 'pod', 'own', 'kubernetes.io/x=1'],
      ['patch', 'pod', 'own', '-p', '{"metadata":{"finalizers":["evil.example/x"]}}'],
    ])
      t.match(await extender(...refused), /the extender changes annotations/u, refused.join(' '));
    await cluster.apply(unscheduled('waiting'));
    const binding = (annotations: object): string =>
      fileOf('binding', {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: 'waiting', namespace: 'default', annotations },
        target: { apiVersion: 'v1', kind: 'Node', name: 'other' },
      });
    const bind = (annotations: object): Promise<string | null> =>
      extender('create', '--raw', '/api/v1/namespaces/default/pods/waiting/binding', '-f', binding(annotations));
    t.match(await bind({ 'evil.example/x': '1' }), /annotations of tencent\.com only/u);
    t.equal(await bind({ 'tencent.com/predicate-node': 'other' }), null);
  },
);

test(
  'the quota service changes no quota, of a pod only the nominated node, and evicts nothing of kube-system',
  { skip: hasPolicies ? false : 'needs Kubernetes 1.30' },
  async (t) => {
    const quota = await account('gpu-manager-quota');
    await cluster.kubectl(
      'apply',
      '-f',
      fileOf('group', {
        apiVersion: 'quota.gpu-manager.io/v1',
        kind: 'BizGroupResourceQuota',
        metadata: { name: 'team' },
        spec: { hard: { 'limits.cpu': 4 } },
      }),
    );
    const group = (patch: object): Promise<string | null> =>
      quota('patch', 'bizrq', 'team', '--type=merge', '-p', JSON.stringify(patch));
    await until('the policy to count', async () => (await group({ spec: { hard: { 'limits.cpu': 400 } } })) !== null);
    t.match(await group({ spec: { hard: { 'limits.cpu': 400 } } }), /not its quota/u);
    t.match(await group({ metadata: { annotations: { 'evil.example/x': '1' } } }), /not its quota/u);
    t.equal(await group({ metadata: { finalizers: ['quota.gpu-manager.io/ledger'] } }), null);
    t.equal(await group({ metadata: { finalizers: null } }), null);
    await cluster.apply(unscheduled('nominee'));
    // kubectl reads what it patches.
    await cluster.kubectl(
      'create',
      'clusterrole',
      'read-status',
      '--verb=get',
      '--resource=pods/status,deployments.apps/scale',
    );
    const subject = '--serviceaccount=kube-system:gpu-manager-quota';
    await cluster.kubectl('create', 'clusterrolebinding', 'read-status', '--clusterrole=read-status', subject);
    const status = (patch: object): Promise<string | null> =>
      quota('patch', 'pod', 'nominee', '--subresource=status', '--type=merge', '-p', JSON.stringify(patch));
    await until('the right to count', async () => (await status({ status: { nominatedNodeName: 'other' } })) === null);
    t.match(await status({ status: { phase: 'Succeeded' } }), /nominatedNodeName of a pod only/u);
    t.match(await status({ status: { conditions: [{ type: 'Ready', status: 'True' }] } }), /nominatedNodeName/u);
    t.match(await status({ metadata: { labels: { app: 'evil' } } }), /no label, annotation or finalizer/u);
    const evict = (namespace: string): Promise<string | null> =>
      quota(
        'create',
        '--raw',
        `/api/v1/namespaces/${namespace}/pods/foreign/eviction`,
        '-f',
        fileOf('eviction', { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'foreign', namespace } }),
      );
    t.match(await evict('kube-system'), /evicts no pod of kube-system/u);
    t.equal(await evict('default'), null);
    for (const [namespace, expected] of [
      ['kube-system', /scales no workload of kube-system/u],
      ['default', null],
    ] as const) {
      const [name, labels] = ['scaled', { app: 'scaled' }];
      const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: BUSYBOX_IMAGE }] } };
      const spec = { replicas: 0, selector: { matchLabels: labels }, template };
      await cluster.apply({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace }, spec });
      const patch = ['--subresource=scale', '--type=merge', '-p', JSON.stringify({ spec: { replicas: 0 } })];
      const answer = await quota('-n', namespace, 'patch', 'deployment', name, ...patch);
      if (expected === null) t.equal(answer, null);
      else t.match(answer, expected);
    }
  },
);
