import { NOTHING, of, total, type Quantities } from '../../manifests/quantities.js';
import type { ArbitratedGroup } from './arbitrated-group.js';

/** A group with its place in its cohort. */
export interface Member extends ArbitratedGroup {
  /** Elastic children. */
  readonly children: readonly Member[];
  /** Its quota without those of its children: what it is guaranteed itself. */
  readonly own: Quantities;
  /** The quota that it and the groups below it lend to no group outside of them. */
  readonly kept: Quantities;
  /** The part of its pool that its parent's other users may take. */
  readonly lent: Quantities;
}

export type ByParent = ReadonlyMap<string, readonly ArbitratedGroup[]>;

export function memberOf(group: ArbitratedGroup, byParent: ByParent): Member {
  const below = byParent.get(group.name) ?? [];
  const children = below.filter(({ isElastic }) => isElastic).map((child) => memberOf(child, byParent));
  const sums = total(below.map(({ hard }) => hard));
  const lent = total(children.map((child) => child.lent));
  const [own, kept, lends] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  for (const [key, hard] of group.hard) {
    own.set(key, Math.max(0, hard - of(sums, key)));
    const pool = Math.max(0, hard - of(sums, key) + of(lent, key));
    const keeps = pool - Math.min(pool, group.lend?.get(key) ?? Infinity);
    lends.set(key, pool - keeps);
    kept.set(key, keeps + children.reduce((sum, child) => sum + of(child.kept, key), 0));
  }
  return { ...group, children, own, kept, lent: lends };
}

/** A group and its elastic descendants. */
export function withBelow(member: Member): readonly Member[] {
  return [member, ...member.children.flatMap(withBelow)];
}

/** Largest ratio of hours that counts: beyond it, a group with little weight would get nothing for long. */
const MOST_RATIO = 4;

/**
 * A cohort whose members are weighed by the hours that they borrowed. Where a member and the groups below it had r
 * times the part of its siblings' hours that is due to its weight, its weight is halved r times, at most four times.
 */
export function weighed(member: Member, capacity: Quantities): Member {
  const { children } = member;
  const had = children.map((child) => hoursOf(child, capacity));
  const sum = had.reduce((all, each) => all + each, 0);
  const weights = children.reduce((all, { weight = 1 }) => all + weight, 0);
  return {
    ...member,
    children: children.map((child, index) => {
      const { weight = 1 } = child;
      const ratio = sum === 0 ? 0 : ((had[index] as number) / sum) * (weights / weight);
      const below = weighed(child, capacity);
      return sum === 0 ? below : { ...below, weight: weight * 2 ** -Math.min(MOST_RATIO, ratio) };
    }),
  };
}

/** Hours of a member and the groups below it, of the key of which they had the largest part of the cohort. */
function hoursOf(member: Member, capacity: Quantities): number {
  const sums = total(withBelow(member).map(({ borrowedHours }) => borrowedHours ?? NOTHING));
  return Math.max(0, ...[...sums].map(([key, hours]) => hours / (capacity.get(key) ?? Infinity)));
}

/** The members from the top of a cohort to one of its groups; empty if it is not in the cohort. */
export function pathTo(root: Member, name: string): readonly Member[] {
  if (root.name === name) return [root];
  for (const child of root.children) {
    const path = pathTo(child, name);
    if (path.length > 0) return [root, ...path];
  }
  return [];
}
