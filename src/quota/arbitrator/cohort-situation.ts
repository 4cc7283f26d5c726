import type { ConsumerSpec } from './consumer.js';
import type { Situation } from './arbitrate.js';
import type { RunningPod } from './running-pod.js';
import type { WaitingPod } from './waiting-pod.js';
import { NOTHING, of, total, type Quantities } from '../../manifests/quantities.js';

/**
 * Which of its refused workloads a group gets room for by evictions: none, those within its guaranteed part, or also
 * those within its fair share of what other groups lend.
 */
export type Reclaim = 'Never' | 'Guaranteed' | 'FairShare';

/** Whether waiting workloads of a group take the room of the group's own workloads of lower priority. */
export type Preemption = 'Never' | 'LowerPriority';

/** A group of the quota engine, by keys that count (without cash). */
export interface ArbitratedGroup {
  readonly name: string;
  /** Empty for a root. */
  readonly parent: string;
  /** Whether it lends to its parent's pool and borrows from it. */
  readonly isElastic: boolean;
  readonly hard: Quantities;
  /** The most that it lends and borrows; no limit for a missing key. */
  readonly lend?: Quantities | undefined;
  readonly borrow?: Quantities | undefined;
  /** Its part of what is lent, relative to its siblings. Default 1. */
  readonly weight?: number | undefined;
  /** Hours that it had beyond its guaranteed part, by key; with them, it gets the less the more it had. */
  readonly borrowedHours?: Quantities | undefined;
  /** Default: Never. */
  readonly reclaim?: Reclaim | undefined;
  /** Whether its waiting workloads take the room of its own workloads of lower priority. Default: Never. */
  readonly preemption?: Preemption | undefined;
}

/** A workload that a group is charged for; `consumer` is the group. */
export type ChargedWorkload = Omit<RunningPod, 'node' | 'place' | 'isBeyondQuota'>;

/** A workload that was refused and whose client retries; `consumer` is the group, `uses` what it would add. */
export type RefusedWorkload = Pick<WaitingPod, 'id' | 'consumer' | 'uses'> & {
  /** The first refusal, milliseconds. */
  readonly since: number;
  /** Default 0. */
  readonly priority?: number | undefined;
};

export interface GroupSituation {
  /** Milliseconds; only differences matter. */
  readonly now: number;
  readonly groups: readonly ArbitratedGroup[];
  readonly workloads: readonly ChargedWorkload[];
  readonly refused: readonly RefusedWorkload[];
  readonly disruptions: Situation['disruptions'];
}

/** A group with its place in its cohort. */
interface Member extends ArbitratedGroup {
  /** Elastic children. */
  readonly children: readonly Member[];
  /** Its quota without those of its children: what it is guaranteed itself. */
  readonly own: Quantities;
  /** The quota that it and the groups below it lend to no group outside of them. */
  readonly kept: Quantities;
  /** The part of its pool that its parent's other users may take. */
  readonly lent: Quantities;
}

/**
 * The cohorts of a tree of groups as situations of the arbitrator: the top of each cohort by name, with a cohort as the
 * only node and whole workloads as its pods. A cohort is a group and its elastic descendants. Groups become consumers
 * that reserve what they are guaranteed and ask for, plus what they do not lend. Cohorts where nobody waits are left
 * out.
 */
export function cohortSituations({
  now,
  groups,
  workloads,
  refused,
  disruptions,
}: GroupSituation): ReadonlyMap<string, Situation> {
  const byName = new Map(groups.map((group) => [group.name, group]));
  const tops = new Map(groups.map(({ name }) => [name, cohortOf(name, (each) => byName.get(each))]));
  const byParent = grouped(groups, ({ parent }) => parent);
  const situations = new Map<string, Situation>();
  for (const top of new Set(refused.map(({ consumer }) => tops.get(consumer) ?? ''))) {
    const group = byName.get(top);
    if (group === undefined) continue;
    const root = memberOf(group, byParent);
    const isHere = ({ consumer }: { readonly consumer: string }): boolean => tops.get(consumer) === top;
    const waiting = refused.filter(isHere);
    const pods = workloads.filter(isHere);
    situations.set(top, situationOf(root, { now, waiting, pods, disruptions, byParent }));
  }
  return situations;
}

/** The top of the cohort of a group: the nearest group above it that is not elastic, or the root. */
export function cohortOf(
  name: string,
  find: (name: string) => Pick<ArbitratedGroup, 'parent' | 'isElastic'> | undefined,
): string {
  let at = name;
  for (let group = find(at); group?.isElastic === true && find(group.parent) !== undefined; group = find(at))
    at = group.parent;
  return at;
}

function grouped<T>(all: readonly T[], by: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) {
    const known = groups.get(by(each));
    if (known === undefined) groups.set(by(each), [each]);
    else known.push(each);
  }
  return groups;
}

type ByParent = ReadonlyMap<string, readonly ArbitratedGroup[]>;

function memberOf(group: ArbitratedGroup, byParent: ByParent): Member {
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

/** A cohort has many workloads, and each step adds them up. */
const SEARCH_STEPS = 100;

interface CohortContent extends Pick<Situation, 'now' | 'pods' | 'disruptions'> {
  readonly waiting: readonly RefusedWorkload[];
  readonly byParent: ByParent;
}

function situationOf(declared: Member, content: CohortContent): Situation {
  const { now, waiting, disruptions, byParent } = content;
  const root = weighed(declared, capacityOf(withBelow(declared), byParent));
  const members = withBelow(root);
  const capacity = capacityOf(members, byParent);
  const present = (amounts: Quantities): Quantities => new Map([...amounts].filter(([key]) => capacity.has(key)));
  const pods = content.pods.map((pod) => ({ ...pod, uses: present(pod.uses), node: root.name }));
  const used = sumsOf(pods.filter(({ isLeaving }) => isLeaving !== true));
  const asked = sumsOf(waiting);
  const pending = new Map([...asked].map(([name, amounts]) => [name, present(amounts)]));
  const demandOf = ({ name }: Pick<Member, 'name'>): Quantities =>
    total([used.get(name) ?? NOTHING, pending.get(name) ?? NOTHING]);
  return {
    now,
    capacity,
    consumers: members.flatMap((member) => consumersOf(member, root, demandOf, byParent)),
    pods,
    pending,
    disruptions,
    nodes: [
      {
        name: root.name,
        allocatable: capacity,
        podSlots: Infinity,
        searchSteps: SEARCH_STEPS,
        fits: (pod, staying, held) => hasRoom(root, pod, sumsOf([...staying, ...held])),
      },
    ],
    waiting: inFairOrder(root, members, waiting, used, capacity).map((each, index) => ({
      ...each,
      uses: present(each.uses),
      // A guarantee holds whatever the priorities are. Victims are still chosen by theirs.
      priority: Number.MAX_SAFE_INTEGER,
      since: index,
      nodes: null,
    })),
  };
}

/** A group and its elastic descendants. */
function withBelow(member: Member): readonly Member[] {
  return [member, ...member.children.flatMap(withBelow)];
}

/** Largest ratio of hours that counts: beyond it, a group with little weight would get nothing for long. */
const MOST_RATIO = 4;

/**
 * A cohort whose members are weighed by the hours that they borrowed. Where a member and the groups below it had r
 * times the part of its siblings' hours that is due to its weight, its weight is halved r times, at most four times.
 */
function weighed(member: Member, capacity: Quantities): Member {
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

/** What the members of a cohort may use together: children that lend nothing have theirs for themselves. */
function capacityOf(members: readonly Member[], byParent: ByParent): Quantities {
  const capacity = new Map<string, number>();
  const hards = new Map(members.map(({ name, hard }) => [name, hard]));
  for (const { name, parent, hard } of members) {
    const above = hards.get(parent);
    const carved = (byParent.get(name) ?? []).filter((child) => !child.isElastic);
    for (const [key, amount] of hard) {
      const taken = carved.reduce((sum, child) => sum + of(child.hard, key), 0);
      capacity.set(key, of(capacity, key) + (above?.has(key) === true ? 0 : amount) - taken);
    }
  }
  return new Map([...capacity].filter(([, amount]) => amount > 0));
}

/** The name of the area of a group with elastic children; its own workloads are a member. No group has such a name. */
function areaOf({ name }: Pick<Member, 'name'>): string {
  return `${name}/*`;
}

function consumersOf(
  member: Member,
  root: Member,
  demandOf: (member: Pick<Member, 'name'>) => Quantities,
  byParent: ByParent,
): readonly ConsumerSpec[] {
  const { name, own, kept, borrow, weight, children, lend } = member;
  const isTop = member === root;
  const above = isTop ? '' : areaOf({ name: member.parent });
  const demand = demandOf(member);
  const guaranteed = (key: string, amount: number, asks: Quantities): number => Math.min(amount, of(asks, key));
  const ownKept = (key: string): number =>
    isTop || children.length > 0 ? 0 : of(own, key) - Math.min(of(own, key), lend?.get(key) ?? Infinity);
  const leaf: ConsumerSpec = {
    name,
    parent: children.length === 0 ? above : areaOf(member),
    weight: children.length === 0 ? weight : 1,
    reserved: new Map([...own].map(([key, amount]) => [key, Math.max(ownKept(key), guaranteed(key, amount, demand))])),
    ...(children.length > 0 || isTop || borrow === undefined
      ? {}
      : { hard: new Map([...borrow].map(([key, amount]) => [key, of(own, key) + amount])) }),
  };
  if (children.length === 0) return [leaf];
  const all = total(withBelow(member).map(demandOf));
  const carved = total((byParent.get(name) ?? []).filter((child) => !child.isElastic).map(({ hard }) => hard));
  const hard = new Map([...member.hard].map(([key, amount]) => [key, Math.max(0, amount - of(carved, key))]));
  const area: ConsumerSpec = {
    name: areaOf(member),
    parent: above,
    weight,
    reserved: new Map(
      [...hard].map(([key, amount]) => [key, Math.max(isTop ? 0 : of(kept, key), guaranteed(key, amount, all))]),
    ),
    ...(isTop || borrow === undefined
      ? {}
      : { hard: new Map([...borrow].map(([key, amount]) => [key, of(hard, key) + amount])) }),
  };
  return [area, leaf];
}

function sumsOf(all: Iterable<Pick<RunningPod, 'consumer' | 'uses'>>): ReadonlyMap<string, Map<string, number>> {
  const sums = new Map<string, Map<string, number>>();
  for (const { consumer, uses } of all) {
    const sum = sums.get(consumer) ?? new Map<string, number>();
    for (const [key, amount] of uses) sum.set(key, of(sum, key) + amount);
    sums.set(consumer, sum);
  }
  return sums;
}

/** Whether the quota of a cohort has room for a workload, with lending and borrowing limits, as the engine decides. */
function hasRoom(
  root: Member,
  { consumer, uses }: Pick<WaitingPod, 'consumer' | 'uses'>,
  used: ReadonlyMap<string, Quantities>,
): boolean {
  const path = pathTo(root, consumer);
  const last = path.at(-1);
  if (last === undefined) return false;
  for (const [key, amount] of uses) {
    if (amount <= 0 || !last.hard.has(key)) continue;
    // A group above that does not limit the key ends the chain.
    const chain = path.slice(path.findLastIndex(({ hard }) => !hard.has(key)) + 1);
    let room = Infinity;
    for (const member of chain) {
      const { pool, kept, usage } = flowOf(member, key, used);
      if (member === chain[0]) {
        room = pool - usage;
        continue;
      }
      const limit = Math.max(0, pool) - kept - Math.max(0, usage - kept) + (member.borrow?.get(key) ?? Infinity);
      const above = Math.min(room, limit);
      room = kept > usage ? kept - usage + Math.max(0, above) : above;
    }
    if (amount > room) return false;
  }
  return true;
}

function pathTo(root: Member, name: string): readonly Member[] {
  if (root.name === name) return [root];
  for (const child of root.children) {
    const path = pathTo(child, name);
    if (path.length > 0) return [root, ...path];
  }
  return [];
}

/** The pool of a group, what it keeps of it, and what it and its elastic children use of it. */
function flowOf(
  { name, hard, own, lend, children }: Member,
  key: string,
  used: ReadonlyMap<string, Quantities>,
): { readonly pool: number; readonly kept: number; readonly usage: number } {
  let [pool, usage] = [hard.has(key) ? of(own, key) : 0, of(used.get(name) ?? NOTHING, key)];
  for (const child of children) {
    const below = flowOf(child, key, used);
    pool += Math.max(0, below.pool) - below.kept;
    usage += Math.max(0, below.usage - below.kept);
  }
  const has = Math.max(0, pool);
  return { pool, kept: has - Math.min(has, lend?.get(key) ?? Infinity), usage };
}

interface Ordered extends RefusedWorkload {
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
function inFairOrder(
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
