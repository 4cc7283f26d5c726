import type { GpuProcess } from '../../../gpu/sample.js';
import type { AdoptedContainer, ProcessOwners } from '../process-owners.js';

/** A process of a container that the original's plugin started. */
export interface AdoptedProcess {
  readonly owner: AdoptedContainer;
  readonly process: GpuProcess;
}

/** The processes of one GPU by their owners. */
export interface SampledProcesses {
  /** By allocation; only containers with an allocation on this GPU. */
  readonly byAllocation: ReadonlyMap<string, readonly GpuProcess[]>;
  /** All others. */
  readonly unsteered: readonly GpuProcess[];
  /** The others that belong to no container with an allocation on this GPU. */
  readonly foreignProcesses: readonly GpuProcess[];
  /** Processes of containers that the original's plugin started, and that have this GPU. */
  readonly adoptedProcesses: readonly AdoptedProcess[];
  /** Foreign processes that belong to containers on other GPUs. */
  readonly processesOfOtherGpus: readonly { readonly allocation: string; readonly pid: number }[];
}

/**
 * Divides the processes of a GPU by their owners; `here` are the allocations on it. `owners` must have learned the
 * processes before.
 */
export function partByOwner(
  processes: readonly GpuProcess[],
  owners: ProcessOwners,
  gpuUuid: string,
  here: ReadonlySet<string>,
): SampledProcesses {
  const byAllocation = new Map<string, GpuProcess[]>();
  const unsteered: GpuProcess[] = [];
  for (const process of processes) {
    const allocation = owners.ownerOf(process.pid)?.allocation;
    // A process of a container without an allocation here is a foreign process on this GPU.
    if (allocation === undefined || !here.has(allocation)) {
      unsteered.push(process);
      continue;
    }
    const known = byAllocation.get(allocation);
    if (known === undefined) byAllocation.set(allocation, [process]);
    else known.push(process);
  }
  const foreignProcesses: GpuProcess[] = [];
  const adoptedProcesses: AdoptedProcess[] = [];
  for (const process of unsteered) {
    const owner = owners.adoptedOf(process.pid, gpuUuid);
    if (owner === null) foreignProcesses.push(process);
    else adoptedProcesses.push({ owner, process });
  }
  const processesOfOtherGpus = foreignProcesses.flatMap(({ pid }) => {
    const owner = owners.ownerOf(pid);
    return owner === null ? [] : [{ allocation: owner.allocation, pid }];
  });
  return { byAllocation, unsteered, foreignProcesses, adoptedProcesses, processesOfOtherGpus };
}

/**
 * GPU time of processes that no slice has, in ppm of the GPU, and how many use it. Counts only processes that the
 * previous sample had too: a container's own process may seem foreign in one sample before its greeting arrives, and in
 * one sample after its slice was removed; both samples would count all of its GPU time.
 */
export function unsteeredUse(
  processes: readonly GpuProcess[],
  before: readonly GpuProcess[],
): { readonly foreignPpm: number; readonly foreignProcesses: number } {
  const known = new Set(before.map(({ pid }) => pid));
  const used = processes.map(({ pid, utilizationPercent }) => (known.has(pid) ? (utilizationPercent ?? 0) : 0));
  const percent = used.reduce((sum, part) => sum + part, 0);
  return {
    foreignPpm: Math.min(1_000_000, percent * 10_000),
    foreignProcesses: used.filter((part) => part > 0).length,
  };
}
