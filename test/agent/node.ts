import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SimulatedNode, type SimulatedNodeOptions } from '../../src/simulation/simulated-node.js';
import { decodeLimits, type Limits } from '../../src/abi/limits-file.js';
import type { Admission, GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { silentLog } from '../../src/host/log.js';
import { scratchDirectory } from '../scratch.js';
import { SIX_GPUS } from './gpus.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

/** A started node, by default of six GPUs, that ends with the test. */
export async function startedNode(t: Teardown, options: Partial<SimulatedNodeOptions> = {}): Promise<SimulatedNode> {
  const node = new SimulatedNode({
    directory: await scratchDirectory(t),
    gpus: SIX_GPUS,
    log: silentLog(),
    ...options,
  });
  await node.start();
  t.teardown(() => node.stop());
  return node;
}

/** The containers of an admission that must succeed. */
export function admitted(admission: Admission): readonly GivenContainer[] {
  if (!admission.ok) throw new Error(admission.message);
  return admission.containers;
}

/** The single container of such an admission. */
export function only(containers: readonly GivenContainer[]): GivenContainer {
  const [first, ...others] = containers;
  if (first === undefined || others.length > 0) throw new Error(`expected one container, got ${containers.length}`);
  return first;
}

/** Admits a pod of one container and starts it. */
export async function runPod(node: SimulatedNode, wanted: EmulatedPod): Promise<GivenContainer> {
  const given = only(admitted(await node.kubelet.admit(wanted)));
  await node.kubelet.startContainer(wanted.uid, given.name);
  return given;
}

/** The GPUs of a container: the N of its /dev/nvidiaN. */
export function gpuIndexes(given: GivenContainer): number[] {
  return (given.annotations['tencent.com/vcuda-device'] ?? '')
    .split(',')
    .map((path) => Number(/nvidia(\d+)$/.exec(path)?.[1]));
}

/** Host path of the directory that the container sees as /etc/vcuda. */
export function sliceDirectory(given: GivenContainer): string {
  return given.mounts.find((mount) => mount.containerPath === '/etc/vcuda')?.hostPath ?? '';
}

/** The limits in that directory. */
export async function limitsOf(given: GivenContainer): Promise<Limits> {
  const decoded = decodeLimits(await readFile(join(sliceDirectory(given), 'vgpu.limits')));
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.limits;
}
