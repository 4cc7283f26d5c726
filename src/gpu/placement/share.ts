import type { BindPolicy } from '../gpu-selection.js';
import { MEMORY_BLOCK_BYTES } from '../resources.js';
import { bitsOf } from './bit-set.js';
import type { Machine } from './machine.js';
import { compareLeft } from './preference.js';
import { isWhole, type GpuSlot } from './slot.js';

/**
 * Chooses the GPU for a part of a GPU among `fitting`, which are positions with room: the one with the fewest free
 * cores, then the least free memory (in blocks), then the fewest processes, as the original does. If only unused GPUs
 * of a machine with NVLink remain: the one that leaves the best sets of whole GPUs. Then the lowest position. With
 * `spread`, the one with the most free cores, then the most free memory comes first. Null if `fitting` is empty.
 */
export function chooseShare(
  machine: Machine,
  slots: readonly GpuSlot[],
  fitting: readonly number[],
  policy: BindPolicy = 'binpack',
): number | null {
  const sign = policy === 'spread' ? -1 : 1;
  const slotAt = (position: number) => slots[position] as GpuSlot;
  const blocks = (slot: GpuSlot) => Math.floor(slot.freeMemoryBytes / MEMORY_BLOCK_BYTES);
  const whole = bitsOf([...slots.keys()].filter((position) => isWhole(slotAt(position))));
  const compareWhole = (a: number, b: number): number =>
    machine.hasNvlink && machine.exact !== null && isWhole(slotAt(a)) && isWhole(slotAt(b))
      ? compareLeft(machine.exact, whole, a, b)
      : 0;
  const order = (a: number, b: number): number => {
    const [x, y] = [slotAt(a), slotAt(b)];
    return (
      sign * (x.freeCores - y.freeCores) ||
      sign * (blocks(x) - blocks(y)) ||
      x.processCount - y.processCount ||
      compareWhole(a, b) ||
      a - b
    );
  };
  return [...fitting].sort(order)[0] ?? null;
}
