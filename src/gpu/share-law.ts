/**
 * The part of the share law that the agent steers by; `native/control/share_law.c` enforces the law. Shares are
 * cores, `ppm` parts per million of a GPU.
 */
import { PPM_WHOLE } from '../abi/vgpu-abi.js';

/** Launches may start while the bucket's debt is at most this long, in nanoseconds. */
export const AHEAD_NS = 1_000_000n;
/** A container owes others what it used beyond its share if that is longer than this, in nanoseconds. */
export const BORROWED_LEAST_NS = 5_000_000n;
/** What a container used beyond its share, and what it left to others, counts up to this long, in nanoseconds. */
export const BORROWED_MOST_NS = 500_000_000n;
export const LENT_MOST_NS = 250_000_000n;
/** GPU time of a turn, whose tokens are taken ahead, in nanoseconds. */
export const TURN_NS = 10_000_000;
export const CORRECTION_MIN_PPM = 250_000;
export const CORRECTION_MAX_PPM = 4_000_000;

const PPM_PER_SHARE = PPM_WHOLE / 100;

/** The share that a container may use now. `grantedPpm` 0: no grant beyond its share. */
export function effectivePpm(share: number, softLimit: number, grantedPpm: number): number {
  if (share <= 0 || share >= 100) return PPM_WHOLE;
  const own = share * PPM_PER_SHARE;
  return Math.max(own, Math.min(grantedPpm, Math.min(softLimit, 100) * PPM_PER_SHARE));
}
