import type { Test } from 'tap';
import { systemClock, type Clock } from '../../../src/host/clock.js';
import type { KubeletEmulator } from '../../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../../src/simulation/kubelet/pod.js';
import type { SimulatedNode, SimulatedNodeOptions } from '../../../src/simulation/simulated-node.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';
import { admitted, only, startedNode } from '../node.js';
import { simplePod } from '../pods.js';
import { ContainerdEngine } from '../runtimes/containerd-engine.js';
import type { ContainerSpec } from '../runtimes/engine.js';

/** A started containerd with NRI that ends with the test. */
export async function startedEngine(t: Test): Promise<ContainerdEngine> {
  const engine = new ContainerdEngine('v1', true);
  const scratch = await scratchDirectory(t);
  t.teardown(() => engine.stop());
  await engine.start(scratch);
  return engine;
}

export interface Prepared {
  readonly pod: EmulatedPod;
  readonly spec: ContainerSpec;
}

/**
 * A pod with a part of a GPU that the kubelet has admitted, and the container that the runtime is about to create for
 * it.
 */
export async function preparedPod(
  kubelet: KubeletEmulator,
  change: Partial<Pick<ContainerSpec, 'environment' | 'mounts'>> = {},
): Promise<Prepared> {
  const pod = simplePod(20, 4);
  const given = only(admitted(await kubelet.admit(pod)));
  await kubelet.startContainer(pod.uid, given.name);
  return {
    pod,
    spec: {
      pod,
      name: given.name,
      command: ['/bin/sleep', '1001'],
      environment: { ...given.environment, ...change.environment },
      mounts: change.mounts ?? given.mounts.map((mount) => ({ ...mount, writable: !mount.readOnly })),
    },
  };
}

export const OURS = '/usr/local/nvidia/lib64';
/** The directory that the pod itself puts into LD_LIBRARY_PATH. */
export const THEIRS = '/opt/conda/lib';

/** The environment of the first process of a container. */
export async function environmentOf(engine: ContainerdEngine, id: string): Promise<Record<string, string>> {
  const { output } = await engine.exec(id, ['/bin/cat', '/proc/1/environ']);
  return Object.fromEntries(
    output
      .split('\0')
      .filter((entry) => entry !== '')
      .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  );
}

/** Periods of a few seconds are shortened to fractions of a second, so that the test need not wait for them. */
const HASTY: Clock = {
  ...systemClock,
  every: (periodMs, action) => systemClock.every(periodMs >= 1_000 ? periodMs / 10 : periodMs, action),
};

export async function nodeWith(
  t: Test,
  engine: ContainerdEngine,
  options: Partial<SimulatedNodeOptions> = {},
): Promise<SimulatedNode> {
  const node = await startedNode(t, {
    ...options,
    config: { nriSocket: engine.nriSocket, ...options.config },
    seams: { clock: HASTY, ...options.seams },
  });
  await connected(node);
  return node;
}

export const connected = (node: SimulatedNode): Promise<unknown> =>
  eventually(() => node.agent.nri?.plugin.runtime ?? null, 'the runtime to ask the plugin');

/** The findings of the audit about the containers of a pod. */
export const findings = (node: SimulatedNode, podUid: string): readonly string[] =>
  (node.agent.vgpu.observe().find(({ owner }) => owner.podUid === podUid)?.findings ?? []).map(
    ({ code, message }) => `${code}: ${message}`,
  );
