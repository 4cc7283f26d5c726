import { createHash } from 'node:crypto';
import { MEMORY_BLOCK_BYTES } from '../resources.js';

/** A container of a pod, as the kubelet knows it. */
export interface ContainerRef {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/**
 * The ids of an allocation on one GPU. They usually name this GPU; they name another one if the kubelet chose such ids.
 */
export interface Part {
  readonly gpuUuid: string;
  readonly coreIds: readonly string[];
  readonly memoryIds: readonly string[];
}

/** The GPUs of one container, or of the init containers and a container of one pod that use them in turn. */
export interface Allocation {
  /** Name of the directory and the socket, also used in logs; see `allocationId`. */
  readonly id: string;
  readonly parts: readonly Part[];
  /** `allocated`: Allocate was answered. `started`: pod and container are known and the limits are written. */
  readonly phase: 'allocated' | 'started';
  /** Empty until the first start; several where containers of one pod use the same ids in turn. */
  readonly owners: readonly ContainerRef[];
  /** Milliseconds since 1970. */
  readonly allocatedAt: number;
  /** When the kubelet and the living pods stopped confirming it; null while one of them does. */
  readonly missingSince: number | null;
  /**
   * True while the kubelet has not received the GPU: the answer for the memory names it, and it can still become
   * another one that has that memory.
   */
  readonly isGpuOpen?: boolean;
  /** How it shares its GPU; absent: in time. */
  readonly compute?: 'sm';
  /** What its running container has on its one GPU beyond these ids, since it was resized; absent: nothing. */
  readonly grown?: { readonly cores: number; readonly memoryBlocks: number };
  /** Its pod said at its admission that its containers may be suspended; absent: they must run all the time. */
  readonly suspendable?: true;
}

/**
 * The name of the allocation of these core ids: 16 hexadecimal digits that depend on the set and not on its order.
 * PreStartContainer carries only the ids, so the name must follow from them.
 */
export function allocationId(coreIds: readonly string[]): string {
  return createHash('sha256')
    .update([...coreIds].sort().join('\n'))
    .digest('hex')
    .slice(0, 16);
}

export function coreIdsOf(allocation: Allocation): string[] {
  return allocation.parts.flatMap((part) => part.coreIds);
}

export function memoryIdsOf(allocation: Allocation): string[] {
  return allocation.parts.flatMap((part) => part.memoryIds);
}

/** What the container has: its ids, and what it grew by. */
export function amountsOf(allocation: Allocation): { readonly cores: number; readonly memoryBlocks: number } {
  const { cores = 0, memoryBlocks = 0 } = allocation.grown ?? {};
  return {
    cores: coreIdsOf(allocation).length + cores,
    memoryBlocks: memoryIdsOf(allocation).length + memoryBlocks,
  };
}

/**
 * Bytes that the container may use of each of its GPUs, by UUID; empty if it requested no memory. Several whole GPUs
 * share the memory evenly, whichever GPUs the ids name: no other container is on them.
 */
export function memoryLimits(allocation: Allocation): ReadonlyMap<string, number> {
  const bytes = amountsOf(allocation).memoryBlocks * MEMORY_BLOCK_BYTES;
  if (bytes === 0) return new Map();
  return new Map(allocation.parts.map((part) => [part.gpuUuid, Math.floor(bytes / allocation.parts.length)]));
}
