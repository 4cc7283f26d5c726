import { MEMORY_BLOCK_BYTES } from '../resources.js';
import { bitsOf } from './bit-set.js';
import type { Machine } from './machine.js';
import { isWhole, type GpuSlot } from './slot.js';
import { compareFutureValue } from './future-value.js';

/**
 * Chooses the GPU for a part of one, among those positions of `slots` that are given and have room: the one with the
 * fewest free cores, then the least free memory (in blocks), then the fewest processes, as the original does. Where
 * that opens a fresh GPU of a machine with NVLink: the one that leaves the best sets of whole GPUs. Then the lowest
 * position. Null for no position.
 */
export function chooseShare(machine: Machine, slots: readonly GpuSlot[], fitting: readonly number[]): number | null {
  const slotAt = (position: number) => slots[position] as GpuSlot;
  const blocks = (slot: GpuSlot) => Math.floor(slot.freeMemoryBytes / MEMORY_BLOCK_BYTES);
  const whole = bitsOf([...slots.keys()].filter((position) => isWhole(slotAt(position))));
  const futureValueLeft = (position: number) => {
    if (!machine.hasNvlink || machine.exact === null || !isWhole(slotAt(position))) return [];
    return machine.exact.futureValue.of(whole & ~(1 << position));
  };
  const order = (a: number, b: number): number => {
    const [x, y] = [slotAt(a), slotAt(b)];
    return (
      x.freeCores - y.freeCores ||
      blocks(x) - blocks(y) ||
      x.processCount - y.processCount ||
      compareFutureValue(futureValueLeft(b), futureValueLeft(a)) ||
      a - b
    );
  };
  return [...fitting].sort(order)[0] ?? null;
}
