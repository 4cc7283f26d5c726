import { NodeRoom, type ArbitratedNode } from './node-room.js';
import { of, type Quantities } from '../../manifests/quantities.js';
import { ownVictims } from './own-victims.js';
import { byEvictionOrder, type RunningPod } from './running-pod.js';
import type { ConsumerUsage } from './consumer-usage.js';
import type { Eviction } from './victim.js';
import { shortOn, victimSet, type ConsumerUse, type VictimRules } from './victim-set.js';
import { bySchedulingOrder, type WaitingPod } from './waiting-pod.js';

/** A waiting pod and the victims that make room for it. */
export interface PlannedStart {
  readonly pod: string;
  readonly consumer: string;
  /** The node with the room, to be nominated for the pod. */
  readonly node: string;
  readonly victims: readonly Eviction[];
}

/** Input of `planStarts`. */
export interface StartNeed {
  readonly nodes: readonly ArbitratedNode[];
  readonly pods: readonly RunningPod[];
  readonly waiting: readonly WaitingPod[];
  readonly usages: readonly ConsumerUsage[];
  readonly capacity: Quantities;
  readonly disruptions: ReadonlyMap<string, number>;
  /** Whether pods of `from` may be evicted for `to`, apart from the grace period of `from`. */
  readonly mayReclaim: (from: string, to: string) => boolean;
  /** Whether the grace period of a consumer is over. */
  readonly isGraceOver: (consumer: string) => boolean;
  /** Whether a pod did not start on its nominated node recently. */
  readonly isBackedOff: (pod: string) => boolean;
}

/** Result of `planStarts`. */
export interface StartPlan {
  readonly starts: readonly PlannedStart[];
  /** Overused consumers whose evictions would let another consumer's pod start. */
  readonly wanted: ReadonlySet<string>;
  /** Waiting pods that fit without evictions, into free room or room that leaving pods free. */
  readonly fitting: readonly string[];
  /** Waiting pods within the fair shares of their consumers that do not fit yet; nothing is evicted for them now. */
  readonly due: readonly string[];
}

/**
 * Plans starts of whole pods on nodes. A waiting pod that fits into free room, or into room that leaving pods free,
 * gets this room. Any other pod within its consumer's fair share gets the room of victims from overused consumers on
 * one node, if there is such a set of victims; else the room of less important pods of its own consumer, if it may take
 * that. Otherwise nothing is evicted for it.
 */
export function planStarts(need: StartNeed): StartPlan {
  const { nodes, pods, waiting, usages, capacity, disruptions } = need;
  const signatureOf = signatures();
  const rooms = new Map(nodes.map((node) => [node.name, new NodeRoom(node)]));
  for (const pod of pods) if (pod.isLeaving !== true && pod.node !== undefined) rooms.get(pod.node)?.add(pod);
  const used = new Map(usages.map(({ name, used: uses }) => [name, new Map(uses)]));
  const start = (room: NodeRoom, pod: WaitingPod): void => {
    room.reserve(pod);
    take(used.get(pod.consumer), pod.uses, 1);
  };
  const open: WaitingPod[] = [];
  for (const pod of [...waiting].sort(bySchedulingOrder)) {
    const room = rooms.get(pod.nominated ?? '');
    if (room === undefined) open.push(pod);
    else {
      start(room, pod);
    }
  }
  const without: ReadonlySet<RunningPod> = new Set();
  const unfitting = new Set<string>();
  const fitting: string[] = [];
  const unplaced = open.filter((pod) => {
    const signature = signatureOf(pod);
    // Free room only shrinks in this loop: an equal pod does not fit either.
    const found = unfitting.has(signature)
      ? undefined
      : [...rooms.values()].find((room) => room.admits(pod) && room.fits(pod, without));
    if (found !== undefined) {
      start(found, pod);
      fitting.push(pod.id);
    } else unfitting.add(signature);
    return found === undefined;
  });
  const holders = new Map(
    usages.map(({ name, deserved, reserved }): [string, ConsumerUse] => [
      name,
      { name, deserved, reserved, used: used.get(name) ?? new Map<string, number>() },
    ]),
  );
  const allowed = new Map(disruptions);
  const rules: VictimRules = {
    useOf: (name) => holders.get(name),
    allowed,
    capacity,
    mayReclaim: (from, to) => need.isGraceOver(from) && need.mayReclaim(from, to),
  };
  /** Waiting pods of higher priority, which the scheduler serves first; one of each signature. */
  const preceding = ({ priority }: WaitingPod): readonly WaitingPod[] => {
    const sorts = new Map(
      waiting
        .filter((other) => other.priority > priority)
        .map((other) => [`${signatureOf(other)} ${other.nominated ?? ''}`, other]),
    );
    return [...sorts.values()];
  };
  const starts: PlannedStart[] = [];
  const wanted = new Set<string>();
  const failed = new Set<string>();
  const due: string[] = [];
  for (const pod of unplaced) {
    const signature = signatureOf(pod);
    const holder = holders.get(pod.consumer);
    if (holder === undefined || need.isBackedOff(pod.id)) continue;
    const isOwed = pod.isPatient !== true && isWithinFairShare(holder, pod);
    if (!isOwed && pod.takesBelow === undefined) continue;
    if (failed.has(signature)) {
      if (isOwed) due.push(pod.id);
      continue;
    }
    // Victims for another pod may have left enough room.
    const free = [...rooms.values()].find((room) => room.admits(pod) && room.fits(pod, without));
    if (free !== undefined) {
      start(free, pod);
      fitting.push(pod.id);
      continue;
    }
    const first = preceding(pod);
    const own = pod.leavesShares === true ? keepingShares(rules) : rules;
    const mayTakeOwn = pod.takesBelow !== undefined && need.mayReclaim(pod.consumer, pod.consumer);
    const found =
      (isOwed ? bestSet(rooms, pod, (room) => victimSet(room, pod, own), first) : null) ??
      (mayTakeOwn ? bestSet(rooms, pod, (room) => ownVictims(room, pod, allowed), first) : null);
    if (found === null) {
      failed.add(signature);
      if (!isOwed) continue;
      due.push(pod.id);
      const anyTime = { ...own, mayReclaim: () => true, includesDeferred: true };
      const later = bestSet(rooms, pod, (room) => victimSet(room, pod, anyTime), first);
      if (later !== null)
        for (const name of overusedOf(holders, shortOn(later.room, pod), pod.consumer)) wanted.add(name);
      continue;
    }
    const { room, victims } = found;
    const short = shortOn(room, pod);
    if (victims.some(({ consumer }) => consumer !== pod.consumer))
      for (const name of overusedOf(holders, short, pod.consumer)) wanted.add(name);
    starts.push({
      pod: pod.id,
      consumer: pod.consumer,
      node: room.node.name,
      victims: victims.map((victim) => ({
        pod: victim.id,
        consumer: victim.consumer,
        resource: resourceOf(victim, short, holders),
        beneficiaries: [pod.consumer],
      })),
    });
    for (const victim of victims) {
      room.remove(victim);
      take(used.get(victim.consumer), victim.uses, -1);
      for (const budget of victim.budgets ?? []) allowed.set(budget, (allowed.get(budget) ?? 0) - 1);
    }
    start(room, pod);
    // Sets that failed before may be possible now.
    failed.clear();
  }
  return { starts, wanted, fitting, due };
}

/** Rules under which no consumer falls below its fair share of a resource that it overuses. */
function keepingShares(rules: VictimRules): VictimRules {
  return {
    ...rules,
    useOf: (name) => {
      const holder = rules.useOf(name);
      if (holder === undefined) return undefined;
      const { used, deserved, reserved } = holder;
      const overused = [...used].filter(([resource, amount]) => amount > of(deserved, resource));
      return { ...holder, reserved: new Map([...reserved, ...overused.map(([r]) => [r, of(deserved, r)] as const)]) };
    },
  };
}

/** Whether the consumer stays within its fair share when the pod runs. */
function isWithinFairShare({ used, deserved }: ConsumerUse, { uses }: WaitingPod): boolean {
  for (const [resource, amount] of uses)
    if (amount > 0 && of(used, resource) + amount > of(deserved, resource)) return false;
  return true;
}

/**
 * The victim set whose most important pod is the least important; among equals the smallest. A set is unsuitable if a
 * waiting pod of higher priority would take its room.
 */
function bestSet(
  rooms: ReadonlyMap<string, NodeRoom>,
  pod: WaitingPod,
  victimsOn: (room: NodeRoom) => readonly RunningPod[] | null,
  preceding: readonly WaitingPod[],
): { readonly room: NodeRoom; readonly victims: readonly RunningPod[] } | null {
  let best: { readonly room: NodeRoom; readonly victims: readonly RunningPod[] } | null = null;
  for (const room of rooms.values()) {
    const victims = room.admits(pod) ? victimsOn(room) : null;
    if (victims === null || (best !== null && !isBetter(victims, best.victims))) continue;
    const removed = new Set(victims);
    const isTaken = preceding.some(
      (other) => other.nominated !== room.node.name && room.admits(other) && room.fits(other, removed),
    );
    if (!isTaken) best = { room, victims };
  }
  return best;
}

function isBetter(a: readonly RunningPod[], b: readonly RunningPod[]): boolean {
  const [one, other] = [mostImportant(a), mostImportant(b)];
  const [within, otherWithin] = [one.isBeyondQuota !== true, other.isBeyondQuota !== true];
  if (within !== otherWithin) return otherWithin;
  if (one.priority !== other.priority) return one.priority < other.priority;
  if (a.length !== b.length) return a.length < b.length;
  return byEvictionOrder(one, other) < 0;
}

function mostImportant(pods: readonly RunningPod[]): RunningPod {
  return pods.reduce((most, pod) => (byEvictionOrder(most, pod) < 0 ? pod : most));
}

/** Other consumers that overuse a missing resource. */
function overusedOf(
  holders: ReadonlyMap<string, ConsumerUse>,
  short: readonly string[],
  beneficiary: string,
): readonly string[] {
  return [...holders.values()].flatMap(({ name, used, deserved }) =>
    name !== beneficiary && short.some((resource) => of(used, resource) > of(deserved, resource)) ? [name] : [],
  );
}

/** The missing resource for which a victim is evicted; if possible one that its consumer overuses. */
function resourceOf(
  { consumer, uses }: RunningPod,
  short: readonly string[],
  holders: ReadonlyMap<string, ConsumerUse>,
): string {
  const holder = holders.get(consumer);
  const held = short.filter((resource) => of(uses, resource) > 0);
  const over = held.find((resource) => of(holder?.used ?? uses, resource) > of(holder?.deserved ?? uses, resource));
  return over ?? held[0] ?? '';
}

function take(sum: Map<string, number> | undefined, uses: Quantities, times: 1 | -1): void {
  for (const [resource, amount] of uses) sum?.set(resource, of(sum, resource) + times * amount);
}

/** Returns equal texts for equal pods; pods of one template share their set of nodes. */
function signatures(): (pod: WaitingPod) => string {
  const numbers = new Map<ReadonlySet<string> | null, number>();
  return ({ consumer, uses, priority, nodes, isBeyondQuota = false, takesBelow = '' }) => {
    const number = numbers.get(nodes) ?? numbers.size;
    numbers.set(nodes, number);
    return `${consumer} ${priority} ${takesBelow} ${isBeyondQuota ? 'beyond ' : ''}${number} ${[...uses].map(([resource, amount]) => `${resource}=${amount}`).join()}`;
  };
}
