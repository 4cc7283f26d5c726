/** Decides which high slices have precedence over which low ones. Pure. Only slices on the same GPU compete. */
import type { GivesWay, LiveLimit } from '../../abi/limits-file.js';
import { FLOOR_WHOLE, MAX_HIGH } from '../../abi/vgpu-abi.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';

/** A slice, with the position of its GPU in the slice. */
export interface Contender {
  readonly allocation: string;
  readonly devices: readonly (Pick<LiveLimit, 'share' | 'softLimit' | 'priority'> & { readonly uuid: string })[];
}

/** The precedence on one GPU of a low slice: the allocations of the high slices, and the published data about them. */
export interface Precedence {
  readonly high: readonly string[];
  readonly givesWay: GivesWay;
}

/** Least share of all low slices of one GPU beside high ones, in hundredths. */
export const DEFAULT_LOW_FLOOR = 5;

/**
 * A high slice is believed for twice the time that it may use the GPU: beside others a launch takes longer than it
 * costs.
 */
const BELIEVED_TIMES = 2;

/** For every low slice that meets a high one, by allocation and position of its GPU; null where it meets none there. */
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
      // Low slices of one GPU divide the floor by their shares.
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
