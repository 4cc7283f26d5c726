import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { decodeLimits } from '../../src/abi/limits-file.js';
import { KubeletEmulator } from '../../src/simulation/kubelet/kubelet.js';
import { admitted, only, sliceDirectory } from '../agent/node.js';
import { simplePod } from '../agent/pods.js';
import { CONTAINERD_PROGRAMS, ContainerdEngine } from '../agent/runtimes/containerd-engine.js';
import { daemonSkipReason } from '../agent/runtimes/daemon.js';
import { imageSkipReason, OWN_CONFIG } from '../agent/runtimes/test-image.js';
import { scratchDirectory } from '../scratch.js';
import { nativeSkipReason } from './simulated-host.js';
import { MACHINE_LIBRARIES } from './program-files.js';

const PACKAGE = fileURLToPath(new URL('../../../', import.meta.url));
const IMAGE = 'docker.io/gpu-manager/drop-in:1';
const DRIVER_VERSION = '580.95.05';

/** Host paths that the DaemonSet of tkestack gpu-manager mounts, by their paths in its container. */
const ORIGINAL_MOUNTS: readonly (readonly [containerPath: string, hostPath: string, writable: boolean])[] = [
  ['/var/lib/kubelet/device-plugins', '/var/lib/kubelet/device-plugins', true],
  ['/etc/gpu-manager/vdriver', '/etc/gpu-manager/vdriver', true],
  ['/etc/gpu-manager/vm', '/etc/gpu-manager/vm', true],
  ['/etc/gpu-manager/checkpoint', '/etc/gpu-manager/checkpoint', true],
  ['/var/log/gpu-manager', '/etc/gpu-manager/log', true],
  ['/var/run', '/var/run', true],
  ['/usr/local/host', '/usr', false],
];

/**
 * The environment of that DaemonSet. The additional values of EXTRA_FLAGS belong to this test: simulated GPUs, no API
 * server, and no port, because the container shares the network of the machine.
 */
const ORIGINAL_ENVIRONMENT = {
  LOG_LEVEL: '4',
  NODE_NAME: 'node-1',
  EXTRA_FLAGS: '--logtostderr=false --driver=sim --standalone --query-port=0',
};

test(
  'the image works in the DaemonSet of the original, in which only the image name changes',
  { skip: daemonSkipReason(...CONTAINERD_PROGRAMS) || imageSkipReason() || nativeSkipReason() },
  async (t) => {
    const scratch = await scratchDirectory(t);
    const onHost = (path: string): string => join(scratch, 'host', path);
    for (const [, hostPath] of ORIGINAL_MOUNTS) mkdirSync(onHost(hostPath), { recursive: true });
    const libraries = onHost(MACHINE_LIBRARIES);
    mkdirSync(libraries, { recursive: true });
    for (const name of ['libcuda.so', 'libnvidia-ml.so'])
      copyFileSync(join(PACKAGE, `native/build/sim/${name}.1`), join(libraries, `${name}.${DRIVER_VERSION}`));
    const kubelet = new KubeletEmulator({
      directory: onHost('/var/lib/kubelet/device-plugins'),
      podResourcesSocket: join(scratch, 'pod-resources.sock'),
    });
    await kubelet.start();
    t.teardown(() => kubelet.stop());

    const [root, packing] = [join(scratch, 'image'), join(scratch, 'packing')];
    execFileSync(join(PACKAGE, 'scripts/image-rootfs'), [root], { stdio: 'ignore' });
    mkdirSync(packing);
    const engine = new ContainerdEngine();
    t.teardown(() => engine.stop());
    await engine.start(scratch);
    await engine.importImage(packing, root, IMAGE, OWN_CONFIG);
    const agent = await engine.run({
      pod: { uid: 'agent', namespace: 'kube-system', name: 'gpu-manager-daemonset' },
      name: 'gpu-manager',
      image: IMAGE,
      environment: ORIGINAL_ENVIRONMENT,
      mounts: ORIGINAL_MOUNTS.map(([containerPath, hostPath, writable]) => ({
        containerPath,
        hostPath: onHost(hostPath),
        writable,
      })),
      hostNamespaces: true,
    });
    await kubelet.ready(60_000);

    const pod = simplePod(30, 8);
    const given = only(admitted(await kubelet.admit(pod)));
    await kubelet.startContainer(pod.uid, given.name);
    const limits = decodeLimits(readFileSync(join(onHost(sliceDirectory(given)), 'vgpu.limits')));
    t.match(limits, { ok: true, limits: { devices: [{ share: 30, memoryBytes: 8 * 268_435_456 }] } });
    t.match(given.environment, { LD_LIBRARY_PATH: '/usr/local/nvidia/lib64' });
    const mounted = given.mounts.find(({ containerPath }) => containerPath === '/usr/local/nvidia')?.hostPath ?? '';
    t.ok(existsSync(onHost(join(mounted, 'lib64/libcuda.so.1'))), 'the libraries of the host are mirrored');
    t.same(
      readdirSync(onHost('/etc/gpu-manager/vdriver/nvidia/lib64')),
      readdirSync(onHost(join(mounted, 'lib64'))),
      'the path of the original leads to them',
    );
    t.ok(existsSync(onHost('/etc/gpu-manager/checkpoint/gpumanager_internal_checkpoint')), 'allocations are stored');
    const usage = await engine.exec(agent, ['/usr/bin/gpu-manager', 'usage']);
    t.match(usage, { code: 0, output: / 30 % +0 MiB +2048 MiB / }, 'the display service has its usual socket');
  },
);
