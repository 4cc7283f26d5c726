import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import type { AgentConfig } from '../../src/agent/config.js';
import { buildAgent } from '../../src/agent/run.js';
import { throughCdi, type AllocationSource } from '../../src/agent/allocator/cdi-devices.js';
import { deviceFiles } from '../../src/agent/allocator/node-files.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { NO_EDITS, type ContainerEdits } from '../../src/gpu/container-edits.js';
import { silentLog } from '../../src/host/log.js';
import { CdiSpecs } from '../../src/agent/libraries/cdi.js';
import { buildControlFiles } from './libraries/control-files.js';
import { buildHost } from './libraries/host-builder.js';
import { scratchDirectory } from '../scratch.js';
import { cards } from './gpus.js';
import { runPod, startedNode } from './node.js';
import { container, pod, simplePod } from './pods.js';

const MACHINE = process.arch === 'arm64' ? 'aarch64' : 'x86-64';

type Teardown = Parameters<typeof scratchDirectory>[0];

/** The configuration of a node whose driver is mirrored. */
async function withDriver(
  t: Teardown,
  names = ['nvidia', 'origin'],
): Promise<{ config: Partial<AgentConfig>; scratch: string }> {
  const scratch = await scratchDirectory(t);
  buildHost(join(scratch, 'host'), { driver: '580.95.05', architecture: MACHINE });
  buildControlFiles(join(scratch, 'native'), MACHINE);
  const volume = names.map((name) => ({
    name,
    base: join(scratch, 'vdriver'),
    components: { binaries: ['nvidia-smi'], libraries: ['libcuda.so', 'libnvidia-ml.so'] },
  }));
  writeFileSync(join(scratch, 'volume.conf'), JSON.stringify({ volume }));
  return {
    scratch,
    config: {
      volumeConfigPath: join(scratch, 'volume.conf'),
      hostRoot: join(scratch, 'host'),
      nativePath: join(scratch, 'native'),
    },
  };
}

const hostPathOf = (given: { mounts: readonly { hostPath: string; containerPath: string }[] }, containerPath: string) =>
  given.mounts.find((mount) => mount.containerPath === containerPath)?.hostPath;

test('a part of a GPU comes with the control libraries, a whole GPU with the driver itself', async (t) => {
  const { config, scratch } = await withDriver(t);
  const node = await startedNode(t, { config, gpus: cards(2), knowsPods: true });
  const part = await runPod(node, simplePod(30, 8));
  t.equal(hostPathOf(part, '/usr/local/nvidia'), join(scratch, 'vdriver/nvidia/current'));
  t.equal(hostPathOf(part, '/usr/lib64/libcuda.so.1'), join(scratch, 'vdriver/nvidia/current/lib64/libcuda.so.1'));
  const whole = await runPod(node, simplePod(100, 0));
  t.equal(hostPathOf(whole, '/usr/local/nvidia'), join(scratch, 'vdriver/origin/current'));
  for (const given of [part, whole]) {
    for (const { hostPath, containerPath, readOnly } of given.mounts) {
      t.ok(statSync(hostPath), containerPath);
      t.equal(readOnly, !containerPath.startsWith('/etc/vcuda/usage/'), containerPath);
    }
  }
});

test('a whole GPU comes with the control libraries where containers may be suspended', async (t) => {
  const { config, scratch } = await withDriver(t);
  const node = await startedNode(t, { config: { ...config, allowSuspend: true }, gpus: cards(1), knowsPods: true });
  const whole = await runPod(node, simplePod(100, 0));
  t.equal(hostPathOf(whole, '/usr/local/nvidia'), join(scratch, 'vdriver/nvidia/current'));
});

test('a limited container never gets the driver without the control libraries, even where nothing else is mirrored', async (t) => {
  const { config } = await withDriver(t, ['origin']);
  const node = await startedNode(t, { config, gpus: cards(1) });
  t.equal(hostPathOf(await runPod(node, simplePod(30, 8)), '/usr/local/nvidia'), undefined);
});

test('with CDI a container gets a device name, whose specification holds the edits and is removed with the allocation', async (t) => {
  const { config, scratch } = await withDriver(t);
  const cdiPath = join(scratch, 'cdi');
  const node = await startedNode(t, {
    config: { ...config, interposition: 'cdi', cdiPath },
    gpus: cards(1),
    seams: { graceMs: 0 },
  });
  const wanted = simplePod(30, 8);
  const given = await runPod(node, wanted);
  t.same([given.mounts, given.deviceNodes, given.environment], [[], [], {}]);
  t.equal(given.annotations['tencent.com/vcuda-core'], '30');
  const [device = ''] = given.cdiDevices;
  t.match(device, /^tencent\.com\/vcuda=slice-[0-9a-f]{16}$/);
  const id = device.slice(-16);
  const spec = JSON.parse(readFileSync(join(cdiPath, `tencent.com-vcuda_${id}.json`), 'utf8')) as {
    devices: { containerEdits: { mounts: { hostPath: string; containerPath: string }[] } }[];
  };
  const mounts = spec.devices[0]?.containerEdits.mounts ?? [];
  t.equal(hostPathOf({ mounts }, '/usr/local/nvidia'), join(scratch, 'vdriver/nvidia/current'));
  t.equal(hostPathOf({ mounts }, '/etc/vcuda'), join(node.config.virtualManagerPath, id));

  writeFileSync(join(cdiPath, 'tencent.com-vcuda_ffffffffffffffff.json'), '{}');
  node.kubelet.remove(wanted.uid);
  await node.kubelet.admit(pod([container('main', 0, 0)]));
  await node.agent.allocator.reconcile();
  await node.agent.allocator.reconcile();
  t.same(readdirSync(cdiPath), [], 'a specification of an earlier run is removed, too');
});

test('a kubelet that is too old for CDI devices gets the library path', async (t) => {
  const edits: ContainerEdits = { ...NO_EDITS, environment: { LD_LIBRARY_PATH: '/usr/local/nvidia/lib64' } };
  const unused = () => Promise.reject(new Error('not asked'));
  const source: AllocationSource = {
    devices: () => [],
    onDevicesChanged: () => () => undefined,
    preferred: unused,
    preStart: unused,
    allocate: async () => ({ ok: true, edits, allocation: '0123456789abcdef' }),
  };
  const specs = new CdiSpecs(await scratchDirectory(t));
  let version: string | null = 'v1.28.15';
  const devices = throughCdi(source, { specs, kubeletVersion: () => version, log: silentLog() });
  t.match(await devices.allocate('core', ['x']), { ok: true, edits });
  for (version of ['v1.29.0', null]) {
    t.match(await devices.allocate('core', ['x']), {
      ok: true,
      edits: { environment: {}, cdiDevices: ['tencent.com/vcuda=slice-0123456789abcdef'] },
    });
  }
});

test('a node that cannot mirror its configured driver does not start and logs the reason', async (t) => {
  const cases: readonly [(scratch: string) => void, RegExp][] = [
    [
      (scratch) => rmSync(join(scratch, 'host/usr/lib'), { recursive: true }),
      /--volume-config: no libcuda\.so\.1 for .* is the NVIDIA driver installed/,
    ],
    [(scratch) => rmSync(join(scratch, 'native/libcuda-control.so')), /--native-path: .*libcuda-control\.so/],
    [(scratch) => rmSync(join(scratch, 'host'), { recursive: true }), /--host-root: .*host/],
    [(scratch) => writeFileSync(join(scratch, 'volume.conf'), '{"volume":1}'), /--volume-config: .*volume\.conf/],
    [(scratch) => rmSync(join(scratch, 'volume.conf')), /--volume-config: .*volume\.conf/],
  ];
  for (const [damage, reason] of cases) {
    const { config, scratch } = await withDriver(t);
    damage(scratch);
    const node = new SimulatedNode({ directory: scratch, gpus: cards(1), log: silentLog(), config });
    writeFileSync(join(scratch, 'gpus'), cards(1));
    const started = buildAgent(node.config, silentLog()).then((agent) => agent.start());
    await t.rejects(started, { name: 'StartupError', message: reason });
  }
});

test('without a volume.conf nothing is mirrored', async (t) => {
  const node = await startedNode(t, { gpus: cards(1) });
  const given = await runPod(node, simplePod(30, 8));
  t.same(
    given.mounts.map((mount) => mount.containerPath),
    ['/etc/vcuda', '/etc/vcuda/usage/vgpu.usage', '/etc/vcuda/usage/vgpu.activity'],
  );
});

test(
  'the device nodes of the host are found where the host is mounted, and named as the host names them',
  { skip: process.getuid?.() === 0 ? false : 'making device nodes needs root' },
  async (t) => {
    const hostRoot = await scratchDirectory(t);
    const extra = { hostPath: '/dev/fuse', containerPath: '/dev/fuse' };
    mkdirSync(join(hostRoot, 'dev'));
    const files = deviceFiles(hostRoot, [extra], () => [], silentLog());
    t.same(files.commonNodes(), [extra]);
    execFileSync('mknod', [join(hostRoot, 'dev/nvidiactl'), 'c', '1', '3']);
    t.same(files.commonNodes(), [{ hostPath: '/dev/nvidiactl', containerPath: '/dev/nvidiactl' }, extra]);
    t.equal(readlinkSync(join(hostRoot, 'dev/char/1:3')), '../nvidiactl', 'systemd finds it by its number');
  },
);
