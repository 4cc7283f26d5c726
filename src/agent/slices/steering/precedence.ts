/**
 * Decides which slices read the activity of which others: low slices give way to high ones, slices that may borrow idle
 * time to those from which they borrow, and slices with a hard share take turns. Pure. Only slices on the same GPU
 * compete.
 */
import type { GivesWay, LiveLimit } from '../../../abi/limits-file.js';
import { FLOOR_WHOLE, MAX_HIGH } from '../../../abi/vgpu-abi.js';
import { CORES_PER_GPU } from '../../../gpu/resources.js';

type Limit = Pick<LiveLimit, 'share' | 'softLimit' | 'priority'>;

/** A slice and its GPUs, in the order of their positions in the slice. */
export interface Contender {
  readonly allocation: string;
  readonly devices: readonly (Limit & { readonly uuid: string })[];
}

/**
 * The slices to which one gives way on one GPU, or with which it takes turns: their allocations, and the published data
 * about them.
 */
export interface Precedence {
  readonly before: readonly string[];
  readonly inTurns: boolean;
  readonly givesWay: GivesWay;
}

/** Minimum share of all low slices of one GPU together beside high ones, in cores. */
export const DEFAULT_LOW_FLOOR = 5;

/**
 * A slice gives way to another for at most twice the share of that one: beside other slices, a launch takes longer than
 * it costs.
 */
const BELIEVED_TIMES = 2;

/** A slice that publishes when it has work. */
interface Claimant {
  readonly allocation: string;
  readonly isHigh: boolean;
  readonly believed: number;
}

/**
 * At most this many slices of one GPU take part, because a slice reads no more than `MAX_HIGH` others. The agent keeps
 * nothing for what is claimed, so a claim that one of them does not read would cost the claimant its share.
 */
const MOST_CLAIMANTS = MAX_HIGH + 1;

/** High slices first, then those with the largest shares. */
const byPrecedence = (a: Claimant, b: Claimant): number =>
  Number(b.isHigh) - Number(a.isHigh) || b.believed - a.believed;

const isLimited = ({ share }: Limit): boolean => share < CORES_PER_GPU;
/** It may use idle time of others. */
const borrows = ({ share, softLimit, priority = 'normal' }: Limit): boolean =>
  softLimit !== null && softLimit > share && priority === 'normal';

/** It takes turns with others of this kind. */
const takesTurns = ({ share, softLimit, priority = 'normal' }: Limit): boolean =>
  priority === 'normal' && (softLimit === null || softLimit <= share);

/** Whether a slice with these limits may give way to others on its GPU, or take turns with them. */
export const mayGiveWay = (limit: Limit): boolean =>
  isLimited(limit) && (limit.priority === 'low' || borrows(limit) || takesTurns(limit));

/**
 * For every slice that gives way to others on its GPU, by allocation and position of the GPU, to which; null where it
 * gives way to none.
 */
export function precedenceOf(
  contenders: readonly Contender[],
  lowFloor = DEFAULT_LOW_FLOOR,
): ReadonlyMap<string, readonly (Precedence | null)[]> {
  const claimants = new Map<string, Claimant[]>();
  const lowShares = new Map<string, number>();
  for (const { allocation, devices } of contenders) {
    for (const device of devices.filter(isLimited)) {
      const { uuid, share, softLimit, priority } = device;
      const isHigh = priority === 'high';
      if (priority === 'low') lowShares.set(uuid, (lowShares.get(uuid) ?? 0) + share);
      if (!isHigh && !borrows(device)) continue;
      // Of a high slice the claims count for all that it may use, of another one only for its share.
      const believed = Math.min(100, BELIEVED_TIMES * (isHigh ? (softLimit ?? share) : share));
      claimants.set(uuid, [...(claimants.get(uuid) ?? []), { allocation, isHigh, believed }]);
    }
  }
  for (const [uuid, all] of claimants) claimants.set(uuid, all.toSorted(byPrecedence).slice(0, MOST_CLAIMANTS));
  const inTurns = new Map<string, { readonly allocation: string; readonly share: number }[]>();
  for (const { allocation, devices } of contenders)
    for (const { uuid, share } of devices.filter((device) => isLimited(device) && takesTurns(device)))
      inTurns.set(uuid, [...(inTurns.get(uuid) ?? []), { allocation, share }]);
  const found = new Map<string, readonly (Precedence | null)[]>();
  for (const { allocation, devices } of contenders) {
    const precedence = devices.map((device): Precedence | null => {
      if (!mayGiveWay(device)) return null;
      const { uuid, share, priority } = device;
      if (takesTurns(device))
        return turnsWith((inTurns.get(uuid) ?? []).filter((one) => one.allocation !== allocation));
      const isLow = priority === 'low';
      const all = claimants.get(uuid) ?? [];
      if (!isLow && !all.some((one) => one.allocation === allocation)) return null;
      const before = all
        .filter((other) => other.allocation !== allocation && (other.isHigh || !isLow))
        .slice(0, MAX_HIGH);
      if (before.length === 0) return null;
      // Low slices of one GPU divide the floor in proportion to their shares; others keep their share.
      const cores = isLow ? lowFloor * (share / (lowShares.get(uuid) ?? share)) : share;
      return {
        before: before.map((other) => other.allocation),
        inTurns: false,
        givesWay: {
          believed: before.map(({ believed }) => believed),
          floor: Math.max(1, Math.round((cores / CORES_PER_GPU) * FLOOR_WHOLE)),
        },
      };
    });
    if (precedence.some((one) => one !== null)) found.set(allocation, precedence);
  }
  return found;
}

/**
 * Of more slices than one reads, those with the largest shares. How long it waits for them depends on what it gets
 * itself, not on what is believed of each.
 */
function turnsWith(others: readonly { readonly allocation: string; readonly share: number }[]): Precedence | null {
  const read = others.toSorted((a, b) => b.share - a.share).slice(0, MAX_HIGH);
  if (read.length === 0) return null;
  return {
    before: read.map(({ allocation }) => allocation),
    inTurns: true,
    givesWay: { believed: read.map(() => 0), floor: 0 },
  };
}
