import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'tap';
import { decodeLimits } from '../../../src/abi/limits-file.js';
import { eventually } from '../../harness/eventually.js';
import { kubernetesHome } from '../../e2e/kubernetes-version.js';
import { DEVICE, POOL, startedDraNode, type DraNode } from './dra-node.js';

const BLOCK = 268_435_456;
const ALLOCATOR_PROGRAM = join(kubernetesHome(), 'engines/allocator/allocator');

const isSlice = (name: string): boolean => /^[0-9a-f]{16}$/.test(name);

async function limits(node: DraNode): Promise<string[]> {
  const base = node.node.config.virtualManagerPath;
  const found = await Promise.all(
    (await readdir(base)).filter(isSlice).map(async (id) => {
      const decoded = decodeLimits(await readFile(join(base, id, 'vgpu.limits')));
      if (!decoded.ok) return decoded.reason;
      return decoded.limits.devices
        .map(
          ({ share, memoryBytes, softLimit }) =>
            `${share}/${memoryBytes === null ? 'all' : memoryBytes / BLOCK}/${softLimit ?? 'hard'}`,
        )
        .join('+');
    }),
  );
  return found.sort();
}

interface DeviceMetadata {
  readonly requests: readonly { readonly devices: readonly object[] }[];
}

interface Spec {
  readonly containerEdits: {
    readonly env: readonly string[];
    readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string }[];
  };
  readonly devices: readonly {
    readonly name: string;
    readonly containerEdits: { readonly deviceNodes: readonly { readonly path: string }[] };
  }[];
}

async function specs(node: DraNode): Promise<Spec[]> {
  const base = node.node.config.cdiPath;
  const names = existsSync(base) ? await readdir(base) : [];
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(base, name), 'utf8')) as Spec));
}

test('the driver tells the kubelet its name, socket and versions, best first', async (t) => {
  const node = await startedDraNode(t);
  t.notOk(node.agent.dra?.plugin.registered);
  const info = await node.register();
  t.equal(info.name, 'gpu.tencent.com');
  t.equal(info.endpoint, node.sockets.driver);
  t.same(info.supported_versions, ['v1.DRAPlugin', 'v1.DRAResourceHealth', 'v1alpha1.DRAResourceHealth']);
  t.ok(node.agent.dra?.plugin.registered);
});

test('ResourceSlices that are deleted or changed by others are restored', async (t) => {
  const node = await startedDraNode(t);
  const { server } = node.cluster;
  const [slice] = server.all('resourceslices');
  const name = slice?.metadata.name ?? '';
  t.match(slice, {
    metadata: { ownerReferences: [{ kind: 'Node' }] },
    spec: { nodeName: 'simulated', driver: 'gpu.tencent.com' },
  });
  server.remove('resourceslices', '', name);
  await eventually(() => server.all('resourceslices').length === 1, 'the ResourceSlice to be restored');
  server.edit('resourceslices', '', name, (object) => ({
    ...object,
    spec: { ...(object.spec as object), devices: [] },
  }));
  await eventually(
    () => (server.read('resourceslices', '', name)?.spec as { devices: unknown[] }).devices.length === 2,
    'its devices to be restored',
  );
});

test('a share of a GPU becomes a slice with limits and a CDI device, and is removed completely', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('a', { cores: 30 });
  const [device] = (await node.given('a')) as readonly string[];
  t.match(device, /^tencent\.com\/vcuda=slice-[0-9a-f]{16}-0$/);
  t.same(await limits(node), ['30/16/hard']);
  const [spec] = await specs(node);
  t.equal(`tencent.com/vcuda=${spec?.devices[0]?.name}`, device);
  t.match(spec?.containerEdits.env, ['LD_LIBRARY_PATH=/usr/local/nvidia/lib64', 'NVIDIA_VISIBLE_DEVICES=void']);
  t.ok(spec?.containerEdits.mounts.some(({ containerPath }) => containerPath === '/etc/vcuda'));
  t.match(spec?.devices[0]?.containerEdits.deviceNodes, [{ path: '/dev/nvidia0' }]);
  t.same(await node.given('a'), [device], 'a repeated request gets the same answer');
  t.same(node.booked(), ['30/16']);
  t.same(await node.unprepare('a', 'never-seen'), { 'uid-a': { error: '' }, 'uid-never-seen': { error: '' } });
  t.same([await limits(node), await specs(node), node.booked()], [[], [], []]);
});

test('a whole GPU has no limits, admin access has no slice, and the parameters of the claim apply', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('whole', { device: 1 });
  node.allocate('admin', { device: 1, adminAccess: true });
  const parameters = { apiVersion: 'gpu.tencent.com/v1', kind: 'SliceConfig', softLimit: 60 };
  node.allocate('soft', {
    cores: 30,
    configs: [{ source: 'FromClaim', requests: [], opaque: { driver: 'gpu.tencent.com', parameters } }],
  });
  for (const name of ['whole', 'admin', 'soft']) t.type(await node.given(name), Array, name);
  t.same(await limits(node), ['100/all/hard', '30/16/60']);
  const admin = (await specs(node)).filter(
    ({ containerEdits }) => !containerEdits.mounts.some(({ containerPath }) => containerPath === '/etc/vcuda'),
  );
  t.equal(admin.length, 1);
  node.allocate('wrong', {
    cores: 10,
    configs: [
      {
        source: 'FromClaim',
        requests: [],
        opaque: { driver: 'gpu.tencent.com', parameters: { ...parameters, softLimit: 120 } },
      },
    ],
  });
  t.match(await node.given('wrong'), /claim team\/wrong, config 1: softLimit: 120 is not a whole number from 1 to 100/);
});

test('a container finds the attributes of its devices in a file, until its claim is released', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('team-x7k2p', { cores: 30, device: 1, nameInPod: 'gpu' });
  await node.given('team-x7k2p');
  const path =
    '/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/gpu/gpu/gpu.tencent.com-metadata.json';
  const [spec] = await specs(node);
  const file = spec?.containerEdits.mounts.find(({ containerPath }) => containerPath === path)?.hostPath ?? '';
  const text = await readFile(file, 'utf8');
  const [metadata] = text.split(/(?<=^\}\n)/m).map((part) => JSON.parse(part) as DeviceMetadata);
  const [slice] = node.cluster.server.all('resourceslices') as unknown as readonly {
    readonly spec: { readonly devices: readonly { readonly name: string; readonly attributes: object }[] };
  }[];
  const published = slice?.spec.devices.find(({ name }) => name === DEVICE(1));
  t.same(metadata?.requests[0]?.devices, [
    { driver: 'gpu.tencent.com', pool: POOL, name: DEVICE(1), attributes: published?.attributes },
  ]);
  t.equal((await stat(file)).mode & 0o777, 0o644, 'programs of every user can read it');
  if (existsSync(ALLOCATOR_PROGRAM)) {
    const { stdout, stderr } = spawnSync(ALLOCATOR_PROGRAM, ['metadata'], { input: text, encoding: 'utf8' });
    t.equal(stderr, '');
    t.match(JSON.parse(stdout), metadata, "Kubernetes' own library reads it");
  } else t.comment(`no ${ALLOCATOR_PROGRAM}: run scripts/build-engines allocator`);
  await node.unprepare('team-x7k2p');
  t.notOk(existsSync(file));
});

test('claims that cannot be satisfied are refused one by one, with the reason', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('good', { cores: 30 });
  node.allocate('gone', { cores: 30, device: 7 });
  node.cluster.server.seed('resourceclaims', {
    metadata: { name: 'waits', namespace: 'team', uid: 'uid-waits' },
    spec: {},
    status: {},
  });
  node.cluster.server.seed('resourceclaims', {
    metadata: { name: 'anew', namespace: 'team', uid: 'another' },
    spec: {},
    status: {},
  });
  const answer = await node.prepare('good', 'gone', 'waits', 'anew', 'nowhere');
  t.equal(answer['uid-good']?.error, '');
  t.match(answer['uid-gone']?.error, /claim team\/gone: device gpu-\S+ is not on this node any more/);
  t.match(answer['uid-waits']?.error, /claim team\/waits is not allocated/);
  t.match(
    answer['uid-anew']?.error,
    /claim team\/anew: not found with UID uid-anew \(was it deleted and created again\?\)/,
  );
  t.match(answer['uid-nowhere']?.error, /not found with UID/);
});

test('a claim without room waits for the release that makes room', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('first', { cores: 80 });
  node.allocate('second', { cores: 30 });
  await node.given('first');
  const waiting = node.given('second');
  await eventually(
    () => node.cluster.server.requests.some((request) => JSON.stringify(request).includes('second')),
    'the second claim to be read',
  );
  await node.unprepare('first');
  t.type(await waiting, Array);
  t.same(node.booked(), ['30/16']);
});

test('the holder of a claim that was deleted by force makes room at once', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('first', { cores: 80 });
  await node.given('first');
  node.cluster.server.remove('resourceclaims', 'team', 'first');
  node.allocate('second', { cores: 30 });
  t.type(await node.given('second'), Array);
  t.same(node.booked(), ['30/16']);
});

test('a claim that was allocated anew loses its old allocation', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('a', { cores: 30 });
  await node.given('a');
  node.cluster.server.remove('resourceclaims', 'team', 'a');
  node.allocate('a', { cores: 50, device: 1 });
  t.type(await node.given('a'), Array);
  t.same(await limits(node), ['50/16/hard']);
});

test('without the API server a prepared claim gets its answer as before, and another claim is refused', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('known', { cores: 30 });
  node.allocate('unknown', { cores: 30 });
  const before = await node.given('known');
  await node.cluster.server.stop();
  t.same(await node.given('known'), before);
  t.match(await node.given('unknown'), /claim team\/unknown cannot be read: .*; the kubelet retries/);
  await node.cluster.server.start();
});

test('an agent that starts again knows its claims and restores their missing files', async (t) => {
  const node = await startedDraNode(t);
  node.allocate('a', { cores: 30 });
  await node.given('a');
  const [limitsBefore, specsBefore] = [await limits(node), await specs(node)];
  await node.node.stopAgent();
  // The files that a reboot removes from tmpfs.
  await rm(node.node.config.virtualManagerPath, { recursive: true });
  await rm(node.node.config.cdiPath, { recursive: true });
  await node.node.startAgent();
  t.same([await limits(node), await specs(node), node.booked()], [limitsBefore, specsBefore, ['30/16']]);
});

test('invalid bytes on the sockets end a connection, never the agent', async (t) => {
  const node = await startedDraNode(t);
  for (const path of [node.sockets.driver, node.sockets.registration]) {
    for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.alloc(100_000, 0xff)]) {
      await new Promise<void>((resolve) => {
        const socket = connect(path, () => {
          socket.write(bytes);
          setTimeout(() => socket.destroy(), 50);
        });
        socket.on('error', () => undefined);
        socket.on('close', () => resolve());
        socket.resume();
      });
    }
  }
  node.allocate('a', { cores: 30 });
  t.type(await node.given('a'), Array);
  await node.register();
});

test('32 concurrent claims of 3 cores all fit on one GPU, and all are released', async (t) => {
  const node = await startedDraNode(t, 1);
  const names = Array.from({ length: 32 }, (_, index) => `c${index}`);
  for (const name of names) node.allocate(name, { cores: 3, memory: '512Mi' });
  const answers = await Promise.all(names.map((name) => node.given(name)));
  t.ok(answers.every((answer) => Array.isArray(answer)));
  t.equal(node.booked().length, 32);
  await Promise.all(names.map((name) => node.unprepare(name)));
  t.same([await limits(node), node.booked()], [[], []]);
});
