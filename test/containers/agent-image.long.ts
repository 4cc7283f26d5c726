import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { KubeletEmulator } from '../../src/simulation/kubelet/kubelet.js';
import { cards } from '../agent/gpus.js';
import { admitted, limitsOf, only } from '../agent/node.js';
import { simplePod } from '../agent/pods.js';
import { CONTAINERD_PROGRAMS, ContainerdEngine } from '../agent/runtimes/containerd-engine.js';
import { daemonSkipReason } from '../agent/runtimes/daemon.js';
import { imageSkipReason, OWN_CONFIG } from '../agent/runtimes/test-image.js';
import { scratchDirectory } from '../scratch.js';
import { nativeSkipReason } from './simulated-host.js';

const ROOTFS = fileURLToPath(new URL('../../../scripts/image-rootfs', import.meta.url));
const AGENT_IMAGE = 'docker.io/gpu-manager/agent:1';

test(
  'the agent runs from its image and serves the kubelet of the node',
  { skip: daemonSkipReason(...CONTAINERD_PROGRAMS) || imageSkipReason() || nativeSkipReason() },
  async (t) => {
    const scratch = await scratchDirectory(t);
    const at = (name: string): string => join(scratch, name);
    const root = at('image');
    execFileSync(ROOTFS, [root], { stdio: 'ignore' });
    const packing = at('packing');
    const shared = at('node');
    for (const directory of [packing, shared]) mkdirSync(directory);
    writeFileSync(join(shared, 'gpus'), cards(2));

    const kubelet = new KubeletEmulator({
      directory: join(shared, 'plugins'),
      podResourcesSocket: join(shared, 'pod-resources.sock'),
    });
    await kubelet.start();
    t.teardown(() => kubelet.stop());
    const engine = new ContainerdEngine();
    t.teardown(() => engine.stop());
    await engine.start(scratch);
    await engine.importImage(packing, root, AGENT_IMAGE, OWN_CONFIG);

    const inNode = (name: string): string => join(shared, name);
    const id = await engine.run({
      pod: { uid: 'agent', namespace: 'kube-system', name: 'gpu-manager' },
      name: 'gpu-manager',
      image: AGENT_IMAGE,
      command: [
        '/usr/bin/gpu-manager',
        'run',
        '--driver=sim',
        `--sim-node=${inNode('gpus')}`,
        '--standalone',
        '--share-mode',
        '--query-port=0',
        `--sim-device-path=${inNode('devices')}`,
        `--device-plugin-path=${inNode('plugins')}`,
        `--pod-resources-socket=${inNode('pod-resources.sock')}`,
        `--virtual-manager-path=${inNode('vm')}`,
        `--checkpoint-path=${inNode('checkpoint')}`,
        `--display-socket=${inNode('display.sock')}`,
      ],
      mounts: [{ hostPath: shared, containerPath: shared, writable: true }],
      hostNamespaces: true,
    });
    await kubelet.ready(30_000);

    const pod = simplePod(30, 8);
    const given = only(admitted(await kubelet.admit(pod)));
    await kubelet.startContainer(pod.uid, given.name);
    t.match((await limitsOf(given)).devices, [{ share: 30, memoryBytes: 8 * 268_435_456 }]);
    const usage = await engine.exec(id, ['/usr/bin/gpu-manager', 'usage', '--display-socket', inNode('display.sock')]);
    t.match(usage, { code: 0, output: new RegExp(`${pod.name}/main `) });
    t.match(
      await engine.exec(id, ['/usr/lib/gpu-manager/native/build/gpu-client', '--help']),
      { output: /usage/iu },
      'gpu-client runs in the image',
    );
  },
);
