import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import type { ContainerEdits } from '../../../src/gpu/container-edits.js';
import {
  CDI_DIRECTORY,
  cdiDeviceName,
  cdiSpec,
  CdiSpecs,
  kubeletPassesCdiDevices,
} from '../../../src/agent/libraries/cdi.js';
import { scratchDirectory } from '../../scratch.js';

const ID = '0123456789abcdef';

const EDITS: ContainerEdits = {
  environment: { LD_LIBRARY_PATH: '/usr/local/nvidia/lib64', NVIDIA_VISIBLE_DEVICES: 'GPU-1' },
  mounts: [
    { hostPath: '/etc/gpu-manager/vdriver/nvidia/current', containerPath: '/usr/local/nvidia', writable: false },
    { hostPath: `/etc/gpu-manager/vm/${ID}/usage`, containerPath: '/etc/vcuda/usage', writable: true },
  ],
  deviceNodes: [{ hostPath: '/dev/nvidia0', containerPath: '/dev/nvidia0' }],
  annotations: { 'tencent.com/vcuda-core': '10' },
  cdiDevices: [],
};

test('a specification holds the edits', (t) => {
  t.same(cdiSpec(ID, EDITS), {
    cdiVersion: '0.3.0',
    kind: 'tencent.com/vcuda',
    devices: [
      {
        name: `slice-${ID}`,
        containerEdits: {
          env: ['LD_LIBRARY_PATH=/usr/local/nvidia/lib64', 'NVIDIA_VISIBLE_DEVICES=GPU-1'],
          deviceNodes: [{ path: '/dev/nvidia0', permissions: 'rw' }],
          mounts: [
            {
              hostPath: '/etc/gpu-manager/vdriver/nvidia/current',
              containerPath: '/usr/local/nvidia',
              options: ['rbind', 'ro', 'nosuid', 'nodev'],
            },
            {
              hostPath: `/etc/gpu-manager/vm/${ID}/usage`,
              containerPath: '/etc/vcuda/usage',
              options: ['rbind', 'rw', 'nosuid', 'nodev'],
            },
          ],
        },
      },
    ],
  });
  t.end();
});

test('a device node under another name needs a later version of the specification', (t) => {
  const spec = cdiSpec(ID, {
    ...EDITS,
    deviceNodes: [{ hostPath: '/run/sim/nvidia0', containerPath: '/dev/nvidia0' }],
  });
  t.match(spec, {
    cdiVersion: '0.5.0',
    devices: [{ containerEdits: { deviceNodes: [{ path: '/dev/nvidia0', hostPath: '/run/sim/nvidia0' }] } }],
  });
  t.end();
});

test('specifications are written, listed and removed, and other files are left alone', async (t) => {
  const directory = join(await scratchDirectory(t), 'cdi');
  const specs = new CdiSpecs(directory);
  t.same(await specs.list(), []);
  t.equal(await specs.write(ID, EDITS), 'tencent.com/vcuda=slice-0123456789abcdef');
  writeFileSync(join(directory, 'nvidia.com-gpu.yaml'), '');
  t.same(await specs.list(), [ID]);
  t.same(JSON.parse(readFileSync(join(directory, `tencent.com-vcuda_${ID}.json`), 'utf8')), cdiSpec(ID, EDITS));
  t.equal(statSync(join(directory, `tencent.com-vcuda_${ID}.json`)).mode & 0o777, 0o644);
  await specs.remove(ID);
  await specs.remove(ID);
  t.same(readdirSync(directory), ['nvidia.com-gpu.yaml']);
  await t.rejects(specs.write('../x', EDITS), /file name/);
});

test('kubelets from 1.29 on pass CDI devices on', (t) => {
  for (const version of ['v1.29.0', '1.31.2', 'v1.33.0-rc.1+k3s1', 'v2.0.0'])
    t.ok(kubeletPassesCdiDevices(version), version);
  for (const version of ['v1.28.9', 'v1.20.2', 'v0.30.0', '', 'unknown'])
    t.notOk(kubeletPassesCdiDevices(version), version);
  t.end();
});

const PODMAN = '/usr/bin/podman';
const podmanSkip =
  process.getuid?.() !== 0
    ? 'starting containers needs root'
    : !existsSync(PODMAN)
      ? 'needs podman, which knows CDI'
      : !existsSync('/bin/busybox')
        ? 'needs /bin/busybox (busybox-static)'
        : false;

test('a real runtime applies the specification to a container', { skip: podmanSkip }, async (t) => {
  const scratch = await scratchDirectory(t);
  for (const name of ['root/bin', 'root/proc', 'root/dev', 'root/sys', 'root/etc', 'mirror', 'usage'])
    mkdirSync(join(scratch, name), { recursive: true });
  copyFileSync('/bin/busybox', join(scratch, 'root/bin/busybox'));
  for (const command of ['sh', 'cat', 'ls', 'touch']) symlinkSync('busybox', join(scratch, 'root/bin', command));
  writeFileSync(join(scratch, 'mirror/library'), 'mirrored');
  execFileSync('mknod', [join(scratch, 'node'), 'c', '1', '3']);

  const id = `test${process.pid}`;
  const specs = new CdiSpecs();
  const existed = existsSync(CDI_DIRECTORY);
  t.teardown(async () => {
    await specs.remove(id);
    if (!existed) rmSync(CDI_DIRECTORY, { recursive: true, force: true });
  });
  await specs.write(id, {
    environment: { LD_LIBRARY_PATH: '/usr/local/nvidia/lib64' },
    mounts: [
      { hostPath: join(scratch, 'mirror'), containerPath: '/usr/local/nvidia', writable: false },
      { hostPath: join(scratch, 'usage'), containerPath: '/etc/vcuda/usage', writable: true },
    ],
    deviceNodes: [{ hostPath: join(scratch, 'node'), containerPath: '/dev/nvidia0' }],
    annotations: {},
    cdiDevices: [],
  });
  const script =
    'echo $LD_LIBRARY_PATH; cat /usr/local/nvidia/library; echo; ls -l /dev/nvidia0; touch /etc/vcuda/usage/a && echo writable; touch /usr/local/nvidia/a || echo read-only';
  const places = [
    '--root',
    join(scratch, 'storage'),
    '--runroot',
    join(scratch, 'run'),
    '--storage-driver',
    'vfs',
    '--cgroup-manager',
    'cgroupfs',
    '--events-backend',
    'file',
    '--runtime',
    'runc',
  ];
  const result = spawnSync(
    PODMAN,
    [
      ...places,
      'run',
      '--rm',
      '--network',
      'none',
      '--ulimit',
      'nofile=512:512',
      '--ulimit',
      'nproc=512:512',
      '--device',
      cdiDeviceName(id),
      '--rootfs',
      join(scratch, 'root'),
      '/bin/sh',
      '-c',
      script,
    ],
    { encoding: 'utf8' },
  );
  t.match(
    result.stdout,
    /^\/usr\/local\/nvidia\/lib64\nmirrored\ncrw.* 1, +3 .*\/dev\/nvidia0\nwritable\nread-only\n$/,
    result.stderr,
  );
});
