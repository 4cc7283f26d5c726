import { chmodSync, mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import { applyMirror, currentVersion } from '../../src/agent/libraries/mirror.js';
import { REMOVAL_GRACE_MS, removeUnusedVersions } from '../../src/agent/libraries/mirror-versions.js';
import { NodeContainers } from '../../src/agent/runtimes/node-containers.js';
import { cards } from '../agent/gpus.js';
import { runPod, startedNode } from '../agent/node.js';
import { simplePod } from '../agent/pods.js';
import { CONTAINERD_PROGRAMS, ContainerdEngine } from '../agent/runtimes/containerd-engine.js';
import { daemonSkipReason } from '../agent/runtimes/daemon.js';
import { DOCKER_PROGRAMS, DockerEngine } from '../agent/runtimes/docker-engine.js';
import type { Engine } from '../agent/runtimes/engine.js';
import { imageSkipReason } from '../agent/runtimes/test-image.js';
import { scratchDirectory } from '../scratch.js';
import { nativeSkipReason, PROBE, simulatedHost } from './simulated-host.js';
import { until } from '../harness/eventually.js';

/** The request of the container: 30 hundredths of the GPU and 4 blocks of 256 MiB. */
const CORES = 30;
const BLOCKS = 4;
const LIMIT_MIB = BLOCKS * 256;
const GPU_MIB = 16_384;

/**
 * A container of `given`, as the kubelet starts it, whose first process runs both parts of the probe and then waits.
 */
async function start(
  engine: Engine,
  scratch: string,
  given: GivenContainer,
  podUid: string,
  user: number,
): Promise<string> {
  // The state of the GPU: one folder for each container, because each has a GPU of its own here.
  const state = join(scratch, `card-${user}`);
  const results = join(scratch, `results-${user}`);
  for (const directory of [state, results]) {
    mkdirSync(directory);
    chmodSync(directory, 0o1777);
  }
  const mounts = given.mounts.map(({ hostPath, containerPath, readOnly }) => ({
    hostPath,
    containerPath,
    writable: !readOnly,
  }));
  return engine.run({
    pod: { uid: podUid, namespace: 'default', name: `user-${user}` },
    name: 'main',
    command: [
      '/bin/sh',
      '-c',
      `${PROBE} memory > /results/memory 2>&1; ${PROBE} share 400 > /results/share 2>&1; exec sleep 1000`,
    ],
    environment: given.environment,
    devices: given.deviceNodes,
    mounts: [
      ...mounts,
      { hostPath: state, containerPath: `/dev/shm/gpu-sim-${user}`, writable: true },
      { hostPath: results, containerPath: '/results', writable: true },
    ],
    ...(user === 0 ? {} : { user, readOnlyRoot: true }),
  });
}

/** Reads the results of the first process when they are complete. */
async function firstResult(engine: Engine, id: string, name: string): Promise<string> {
  return until(`the result for ${name}`, async () => {
    const { output } = await engine.exec(id, ['cat', `/results/${name}`]);
    return output.endsWith('\n') && output;
  });
}

const shareIn = (output: string): number => Number(/^share (\d+)$/m.exec(output)?.[1] ?? NaN);

/** The ways to start a further process in the container. */
const WAYS: readonly (readonly [string, readonly string[]])[] = [
  ['started by exec', []],
  ['with an empty environment', ['env', '-i']],
  ['with a library path of its own', ['env', 'LD_LIBRARY_PATH=/usr/local/cuda/lib64']],
];

async function checkLimits(t: Test, engine: Engine, id: string): Promise<void> {
  const memory = /^memory (\d+) result 2$/m;
  const withinLimit = (output: string, way: string): void => {
    const allocated = Number(memory.exec(output)?.[1] ?? NaN);
    t.ok(allocated > 0 && allocated <= LIMIT_MIB, `${way}: ${output.trim()}`);
  };
  const paced = (output: string, way: string): void => {
    const share = shareIn(output);
    t.ok(share > 0 && share < 1.5 * CORES, `${way}: ${output.trim()}`);
  };
  withinLimit(await firstResult(engine, id, 'memory'), 'as first process');
  paced(await firstResult(engine, id, 'share'), 'as first process');
  for (const [way, prefix] of WAYS) {
    t.equal((await engine.exec(id, [...prefix, PROBE, 'total'])).output, `total ${LIMIT_MIB}\n`, way);
    withinLimit((await engine.exec(id, [...prefix, PROBE, 'memory'])).output, way);
    paced((await engine.exec(id, [...prefix, PROBE, 'share', '400'])).output, way);
  }
}

/** A view of /proc without the processes that this sandbox makes unreadable. */
function readableProcesses(scratch: string): string {
  const view = join(scratch, 'proc');
  rmSync(view, { recursive: true, force: true });
  mkdirSync(view);
  for (const name of readdirSync('/proc')) {
    if (name !== 'self' && !/^\d+$/.test(name)) continue;
    try {
      readlinkSync(`/proc/${name}/ns/mnt`);
      symlinkSync(`/proc/${name}`, join(view, name));
    } catch {
      // Not for us to see, or gone.
    }
  }
  return view;
}

function contract(engine: Engine, programs: readonly string[]): void {
  const skip = daemonSkipReason(...programs, 'cc') || imageSkipReason() || nativeSkipReason();
  test(`${engine.name}: a program that uses the driver is limited to its slice`, { skip }, async (t) => {
    const scratch = await scratchDirectory(t);
    const { files, config } = await simulatedHost(scratch);
    t.teardown(() => engine.stop());
    await engine.start(scratch, files);
    const node: SimulatedNode = await startedNode(t, { config, gpus: cards(2, GPU_MIB), knowsPods: true });

    const started: string[] = [];
    for (const [user, how] of [
      [0, 'as root'],
      [1000, 'as another user, with a read-only root'],
    ] as const) {
      await t.test(how, async (t) => {
        const pod = simplePod(CORES, BLOCKS);
        const given = await runPod(node, pod);
        const id = await start(engine, scratch, given, pod.uid, user);
        started.push(id);
        await checkLimits(t, engine, id);
        const containers = new NodeContainers({ connect: () => engine.connect() });
        t.match(await containers.ofPod({ podUid: pod.uid, containerName: 'main' }), { id, state: 'running' });
        containers.close();
      });
    }

    await t.test('a container with a whole GPU is not limited', async (t) => {
      const pod = simplePod(100, 0);
      const id = await start(engine, scratch, await runPod(node, pod), pod.uid, 2000);
      const output = await firstResult(engine, id, 'memory');
      t.ok(Number(/^memory (\d+)/.exec(output)?.[1]) > GPU_MIB / 2, output.trim());
      const share = await firstResult(engine, id, 'share');
      t.ok(shareIn(share) > CORES, share.trim());
    });

    await t.test('a mounted mirror survives a driver update as long as its containers run', async (t) => {
      const mirror = join(scratch, 'vdriver/nvidia');
      const before = await currentVersion(mirror);
      await applyMirror(mirror, {
        version: 'next',
        driverVersion: null,
        steps: [{ kind: 'directory', to: 'lib64', reason: 'test' }],
        leftOut: [],
        missing: [],
      });
      const later = Date.now() + 2 * REMOVAL_GRACE_MS;
      const removable = () => removeUnusedVersions(mirror, later, readableProcesses(scratch));
      t.same(await removable(), []);
      const [first = '', ...others] = started;
      for (const id of others) await engine.end(id);
      t.same(await removable(), []);
      t.match((await engine.exec(first, [PROBE, 'memory'])).output, /^memory [1-9]\d* result 2$/m);
      await engine.end(first);
      t.match(await removable(), [{ version: before }]);
    });
  });
}

contract(new DockerEngine(), DOCKER_PROGRAMS);
contract(new ContainerdEngine('v1'), CONTAINERD_PROGRAMS);
