import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import pino from 'pino';
import { test, type Test } from 'tap';
import { KubeletPlugin, kubeletPluginSockets } from '../../../src/agent/claims/kubelet-plugin.js';
import { draService } from '../../../src/agent/claims/dra-service.js';
import { parseSimNode } from '../../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../../src/agent/gpus/sim/sim-driver.js';
import { systemClock } from '../../../src/host/clock.js';
import { mountTmpfs, unmount } from '../../../src/host/mounts.js';
import { socketIdentity } from '../../../src/host/unix-socket.js';
import { silentLog } from '../../../src/host/log.js';
import { pluginRegistrationProto } from '../../../src/rpc/proto.js';
import { callUnary } from '../../../src/rpc/unary.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { scratchDirectory } from '../../scratch.js';
import { POOL, startedDraNode, type DraNode } from './dra-node.js';

const A100 = { model: 'NVIDIA A100-SXM4-40GB', memoryMiB: 40_960, multiprocessors: 108, computeCapability: '8.0' };

async function migNode(t: Test, gpus: readonly object[]): Promise<DraNode> {
  const parsed = parseSimNode(JSON.stringify({ gpus }));
  if (!parsed.ok) throw new Error(parsed.reason);
  const driver = new SimDriver(parsed.node, systemClock, true);
  return startedDraNode(t, 2, { driver }, { migStrategy: 'shared' });
}

/** A driver whose kubelet is the test, with a clock that the test moves. */
async function registeringPlugin(t: Test) {
  const directory = await scratchDirectory(t);
  const clock = new ManualClock();
  const lines: string[] = [];
  const paths = { registryPath: join(directory, 'r'), driverPath: join(directory, 'd') };
  await mkdir(paths.registryPath);
  const handler = { prepare: async () => new Map(), unprepare: async () => undefined };
  const plugin = new KubeletPlugin({
    ...paths,
    services: [draService(handler, silentLog())],
    clock,
    log: pino({}, { write: (line: string) => void lines.push(line) }),
  });
  await plugin.serve();
  await plugin.register();
  t.teardown(() => plugin.stop());
  return { plugin, clock, lines, socket: kubeletPluginSockets(paths.registryPath, paths.driverPath).registration };
}

async function callRegistration(socket: string, method: 'GetInfo' | 'NotifyRegistrationStatus', request: object) {
  const { Registration } = pluginRegistrationProto().pluginregistration;
  const client = new Registration(`unix:${socket}`, credentials.createInsecure());
  try {
    await callUnary(client, method, request, 5_000);
  } finally {
    client.close();
  }
}

test('a kubelet that does not ask for the driver within a minute is told in the log, with what to check', async (t) => {
  const { clock, lines, socket } = await registeringPlugin(t);
  clock.advance(59_000);
  t.same(lines, []);
  clock.advance(2_000);
  t.match(
    lines.join(''),
    `the kubelet has not asked for ${socket}: check that DynamicResourceAllocation is enabled and that this is its plugins_registry`,
  );
});

test('a kubelet that asks in time causes no warning', async (t) => {
  const { clock, lines, socket } = await registeringPlugin(t);
  await callRegistration(socket, 'GetInfo', {});
  clock.advance(61_000);
  t.notMatch(lines.join(''), /has not asked/);
});

test("a refused registration is logged in the kubelet's words, and the socket is made anew after ten seconds", async (t) => {
  const { plugin, clock, lines, socket } = await registeringPlugin(t);
  await callRegistration(socket, 'GetInfo', {});
  await callRegistration(socket, 'NotifyRegistrationStatus', { plugin_registered: false, error: 'no such version' });
  t.match(lines.join(''), /"reason":"no such version".*the kubelet refused the DRA driver/);
  t.notOk(plugin.registered);
  const before = await socketIdentity(socket);
  clock.advance(10_000);
  await eventually(async () => {
    const now = await socketIdentity(socket);
    return now !== null && now !== before;
  }, 'the socket to be made anew');
  await callRegistration(socket, 'NotifyRegistrationStatus', { plugin_registered: true });
  t.ok(plugin.registered);
});

test('sockets that are removed are made again within five seconds, and the kubelet finds the driver', async (t) => {
  const { plugin, clock, socket } = await registeringPlugin(t);
  await callRegistration(socket, 'NotifyRegistrationStatus', { plugin_registered: true });
  await rm(socket);
  clock.advance(5_000);
  await eventually(() => existsSync(socket), 'the socket to be made again');
  t.notOk(plugin.registered);
  await callRegistration(socket, 'NotifyRegistrationStatus', { plugin_registered: true });
  t.ok(plugin.registered);
});

test('a node publishes more than 16 devices, and a claim gets up to 16 of them', async (t) => {
  const divided = { ...A100, mig: ['2g.10gb', '2g.10gb', '2g.10gb'] };
  const node = await migNode(t, [divided, divided, divided, divided, divided, divided]);
  const [slice] = node.cluster.server.all('resourceslices');
  const names = (slice?.spec as { readonly devices: readonly { readonly name: string }[] }).devices.map(
    ({ name }) => name,
  );
  t.equal(names.length, 18);
  const allocate = (name: string, devices: readonly string[]) =>
    node.cluster.server.seed('resourceclaims', {
      metadata: { name, namespace: 'team', uid: `uid-${name}` },
      spec: {},
      status: {
        allocation: {
          devices: {
            results: devices.map((device) => ({ request: 'gpus', driver: 'gpu.tencent.com', pool: POOL, device })),
          },
        },
      },
    });
  allocate('too-many', names.slice(0, 17));
  allocate('most', names.slice(0, 16));
  t.equal(await node.given('too-many'), 'claim team/too-many: request gpus has 17 GPUs; at most 16 are possible');
  t.same(node.booked(), []);
  t.equal((await node.given('most')).length, 16);
});

const DISK_BYTES = 4 * 2 ** 20;

/** Why this machine does not let the test mount a file system; false if it does. */
function mountProblem(): string | false {
  const probe = mkdtempSync(join(tmpdir(), 'gm-mount-'));
  try {
    mountTmpfs(probe, DISK_BYTES, 1);
    return false;
  } catch (error) {
    return (error as Error).message;
  } finally {
    unmount(probe);
    rmSync(probe, { recursive: true, force: true });
  }
}

const skip = mountProblem();

test('on a full disk a claim is refused with the reason, and is prepared when there is room', { skip }, async (t) => {
  const node = await startedDraNode(t);
  const base = node.node.config.virtualManagerPath;
  mountTmpfs(base, DISK_BYTES, 1_000);
  t.teardown(() => unmount(base));
  await t.rejects(writeFile(join(base, 'filler'), Buffer.alloc(2 * DISK_BYTES)), { code: 'ENOSPC' });
  node.allocate('a', { cores: 30 });
  t.match(await node.given('a'), /^cannot create the files of claim team\/a: ENOSPC: no space left on device, /);
  t.same(node.booked(), []);
  await rm(join(base, 'filler'));
  t.type(await node.given('a'), Array);
  t.same(node.booked(), ['30/16']);
});

test('ResourceSlices that a policy refuses are retried with growing pauses, while claims go on', async (t) => {
  const node = await startedDraNode(t);
  const { server } = node.cluster;
  const message = 'ValidatingAdmissionPolicy denied request: this node may not write slices';
  const denied = (['create', 'update'] as const).map((verb) =>
    server.inject({ verb, resource: 'resourceslices' }, { do: 'answer', code: 422, reason: 'Invalid', message }),
  );
  for (const { metadata } of server.all('resourceslices')) server.remove('resourceslices', '', metadata.name ?? '');
  const publisher = node.agent.dra?.publisher;
  await eventually(() => (publisher?.errors ?? 0) >= 2, 'two refused writes');
  const told = () => server.all('events').filter((event) => event['reason'] === 'ResourceSlicesRefused');
  await eventually(() => told().length > 0, 'the event');
  t.equal(told().length, 1, 'once');
  t.match(told()[0], { involvedObject: { kind: 'Node' }, message: /this node may not write slices/ });
  node.allocate('a', { cores: 30 });
  t.type(await node.given('a'), Array);
  for (const fault of denied) fault.remove();
  await eventually(() => server.all('resourceslices').length === 1, 'the slice to be written');
});

test('a claim for a GPU that was divided by MIG meanwhile is refused with that reason', async (t) => {
  const node = await migNode(t, [{ ...A100, mig: ['2g.10gb'] }, A100]);
  node.allocate('a');
  t.match(await node.given('a'), /^claim team\/a: GPU GPU-00000000-\S+ is in MIG mode now/);
  t.same(node.booked(), []);
});
