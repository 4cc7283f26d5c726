/** Decides which high slices have precedence over which low ones. Pure. Only slices on the same GPU compete. */
import type { GivesWay, LiveLimit } from '../../../abi/limits-file.js';
import { FLOOR_WHOLE, MAX_HIGH } from '../../../abi/vgpu-abi.js';
import { CORES_PER_GPU } from '../../../gpu/resources.js';

/** A slice and its GPUs, in the order of their positions in the slice. */
export interface Contender {
  readonly allocation: string;
  readonly devices: readonly (Pick<LiveLimit, 'share' | 'softLimit' | 'priority'> & { readonly uuid: string })[];
}

/**
 * The precedence of high slices over a low slice on one GPU: the allocations of the high slices, and the published data
 * about them.
 */
export interface Precedence {
  readonly high: readonly string[];
  readonly givesWay: GivesWay;
}

/** Minimum share of all low slices of one GPU together beside high ones, in cores. */
export const DEFAULT_LOW_FLOOR = 5;

/**
 * A low slice gives way to a high slice for at most twice the share of the high slice: beside other slices, a launch
 * takes longer than it costs.
 */
const BELIEVED_TIMES = 2;

/**
 * The precedence for every low slice that shares a GPU with a high slice, by allocation and position of the GPU; null
 * at positions without a high slice.
 */
export function precedenceOf(
  contenders: readonly Contender[],
  lowFloor = DEFAULT_LOW_FLOOR,
): ReadonlyMap<string, readonly (Precedence | null)[]> {
  const high = new Map<string, { allocation: string; believed: number }[]>();
  const lowShares = new Map<string, number>();
  for (const { allocation, devices } of contenders) {
    for (const { uuid, share, softLimit, priority } of devices) {
      if (share >= CORES_PER_GPU) continue;
      if (priority === 'low') lowShares.set(uuid, (lowShares.get(uuid) ?? 0) + share);
      if (priority !== 'high') continue;
      const believed = Math.min(100, BELIEVED_TIMES * (softLimit ?? share));
      high.set(uuid, [...(high.get(uuid) ?? []), { allocation, believed }]);
    }
  }
  const found = new Map<string, readonly (Precedence | null)[]>();
  for (const { allocation, devices } of contenders) {
    const precedence = devices.map(({ uuid, share, priority }): Precedence | null => {
      const before = (high.get(uuid) ?? []).filter((other) => other.allocation !== allocation).slice(0, MAX_HIGH);
      if (priority !== 'low' || share >= CORES_PER_GPU || before.length === 0) return null;
      // Low slices of one GPU divide the floor in proportion to their shares.
      const part = share / (lowShares.get(uuid) ?? share);
      return {
        high: before.map((other) => other.allocation),
        givesWay: {
          believed: before.map(({ believed }) => believed),
          floor: Math.max(1, Math.round((lowFloor / 100) * FLOOR_WHOLE * part)),
        },
      };
    });
    if (precedence.some((one) => one !== null)) found.set(allocation, precedence);
  }
  return found;
}
