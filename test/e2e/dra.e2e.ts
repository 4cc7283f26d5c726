import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { parseAllDocuments } from 'yaml';
import { packageFile } from '../../src/host/package-files.js';
import { AgentProcess } from './agent-process.js';
import { ClaimPods, share, sharing, single, specFiles, template, type PodStatus } from './claims.js';
import { NODE, TestCluster } from './cluster.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';

/** Four GPUs of 16 GiB; 0-1 and 2-3 share a PCIe switch. */
const GPUS = `\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\tX\tPIX\tSYS\tSYS
GPU1\tPIX\tX\tSYS\tSYS
GPU2\tSYS\tSYS\tX\tPIX
GPU3\tSYS\tSYS\tPIX\tX
`;

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, GPUS, ['--allocation=dra']);
const { gpuNodes, isUnschedulable, limitsOnDisk, phase, remove, shown, slices } = new ClaimPods(cluster, agent);
/** Consumable capacity is on by default from 1.36 on. */
const skip = cluster.version.atLeast(36) ? false : 'shares by claims need Kubernetes 1.36';

tap.setTimeout(900_000);
tap.teardown(() => agent.stop());

test(
  'the driver registers, and the node publishes its GPUs with all their attributes and capacities',
  { skip },
  async (t) => {
    await agent.start();
    await cluster.kubectl('apply', '-f', packageFile('etc/dra/device-classes.yaml'));
    const [slice, ...others] = await until('a ResourceSlice', async () => {
      const found = await slices();
      return found.length > 0 ? found : null;
    });
    t.same(others, []);
    t.equal(slice?.spec.pool.name, `${NODE}/vcuda`);
    t.equal(slice?.spec.devices.length, 4);
    for (const device of slice?.spec.devices ?? []) {
      t.equal(device.allowMultipleAllocations, true, device.name);
      t.ok(device.capacity.cores?.requestPolicy, 'cores may be requested in parts');
      t.equal(device.capacity.memory?.value, '16Gi');
      t.equal(typeof device.attributes.linkGroup2?.int, 'number', 'every GPU has a partner on its switch');
    }
  },
);

test('a share claim is prepared as a slice with its limits, device node and CDI file', { skip }, async (t) => {
  await cluster.apply(template('share', [share(30, '4Gi')]), single('share', 'share'));
  await phase('share', 'Running');
  const seen = await until('the output of the container', async () => {
    const text = await shown('share');
    return text.text.includes('READABLE') ? text : null;
  });
  t.equal(seen.devices.filter((path) => /nvidia\d+$/.test(path)).length, 1, 'one GPU');
  t.equal(seen.libraryPath, '/usr/local/nvidia/lib64');
  t.same(seen.uuids, ['void'], 'a default NVIDIA runtime adds no GPU');
  t.same(seen.readOnly, {
    '/etc/vcuda': true,
    '/etc/vcuda/usage/vgpu.usage': false,
    '/etc/vcuda/usage/vgpu.activity': false,
  });
  t.same(limitsOnDisk(), ['30/16']);
  t.equal(specFiles().length, 1);
  const directory = '/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/g';
  const metadata = await cluster.kubectl(
    ...['exec', 'share', '--', 'cat', `${directory}/gpu/gpu.tencent.com-metadata.json`],
  );
  t.match(metadata, /"pool": "[^"]+\/vcuda"/, 'the container can read what its device is');
  await remove('share');
  await until('all allocations to be released', async () => limitsOnDisk().length === 0 && specFiles().length === 0);
});

test(
  'the doctor finds that the API server stores shares and that the runtime accepts CDI devices',
  { skip },
  async (t) => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      MAIN,
      'doctor',
      ...['--driver=dummy', '--allocation=dra', '-o', 'json'],
      ...[`--kubeconfig=${cluster.kubeconfig}`, `--hostname-override=${NODE}`],
      `--container-runtime-endpoint=${cluster.containerdSocket}`,
    ]).catch((error: { readonly stdout: string }) => error);
    const claims = (JSON.parse(stdout) as readonly { check: string; state: string }[]).filter(
      ({ check }) => check === 'claims',
    );
    t.match(claims, [{ state: 'ok' }, { state: 'ok' }], stdout);
  },
);

test(
  'the manifests of etc/dra for whole GPUs and shares work, and a pair of whole GPUs is the linked one',
  { skip },
  async (t) => {
    await cluster.kubectl('apply', '-f', packageFile('etc/dra/claims.yaml'));
    for (const [name, object] of [
      ['share', single('share', 'gpu-share')],
      ['soft', single('soft', 'gpu-soft')],
      ['shared-a', sharing('shared-a', 'gpu-shared')],
      ['shared-b', sharing('shared-b', 'gpu-shared')],
      ['whole', single('whole', 'gpu-whole')],
      ['pair', single('pair', 'gpu-pair')],
    ] as const) {
      await cluster.apply(object);
      await phase(name, 'Running');
    }
    t.same(limitsOnDisk(), ['100/all', '100/all+100/all', '20/8', '30/16', '40/32']);
    t.same(await gpuNodes('shared-a'), await gpuNodes('shared-b'), 'both pods have the one GPU of their claim');
    t.same(await gpuNodes('share'), await gpuNodes('soft'), 'shares fill one GPU before the next');
    const pair = (await gpuNodes('pair')).join();
    t.ok(['/dev/nvidia0,/dev/nvidia1', '/dev/nvidia2,/dev/nvidia3'].includes(pair), `${pair} share a switch`);
  },
);

test('kills of the agent and a restart of the kubelet change nothing for running pods', { skip }, async (t) => {
  const before = [limitsOnDisk(), specFiles()];
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await agent.restart(signal);
    t.same([limitsOnDisk(), specFiles()], before, signal);
  }
  await cluster.restartKubelet('SIGKILL');
  await until(
    'the node to be ready',
    async () => /\sReady\s/.test(await cluster.kubectl('get', 'node', NODE)),
    120_000,
  );
  await until('the slice to be back', async () => (await slices()).length === 1, 60_000);
  for (const name of ['share', 'soft', 'shared-a', 'shared-b', 'whole', 'pair'])
    t.equal((await cluster.get<PodStatus>('pod', name)).status.phase, 'Running', name);
  t.same([limitsOnDisk(), specFiles()], before, 'kubelet');
  await remove('share', 'soft', 'shared-a', 'whole', 'pair');
  // Forced deletions do not wait for the release by the kubelet.
  await until('the shared claim to be held by its second pod alone', async () => limitsOnDisk().join() === '40/32');
  await remove('shared-b');
  await until('all allocations to be released', async () => limitsOnDisk().length === 0 && specFiles().length === 0);
});

test('a share that does not fit waits, and runs when another one ends', { skip }, async (t) => {
  await cluster.apply(template('large', [share(60, '1Gi')]));
  const names = ['l0', 'l1', 'l2', 'l3', 'l4'];
  await cluster.apply(...names.slice(0, 4).map((name) => single(name, 'large')));
  for (const name of names.slice(0, 4)) await phase(name, 'Running');
  await cluster.apply(single('l4', 'large'));
  await isUnschedulable('l4');
  t.equal(limitsOnDisk().length, 4);
  await remove('l0');
  await phase('l4', 'Running');
  t.equal(limitsOnDisk().length, 4);
  await remove(...names.slice(1));
});

test('wrong parameters are refused with the reason in an event of the pod', { skip }, async (t) => {
  const parameters = { apiVersion: 'gpu.tencent.com/v1', kind: 'SliceConfig', softLimit: 120 };
  await cluster.apply(
    template('wrong', [share(10, '1Gi')], { config: [{ opaque: { driver: 'gpu.tencent.com', parameters } }] }),
    single('wrong', 'wrong'),
  );
  const events = await until(
    'the event',
    async () => {
      const text = await cluster.kubectl('get', 'events', '-o', 'jsonpath={.items[*].message}');
      return text.includes('softLimit') ? text : null;
    },
    60_000,
  );
  t.match(events, /softLimit: 120 is not a whole number from 1 to 100/);
  await remove('wrong');
});

interface ShownClaim {
  readonly status: {
    readonly devices?: readonly {
      readonly data?: Readonly<Record<string, unknown>>;
    }[];
  };
}

test('the role of the agent permits the status of its own devices, with a token of its node', { skip }, async (t) => {
  const roles = ['etc/agent/daemonset.yaml', 'etc/dra/agent-role.yaml']
    .flatMap((file) => parseAllDocuments(readFileSync(packageFile(file), 'utf8')))
    .map((document) => document.toJS() as { readonly kind: string })
    .filter(({ kind }) => /^(ServiceAccount|ClusterRole|ClusterRoleBinding)$/.test(kind));
  await cluster.apply(...roles);
  await cluster.apply(sharing('shared-a', 'gpu-shared'));
  await phase('shared-a', 'Running');
  const claim = await until('the claim to show its device', async () => {
    const found = await cluster.get<ShownClaim>('resourceclaim', 'gpu-shared');
    return found.status.devices?.[0]?.data === undefined ? null : found;
  });
  const node = await cluster.get<PodStatus>('node', NODE);
  const bound = ['--bound-object-kind=Node', `--bound-object-name=${NODE}`, `--bound-object-uid=${node.metadata.uid}`];
  const [kubeconfig, changed] = ['agent.kubeconfig', 'status.json'].map((name) => join(cluster.directory, name));
  const written = async (...more: readonly string[]): Promise<string> => {
    const token = await cluster.kubectl('-n', 'kube-system', 'create', 'token', 'gpu-manager', ...more);
    const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')) as object;
    writeFileSync(kubeconfig ?? '', JSON.stringify({ ...config, users: [{ name: 'admin', user: { token } }] }));
    const path = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu-shared/status';
    // The last flag counts.
    return cluster.kubectl('replace', `--kubeconfig=${kubeconfig}`, `--raw=${path}`, `--filename=${changed}`).then(
      () => 'written',
      ({ stderr }: { readonly stderr: string }) => stderr,
    );
  };
  const [device, ...others] = claim.status.devices ?? [];
  const status = { ...claim.status, devices: [{ ...device, data: { ...device?.data, shareLimit: 1 } }, ...others] };
  const { metadata } = claim as unknown as { readonly metadata: object };
  const { resourceVersion: _, ...rest } = metadata as { readonly resourceVersion?: string };
  writeFileSync(changed ?? '', JSON.stringify({ ...claim, metadata: rest, status }));
  t.match(await written(), /forbidden|not allowed/i, 'a token without a node');
  t.equal(await written(...bound), 'written');
  await remove('shared-a');
  await until('all allocations to be released', async () => limitsOnDisk().length === 0);
});

test('an annotation of a claim lowers the limits of the pods that share it', { skip }, async (t) => {
  await cluster.apply(sharing('shared-a', 'gpu-shared'), sharing('shared-b', 'gpu-shared'));
  for (const name of ['shared-a', 'shared-b']) await phase(name, 'Running');
  await until('the limits of the claim', async () => limitsOnDisk().join() === '40/32');
  await cluster.kubectl('annotate', 'resourceclaim', 'gpu-shared', 'tencent.com/vcuda-share-limit=20');
  await until('the share of the claim to be lowered', async () => limitsOnDisk().join() === '20/32');
  await cluster.kubectl('annotate', 'pod', 'shared-b', 'tencent.com/vcuda-share-limit=10');
  await until('the lower share of a pod to count', async () => limitsOnDisk().join() === '10/32');
  const shown = await until('the claim to show its limits', async () => {
    const claim = await cluster.get<ShownClaim>('resourceclaim', 'gpu-shared');
    return claim.status.devices?.[0]?.data?.shareLimit === 10 ? claim : null;
  });
  t.match(shown.status.devices?.[0], {
    driver: 'gpu.tencent.com',
    conditions: [{ type: 'Ready', status: 'True' }],
    data: { cores: 40, memoryBytes: 8 * 2 ** 30 },
  });
  await remove('shared-a', 'shared-b');
  await until('all allocations to be released', async () => limitsOnDisk().length === 0);
});

test('the manifest for a MIG instance gets an instance of its profile, and no GPU', { skip }, async (t) => {
  await agent.stop();
  const model = { model: 'NVIDIA H100 80GB HBM3', memoryMiB: 81_920, multiprocessors: 132, computeCapability: '9.0' };
  const gpus = JSON.stringify({ gpus: [{ ...model, mig: ['3g.40gb', '1g.10gb'] }, model] });
  const divided = new AgentProcess(cluster, gpus, ['--allocation=dra', '--mig-strategy=whole'], {
    directory: '/var/run/gm-e2e-mig',
  });
  const pods = new ClaimPods(cluster, divided);
  t.teardown(() => divided.stop());
  await divided.start();
  const devices = await until('the GPU and the instances to be published', async () => {
    const [slice] = await slices();
    return slice?.spec.devices.length === 3 ? slice.spec.devices : null;
  });
  await cluster.apply(single('instance', 'gpu-mig'));
  await pods.phase('instance', 'Running');
  const claims = JSON.parse(await cluster.kubectl('get', 'resourceclaims', '-o', 'json')) as {
    readonly items: readonly {
      readonly metadata: { readonly name: string };
      readonly status?: { readonly allocation?: { readonly devices: { readonly results: readonly object[] } } };
    }[];
  };
  const results = claims.items
    .filter(({ metadata }) => metadata.name.startsWith('instance-'))
    .flatMap(({ status }) => status?.allocation?.devices.results ?? []);
  const wanted = devices.find(({ attributes }) => attributes.profile?.string === '1g.10gb');
  t.match(results, [{ device: wanted?.name ?? 'none' }]);
  t.same(pods.limitsOnDisk(), ['100/all']);
  t.same(await pods.gpuNodes('instance'), ['/dev/nvidia0'], 'the GPU that has the instance');
  await cluster.apply(single('next-instance', 'gpu-mig'));
  await pods.isUnschedulable('next-instance');
  await remove('instance');
  await pods.phase('next-instance', 'Running');
  await remove('next-instance');
  await until('all instances to be released', async () => specFiles().length === 0);
});
