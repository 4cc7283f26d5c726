import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedContainer, EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { gpuIndexes, limitsOf, sliceDirectory } from './node.js';

/** An admitted pod and what its containers received, init containers first. */
export interface Living {
  readonly pod: EmulatedPod;
  readonly given: readonly GivenContainer[];
}

/** Faults of an admitted and started container; empty when it has exactly what it requested. */
async function faultsOf(wanted: EmulatedContainer, given: GivenContainer): Promise<string[]> {
  const faults: string[] = [];
  const gpus = gpuIndexes(given);
  const expected = Math.max(1, wanted.cores / 100);
  if (gpus.length !== expected) faults.push(`${gpus.length} GPUs instead of ${expected}`);
  const { devices } = await limitsOf(given);
  const limited = devices.map((device) => Number.parseInt(device.uuid.slice(4, 12), 16)).sort((a, b) => a - b);
  if (limited.join() !== [...gpus].sort((a, b) => a - b).join())
    faults.push(`limits for GPUs ${limited.join()} but devices ${gpus.join()}`);
  const memory = devices.reduce((sum, device) => sum + (device.memoryBytes ?? 0), 0) / 268_435_456;
  if (memory !== wanted.memoryBlocks) faults.push(`limit of ${memory} blocks instead of ${wanted.memoryBlocks}`);
  const share = devices.reduce((sum, device) => sum + device.share, 0);
  if (share !== wanted.cores) faults.push(`share of ${share} instead of ${wanted.cores}`);
  return faults;
}

/** Faults of all living pods together: a GPU given twice, an id held twice, a directory shared by two pods. */
export function conflicts(living: readonly Living[]): string[] {
  const faults: string[] = [];
  const load = new Map<number, number>();
  const owners = new Map<string, string>();
  for (const { pod: owner, given } of living) {
    const perGpu = new Map<number, number>();
    for (const [at, container] of given.entries()) {
      if (at < owner.initContainers.length) continue;
      const gpus = gpuIndexes(container);
      for (const gpu of gpus) perGpu.set(gpu, (perGpu.get(gpu) ?? 0) + container.coreIds.length / gpus.length);
    }
    for (const [gpu, cores] of perGpu) load.set(gpu, (load.get(gpu) ?? 0) + cores);
    for (const name of new Set(
      given.flatMap((container) => [...container.coreIds, ...container.memoryIds, sliceDirectory(container)]),
    )) {
      const other = owners.get(name);
      if (other !== undefined) faults.push(`${owner.uid} and ${other} both hold ${name}`);
      owners.set(name, owner.uid);
    }
  }
  for (const [gpu, cores] of load) if (cores > 100) faults.push(`GPU ${gpu} gives ${cores} cores`);
  return faults;
}

/** The GPU of an id: the first digits of a UUID number the GPUs of this node. */
export function gpuOf(id: string): number {
  return Number.parseInt(id.slice(0, 8), 16);
}

/** Faults of the started containers of one pod. */
export async function faultsOfPod(wanted: EmulatedPod, given: readonly GivenContainer[]): Promise<string[]> {
  const faults: string[] = [];
  for (const [at, asked] of wanted.containers.entries()) {
    const mine = given[at + wanted.initContainers.length];
    if (mine === undefined) return [`${wanted.uid}: nothing for ${asked.name}`];
    // A container with exactly the ids of its init container shares its directory, and the larger limit.
    const shared = given.some((other) => other !== mine && sliceDirectory(other) === sliceDirectory(mine));
    if (!shared) faults.push(...(await faultsOf(asked, mine)).map((fault) => `${wanted.uid}/${asked.name}: ${fault}`));
  }
  return faults;
}
