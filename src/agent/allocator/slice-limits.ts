import type { Gpu } from '../../gpu/gpu.js';
import { memoryLimits, type Allocation, type ContainerRef } from '../../gpu/ledger/allocation.js';
import type { LedgerNode } from '../../gpu/ledger/state.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { SliceLimits } from './ports.js';

const UNNAMED: ContainerRef = { podUid: '', namespace: '', pod: '', container: '' };

/** GPUs of an allocation, in the node's order; one that the driver does not show any more is missing. */
export function gpusOf(node: LedgerNode, allocation: Allocation): Gpu[] {
  const uuids = new Set(allocation.parts.map((part) => part.gpuUuid));
  return node.gpus.filter(({ gpu }) => uuids.has(gpu.uuid)).map(({ gpu }) => gpu);
}

/** What a container may use at most: the last that started in the allocation, or one without a name where none is known. */
export function limitsOf(
  node: LedgerNode,
  allocation: Allocation,
  owner: ContainerRef = allocation.owners.at(-1) ?? UNNAMED,
): SliceLimits {
  const gpus = new Map(node.gpus.map(({ gpu }) => [gpu.uuid, gpu]));
  const limits = memoryLimits(allocation);
  return {
    allocation: allocation.id,
    owner,
    devices: allocation.parts.flatMap((part) => {
      const gpu = gpus.get(part.gpuUuid);
      if (gpu === undefined) return [];
      return [
        { gpu, memoryBytes: limits.get(part.gpuUuid) ?? null, share: Math.min(CORES_PER_GPU, part.coreIds.length) },
      ];
    }),
  };
}
