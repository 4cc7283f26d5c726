import type { ConsumerSpec } from './consumer.js';
import type { Situation } from './arbitrate.js';
import type { RunningPod } from './running-pod.js';
import { NOTHING, of, total, type Quantities } from '../../manifests/quantities.js';
import type { ArbitratedGroup, ChargedWorkload, RefusedWorkload } from './arbitrated-group.js';
import { memberOf, weighed, withBelow, type ByParent, type Member } from './cohort-member.js';
import { hasRoom } from './cohort-room.js';
import { inFairOrder } from './fair-order.js';
import { grouped } from './grouped.js';

export interface GroupSituation {
  /** Milliseconds; only differences matter. */
  readonly now: number;
  readonly groups: readonly ArbitratedGroup[];
  readonly workloads: readonly ChargedWorkload[];
  readonly refused: readonly RefusedWorkload[];
  readonly disruptions: Situation['disruptions'];
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
