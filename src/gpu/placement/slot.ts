import type { Gpu } from '../gpu.js';
import { CORES_PER_GPU } from '../resources.js';

/** One GPU and its free capacity, as placement sees it. */
export interface GpuSlot {
  readonly gpu: Gpu;
  /** Cores that are not allocated; 100 for a whole free GPU. */
  readonly freeCores: number;
  readonly freeMemoryBytes: number;
  /** Processes that run on it now, including foreign ones. */
  readonly processCount: number;
  /** False when unhealthy or excluded: such a GPU is never chosen. */
  readonly usable: boolean;
}

/** True when nothing of the GPU is allocated and it may be chosen. */
export function isWhole(slot: GpuSlot): boolean {
  return slot.usable && slot.freeCores >= CORES_PER_GPU;
}

/**
 * The same for a container that may be suspended: of an offer of more than the GPU has, other containers may hold
 * memory while all cores are offered.
 */
export function isWholeOffer(slot: GpuSlot): boolean {
  return isWhole(slot) && slot.freeMemoryBytes >= slot.gpu.memoryBytes;
}

/** True when the GPU may be chosen and has room for a part. */
export function hasRoomFor(
  { usable, freeCores, freeMemoryBytes }: GpuSlot,
  part: { readonly cores: number; readonly memoryBytes: number },
): boolean {
  return usable && freeCores >= part.cores && freeMemoryBytes >= part.memoryBytes;
}

/** The GPU with the memory and the most free cores; `among`: the only GPU that is allowed, by index, if not empty. */
export function roomiest(slots: readonly GpuSlot[], memoryBytes: number, among: readonly number[] = []): Gpu | null {
  const fitting = slots.filter(
    (slot) => slot.usable && slot.freeMemoryBytes >= memoryBytes && among.every((index) => index === slot.gpu.index),
  );
  return fitting.sort((a, b) => b.freeCores - a.freeCores || a.gpu.index - b.gpu.index)[0]?.gpu ?? null;
}
