import { readdirSync, readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { decodeLimits } from '../../src/abi/limits-file.js';
import { packageFile } from '../../src/host/package-files.js';
import { AgentProcess } from './agent-process.js';
import { BUSYBOX_IMAGE, NODE, TestCluster } from './cluster.js';
import { readShown, SHOW, type Shown } from './pods.js';
import { until } from '../harness/eventually.js';

/** Four GPUs of 16 GiB; 0-1 and 2-3 share a PCIe switch. */
const GPUS = `\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\tX\tPIX\tSYS\tSYS
GPU1\tPIX\tX\tSYS\tSYS
GPU2\tSYS\tSYS\tX\tPIX
GPU3\tSYS\tSYS\tPIX\tX
`;

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, GPUS, ['--allocation=dra']);
/** Consumable capacity is on by default from 1.36 on. */
const skip = cluster.version.atLeast(36) ? false : 'shares by claims need Kubernetes 1.36';

tap.setTimeout(900_000);
tap.teardown(() => agent.stop());

interface PodStatus {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly conditions?: readonly { readonly type: string; readonly message?: string }[];
  };
}

interface SliceObject {
  readonly metadata: { readonly uid: string };
  readonly spec: {
    readonly pool: { readonly name: string; readonly generation: number };
    readonly devices: readonly {
      readonly name: string;
      readonly allowMultipleAllocations?: boolean;
      readonly attributes: Readonly<Record<string, { readonly string?: string; readonly int?: number }>>;
      readonly capacity: Readonly<Record<string, { readonly value: string; readonly requestPolicy?: object }>>;
      readonly taints?: readonly object[];
    }[];
  };
}

async function phase(name: string, wanted: string): Promise<PodStatus> {
  return until(
    `pod ${name} to be ${wanted}`,
    async () => {
      const status = await cluster.get<PodStatus>('pod', name);
      return status.status.phase === wanted ? status : null;
    },
    120_000,
  );
}

async function shown(name: string, container = 'main'): Promise<Shown> {
  return readShown(await cluster.kubectl('logs', name, '-c', container));
}

async function remove(...names: readonly string[]): Promise<void> {
  await cluster.kubectl('delete', 'pod', ...names, '--wait=true', '--timeout=60s');
}

async function slices(): Promise<readonly SliceObject[]> {
  return (JSON.parse(await cluster.kubectl('get', 'resourceslices', '-o', 'json')) as { items: SliceObject[] }).items;
}

interface Request {
  readonly name: string;
  readonly exactly?: object;
  readonly firstAvailable?: readonly object[];
}

const template = (name: string, requests: readonly Request[], rest: object = {}): object => ({
  apiVersion: 'resource.k8s.io/v1',
  kind: 'ResourceClaimTemplate',
  metadata: { name },
  spec: { spec: { devices: { requests, ...rest } } },
});

const share = (cores: number, memory: string, name = 'gpu'): Request => ({
  name,
  exactly: { deviceClassName: 'vgpu.tencent.com', capacity: { requests: { cores: String(cores), memory } } },
});

interface Container {
  readonly name: string;
  readonly claims: readonly { readonly name: string; readonly request?: string }[];
  readonly command?: string;
}

/** A pod whose claims are made from templates of the same name, unless told otherwise. */
function pod(
  name: string,
  claims: readonly object[],
  containers: readonly Container[],
  initContainers: readonly Container[] = [],
): object {
  const convert = (container: Container): object => ({
    name: container.name,
    image: BUSYBOX_IMAGE,
    imagePullPolicy: 'Never',
    command: ['sh', '-c', container.command ?? `${SHOW}; sleep 100000`],
    resources: { claims: container.claims },
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { suite: 'gpu-manager' } },
    spec: {
      hostNetwork: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      resourceClaims: claims,
      containers: containers.map(convert),
      ...(initContainers.length > 0 ? { initContainers: initContainers.map(convert) } : {}),
    },
  };
}

const single = (name: string, templateName: string, command?: string): object =>
  pod(
    name,
    [{ name: 'g', resourceClaimTemplateName: templateName }],
    [{ name: 'main', claims: [{ name: 'g' }], ...(command === undefined ? {} : { command }) }],
  );

/** Share and blocks of 256 MiB of the limits on disk, one entry for each slice, sorted. */
function limitsOnDisk(): string[] {
  const base = join(agent.directory, 'vm');
  return readdirSync(base)
    .map((id) => {
      const decoded = decodeLimits(readFileSync(join(base, id, 'vgpu.limits')));
      if (!decoded.ok) return decoded.reason;
      return decoded.limits.devices
        .map(({ share: cores, memoryBytes }) => `${cores}/${memoryBytes === null ? 'all' : memoryBytes / 268_435_456}`)
        .join('+');
    })
    .sort();
}

const specFiles = (): string[] =>
  existsSync('/etc/cdi') ? readdirSync('/etc/cdi').filter((name) => name.startsWith('tencent.com-vcuda_')) : [];

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
  await remove('share');
  await until('all allocations to be released', async () => limitsOnDisk().length === 0 && specFiles().length === 0);
});

/** A pod with a claim that exists independently of it. */
const sharing = (name: string, claim: string): object =>
  pod(name, [{ name: 'g', resourceClaimName: claim }], [{ name: 'main', claims: [{ name: 'g' }] }]);

const gpuNodes = async (name: string): Promise<readonly string[]> => {
  const seen = await until(`the output of ${name}`, async () => {
    const text = await shown(name);
    return text.text.includes('READABLE') ? text : null;
  });
  return seen.devices.filter((path) => /nvidia\d+$/.test(path));
};

test('the five manifests of etc/dra work, and a pair of whole GPUs is the linked one', { skip }, async (t) => {
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
});

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
  await until('the fifth pod to be unschedulable', async () => {
    const { status } = await cluster.get<PodStatus>('pod', 'l4');
    return status.conditions?.some(({ message }) => /cannot allocate all claims/.test(message ?? '')) === true;
  });
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
