/**
 * The share law of `native/control/share_law.c`, for tests of the agent; both are tested with
 * `native/test/share_law.vectors`.
 *
 * A token is one nanosecond of GPU time. The bucket is stored as the time at which its level is zero: a charge of c at
 * share s moves this time c / s into the future. A time before now is credit, a time after now is debt. Times are
 * nanoseconds as bigint, shares hundredths of a GPU, `ppm` parts per million of a GPU.
 */
import { PPM_WHOLE } from '../../src/abi/vgpu-abi.js';
import {
  AHEAD_NS,
  BORROWED_LEAST_NS,
  BORROWED_MOST_NS,
  CORRECTION_MAX_PPM,
  CORRECTION_MIN_PPM,
  effectivePpm,
  LENT_MOST_NS,
} from '../../src/gpu/share-law.js';

/** An idle container keeps this much credit, in wall time. */
export const CREDIT_NS = 50_000_000n;
/** A late wake-up, or what a container left to others, adds at most this much to the credit. */
const HELD_UP_MOST_NS = 200_000_000n;
const SOFT_STEP_PPM = 200_000;
const MAX_COST_NS = 3_600_000_000_000n;
const MAX_NS = 2n ** 64n - 1n;

/** Wall time that `costNs` of GPU time takes at `sharePpm`, corrected by `correctionPpm` (0: no correction). */
export function wallNs(costNs: bigint, sharePpm: number, correctionPpm: number): bigint {
  const share = sharePpm <= 0 || sharePpm > PPM_WHOLE ? PPM_WHOLE : sharePpm;
  const correction =
    correctionPpm === 0 ? PPM_WHOLE : Math.min(CORRECTION_MAX_PPM, Math.max(CORRECTION_MIN_PPM, correctionPpm));
  const cost = costNs > MAX_COST_NS ? MAX_COST_NS : costNs;
  return (cost * BigInt(correction)) / BigInt(share);
}

/** The level after a charge: credit older than `CREDIT_NS` and `moreCredit` is lost. */
export function charge(levelAt: bigint, now: bigint, wall: bigint, moreCredit: bigint): bigint {
  return chargeFrom(levelAt, now, wall, CREDIT_NS + (moreCredit < HELD_UP_MOST_NS ? moreCredit : HELD_UP_MOST_NS));
}

function chargeFrom(levelAt: bigint, now: bigint, wall: bigint, credit: bigint): bigint {
  const oldest = now > credit ? now - credit : 0n;
  const level = (levelAt > oldest ? levelAt : oldest) + wall;
  return level > MAX_NS ? MAX_NS : level;
}

/** The level of a container that lends and borrows, at its own share; 0 is none yet. */
export function lent(levelAt: bigint, now: bigint, wall: bigint): bigint {
  const after = chargeFrom(levelAt === 0n ? now : levelAt, now, wall, LENT_MOST_NS);
  const latest = now + BORROWED_MOST_NS > MAX_NS ? MAX_NS : now + BORROWED_MOST_NS;
  return after < latest ? after : latest;
}

/** Whether the container used more than its own share, so that others may have the time back. */
export function borrows(levelAt: bigint, now: bigint): boolean {
  return levelAt > now + BORROWED_LEAST_NS;
}

/** The part of `heldUp` that still applies at this level: 0 once the delay has been made up. */
export function heldUpNs(levelAt: bigint, now: bigint, heldUp: bigint): bigint {
  return levelAt + CREDIT_NS < now ? heldUp : 0n;
}

/** How long a launch must wait: 0 while the debt is at most `AHEAD_NS`, else until the level is zero. */
export function waitNs(levelAt: bigint, now: bigint): bigint {
  return levelAt > now + AHEAD_NS ? levelAt - now : 0n;
}

/** The grant that the control library gives itself under a soft limit while no agent steers. */
export function softGrantPpm(share: number, softLimit: number, grantedPpm: number, contended: boolean): number {
  const own = effectivePpm(share, 0, 0);
  return contended ? own : effectivePpm(share, softLimit, Math.max(grantedPpm, own) + SOFT_STEP_PPM);
}
