import { NOTHING, of, type Quantities } from '../../manifests/quantities.js';
import type { RefusedWorkload } from './arbitrated-group.js';
import { pathTo, type Member } from './cohort-member.js';
import { grouped } from './grouped.js';

export interface Ordered extends RefusedWorkload {
  /** Nothing is evicted for it. */
  readonly isPatient: boolean;
  /** It is beyond the guaranteed part of its group. */
  readonly leavesShares: boolean;
  readonly takesBelow?: number;
}

/**
 * The refused workloads in the order in which they get room: those within the guaranteed part of their group first,
 * then always the group with the least weighted share, and the oldest of its workloads; in a group with preemption the
 * most important of them.
 */
export function inFairOrder(
  root: Member,
  members: readonly Member[],
  refused: readonly RefusedWorkload[],
  used: ReadonlyMap<string, Quantities>,
  capacity: Quantities,
): readonly Ordered[] {
  const paths = new Map(members.map(({ name }) => [name, pathTo(root, name)]));
  /** What each group uses itself, and what it and the groups below it use. */
  const [sums, below] = [new Map<string, Map<string, number>>(), new Map<string, Map<string, number>>()];
  const take = (name: string, amounts: Quantities): void => {
    const add = (to: Map<string, Map<string, number>>, at: string): void => {
      const sum = to.get(at) ?? new Map<string, number>();
      for (const [key, amount] of amounts) sum.set(key, of(sum, key) + amount);
      to.set(at, sum);
    };
    add(sums, name);
    for (const member of paths.get(name) ?? []) add(below, member.name);
  };
  for (const [name, amounts] of used) take(name, amounts);
  const shareOf = ({ name, weight = 1 }: Member): number => {
    let share = 0;
    for (const [key, amount] of below.get(name) ?? NOTHING)
      share = Math.max(share, amount / (capacity.get(key) ?? Infinity));
    return share / weight;
  };
  /** Where the paths of two groups part, the member with the smaller share comes first. */
  const compare = (a: RefusedWorkload, b: RefusedWorkload): number => {
    const [one = [], other = []] = [paths.get(a.consumer), paths.get(b.consumer)];
    for (let level = 1; level < Math.max(one.length, other.length); level++) {
      const [x, y] = [one[level], other[level]];
      if (x === y) continue;
      return (
        (x === undefined ? 0 : shareOf(x)) - (y === undefined ? 0 : shareOf(y)) || (a.consumer < b.consumer ? -1 : 1)
      );
    }
    return 0;
  };
  const queues = grouped(refused, ({ consumer }) => consumer);
  /** The priority below which the group's own workloads make room for a waiting one; null for none. */
  const rankOf = ({ consumer, priority = 0 }: RefusedWorkload): number | null =>
    paths.get(consumer)?.at(-1)?.preemption === 'LowerPriority' ? priority : null;
  for (const queue of queues.values())
    queue.sort((a, b) => (rankOf(b) ?? 0) - (rankOf(a) ?? 0) || a.since - b.since || (a.id < b.id ? -1 : 1));
  const ordered: Ordered[] = [];
  const later: Ordered[] = [];
  while (queues.size > 0) {
    const next = [...queues.values()]
      .map(([first]) => first as RefusedWorkload)
      .reduce((least, first) => (compare(first, least) < 0 ? first : least));
    const { consumer, uses } = next;
    const queue = queues.get(consumer) as RefusedWorkload[];
    queue.shift();
    if (queue.length === 0) queues.delete(consumer);
    const member = paths.get(consumer)?.at(-1);
    const sum = sums.get(consumer) ?? NOTHING;
    const own = member?.own ?? NOTHING;
    const isGuaranteed = [...uses].every(([key, amount]) => !own.has(key) || of(sum, key) + amount <= of(own, key));
    take(consumer, uses);
    const { reclaim = 'Never' } = member ?? {};
    const isPatient = reclaim === 'Never' || (reclaim === 'Guaranteed' && !isGuaranteed);
    const rank = rankOf(next);
    const takes = rank === null ? {} : { takesBelow: rank };
    (isGuaranteed ? ordered : later).push({ ...next, ...takes, isPatient, leavesShares: !isGuaranteed });
  }
  return [...ordered, ...later];
}
