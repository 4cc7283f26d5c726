import { amountsOf, memoryLimits, type Allocation, type ContainerRef } from './allocation.js';
import { partsOfUnits, type ClaimUnit } from './claim-unit.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../resources.js';
import type { LedgerState } from './state.js';

/** The amounts of one slice on one GPU. */
export interface HeldPart {
  readonly gpuUuid: string;
  readonly cores: number;
  readonly memoryBlocks: number;
  /** Bytes that its containers may use; null if they may use all memory of the GPU. */
  readonly memoryLimitBytes: number | null;
}

/** A slice and its GPUs, allocated by the device plugin or by claims. */
export interface Holding {
  readonly id: string;
  readonly phase: 'allocated' | 'started';
  readonly owners: readonly ContainerRef[];
  /** Milliseconds since 1970. */
  readonly heldSince: number;
  readonly parts: readonly HeldPart[];
  /** The requests of claims that it was made for; empty for an allocation of the device plugin. */
  readonly claims: readonly { readonly namespace: string; readonly name: string; readonly request: string }[];
}

/** All slices of this node: one per allocation of the device plugin, and one per slice that claim units share. */
export function holdings(state: LedgerState): Holding[] {
  const slices = new Map<string, ClaimUnit[]>();
  for (const unit of state.units.values())
    if (!unit.admin) slices.set(unit.slice, [...(slices.get(unit.slice) ?? []), unit]);
  return [
    ...[...state.allocations.values()].map(ofAllocation),
    ...[...slices].map(([id, units]) => ofUnits(state, id, units)),
  ];
}

function ofAllocation(allocation: Allocation): Holding {
  const limits = memoryLimits(allocation);
  return {
    id: allocation.id,
    phase: allocation.phase,
    owners: allocation.owners,
    heldSince: allocation.allocatedAt,
    claims: [],
    parts: allocation.parts.map(({ gpuUuid, coreIds, memoryIds }, _, { length }) => ({
      gpuUuid,
      ...(length === 1 ? amountsOf(allocation) : { cores: coreIds.length, memoryBlocks: memoryIds.length }),
      memoryLimitBytes: limits.get(gpuUuid) ?? null,
    })),
  };
}

function ofUnits(state: LedgerState, id: string, units: readonly ClaimUnit[]): Holding {
  const memory = new Map(state.node.gpus.map(({ gpu }) => [gpu.uuid, memoryBlocks(gpu.memoryBytes)]));
  return {
    id,
    phase: units.every(({ phase }) => phase === 'preparing') ? 'allocated' : 'started',
    owners: units.flatMap(({ consumers }, at) =>
      consumers.filter(
        ({ podUid, container }) =>
          !units
            .slice(0, at)
            .some((other) => other.consumers.some((known) => known.podUid === podUid && known.container === container)),
      ),
    ),
    claims: units.map(({ claim: { namespace, name }, request }) => ({ namespace, name, request })),
    heldSince: Math.min(...units.map(({ chargedAt }) => chargedAt)),
    parts: partsOfUnits(units).map((part) => ({
      ...part,
      memoryLimitBytes:
        part.cores >= CORES_PER_GPU && part.memoryBlocks >= (memory.get(part.gpuUuid) ?? Infinity)
          ? null
          : part.memoryBlocks * MEMORY_BLOCK_BYTES,
    })),
  };
}
