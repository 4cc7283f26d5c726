/**
 * The share law: how GPU time that launches take becomes waiting. The same as `native/control/share_law.c`; both are
 * tested against `native/test/share_law.vectors`. How the agent steers it is in `steering.ts`.
 *
 * A token is one nanosecond of GPU time. The bucket is kept as the time at which it is level: a charge of c at share s
 * moves it c / s into the future, and time goes by. Before now it holds credit, after now a debt. Times are nanoseconds
 * as bigint, shares hundredths of a GPU, `ppm` parts per million of one.
 */
import { PPM_WHOLE } from '../abi/vgpu-abi.js';

/** An idle container keeps this much credit, in wall time. */
export const CREDIT_NS = 50_000_000n;
/** What a late wake-up adds to that at most. */
export const HELD_UP_MOST_NS = 200_000_000n;
/** Launches may run this far ahead of the bucket. */
export const AHEAD_NS = 1_000_000n;
export const CORRECTION_MIN_PPM = 250_000;
export const CORRECTION_MAX_PPM = 4_000_000;

const PPM_PER_SHARE = PPM_WHOLE / 100;
const SOFT_STEP_PPM = 200_000;
const MOST_COST_NS = 3_600_000_000_000n;
const MOST_NS = 2n ** 64n - 1n;

/** What a container may use now. `grantedPpm` 0: no grant beyond its share. */
export function effectivePpm(share: number, softLimit: number, grantedPpm: number): number {
  if (share <= 0 || share >= 100) return PPM_WHOLE;
  const own = share * PPM_PER_SHARE;
  return Math.max(own, Math.min(grantedPpm, Math.min(softLimit, 100) * PPM_PER_SHARE));
}

/** Wall time that `costNs` of GPU time takes at `sharePpm`, corrected by `correctionPpm` (0: not corrected). */
export function wallNs(costNs: bigint, sharePpm: number, correctionPpm: number): bigint {
  const share = sharePpm <= 0 || sharePpm > PPM_WHOLE ? PPM_WHOLE : sharePpm;
  const correction =
    correctionPpm === 0 ? PPM_WHOLE : Math.min(CORRECTION_MAX_PPM, Math.max(CORRECTION_MIN_PPM, correctionPpm));
  const cost = costNs > MOST_COST_NS ? MOST_COST_NS : costNs;
  return (cost * BigInt(correction)) / BigInt(share);
}

/** The level after a charge: credit older than `CREDIT_NS` and `heldUp` is lost. */
export function charge(levelAt: bigint, now: bigint, wall: bigint, heldUp: bigint): bigint {
  const credit = CREDIT_NS + (heldUp < HELD_UP_MOST_NS ? heldUp : HELD_UP_MOST_NS);
  const oldest = now > credit ? now - credit : 0n;
  const level = (levelAt > oldest ? levelAt : oldest) + wall;
  return level > MOST_NS ? MOST_NS : level;
}

/** How much of `heldUp` still holds at this level: none once what it was for has been made up. */
export function heldUpNs(levelAt: bigint, now: bigint, heldUp: bigint): bigint {
  return levelAt + CREDIT_NS < now ? heldUp : 0n;
}

/** How long a launch must wait: 0 while the bucket is not further ahead than `AHEAD_NS`, else until it is level. */
export function waitNs(levelAt: bigint, now: bigint): bigint {
  return levelAt > now + AHEAD_NS ? levelAt - now : 0n;
}

/** What the library grants itself under a soft limit while no agent does. */
export function softGrantPpm(share: number, softLimit: number, grantedPpm: number, contended: boolean): number {
  const own = effectivePpm(share, 0, 0);
  return contended ? own : effectivePpm(share, softLimit, Math.max(grantedPpm, own) + SOFT_STEP_PPM);
}
