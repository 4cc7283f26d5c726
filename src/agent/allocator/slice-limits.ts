import type { Gpu } from '../../gpu/gpu.js';
import { amountsOf, memoryLimits, type Allocation, type ContainerRef } from '../../gpu/ledger/allocation.js';
import { partsOfUnits, type ClaimUnit } from '../../gpu/ledger/claim-unit.js';
import type { LedgerNode } from '../../gpu/ledger/state.js';
import { PRIORITIES } from '../../gpu/priority.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../../gpu/resources.js';
import type { SliceLimits } from '../slices/ports.js';

const UNNAMED: ContainerRef = { podUid: '', namespace: '', pod: '', container: '' };

/** GPUs of an allocation, in the node's order, without GPUs that the driver no longer shows. */
export function gpusOf(node: LedgerNode, allocation: Allocation): Gpu[] {
  const uuids = new Set(allocation.parts.map((part) => part.gpuUuid));
  return node.gpus.filter(({ gpu }) => uuids.has(gpu.uuid)).map(({ gpu }) => gpu);
}

/** The limits of an allocation. `owner` defaults to the container that started last, or to an empty name. */
export function limitsOf(
  node: LedgerNode,
  allocation: Allocation,
  owner: ContainerRef = allocation.owners.at(-1) ?? UNNAMED,
): SliceLimits {
  const gpus = new Map(node.gpus.map(({ gpu }) => [gpu.uuid, gpu]));
  const limits = memoryLimits(allocation);
  const takesTurns = allocation.suspendable === true && (node.suspendFactor ?? 1) > 1;
  return {
    allocation: allocation.id,
    owner,
    ...(takesTurns ? { takesTurns } : {}),
    devices: allocation.parts.flatMap((part, _, { length }) => {
      const gpu = gpus.get(part.gpuUuid);
      if (gpu === undefined) return [];
      return [
        {
          gpu,
          memoryBytes: limits.get(part.gpuUuid) ?? null,
          share: Math.min(CORES_PER_GPU, length === 1 ? amountsOf(allocation).cores : part.coreIds.length),
          softLimit: null,
        },
      ];
    }),
  };
}

/**
 * The limits of a slice that the containers of several claim units share. A unit with all memory of a GPU has no limit.
 */
export function limitsOfUnits(node: LedgerNode, slice: string, units: readonly ClaimUnit[]): SliceLimits {
  const gpus = new Map(node.gpus.map(({ gpu }) => [gpu.uuid, gpu]));
  const soft = units.reduce(
    (most: number | null, { softLimit }) => (softLimit === null ? most : Math.max(most ?? 0, softLimit)),
    null,
  );
  const priorities = units.flatMap((unit) => unit.priority ?? []);
  const priority = PRIORITIES.find((one) => priorities.includes(one));
  return {
    allocation: slice,
    owner: units.flatMap(({ consumers }) => consumers)[0] ?? UNNAMED,
    devices: partsOfUnits(units).flatMap(({ gpuUuid, cores, memoryBlocks: blocks }) => {
      const gpu = gpus.get(gpuUuid);
      if (gpu === undefined) return [];
      const all = cores >= CORES_PER_GPU && blocks >= memoryBlocks(gpu.memoryBytes);
      return [
        {
          gpu,
          memoryBytes: all ? null : blocks * MEMORY_BLOCK_BYTES,
          share: Math.min(CORES_PER_GPU, cores),
          softLimit: soft,
          priority,
        },
      ];
    }),
  };
}
