/**
 * The two extended resources and their units. Users write these names in manifests and the kubelet keeps them in its
 * checkpoint: they are the names of tkestack gpu-manager and never change.
 */
export const CORE_RESOURCE = 'tencent.com/vcuda-core';
export const MEMORY_RESOURCE = 'tencent.com/vcuda-memory';

export type ResourceKind = 'core' | 'memory';

export const RESOURCE_NAME: Readonly<Record<ResourceKind, string>> = { core: CORE_RESOURCE, memory: MEMORY_RESOURCE };

/** One GPU is divided into this many units of `tencent.com/vcuda-core`. */
export const CORES_PER_GPU = 100;

/** One unit of `tencent.com/vcuda-memory`: 256 MiB. */
export const MEMORY_BLOCK_BYTES = 268_435_456;

/** Whole blocks of a GPU with `memoryBytes`, rounded down for each GPU, since a block never spans two GPUs. */
export function memoryBlocks(memoryBytes: number): number {
  return Math.floor(memoryBytes / MEMORY_BLOCK_BYTES);
}
