import { NodeRoom, type ArbitratedNode } from './node-room.js';
import { of, type Quantities } from './quantities.js';
import { firstToGo, type RunningPod } from './running-pod.js';
import type { ConsumerUsage } from './consumer-usage.js';
import type { Eviction } from './victim.js';
import { shortOn, victimSet, type Holder, type VictimRules } from './victim-set.js';
import { firstToStart, type WaitingPod } from './waiting-pod.js';

/** A waiting pod that starts once these pods are gone. */
export interface PlannedStart {
  readonly pod: string;
  readonly consumer: string;
  /** Where the room is made, and to be kept for it. */
  readonly node: string;
  readonly victims: readonly Eviction[];
}

/** What starts are planned with. */
export interface StartNeed {
  readonly nodes: readonly ArbitratedNode[];
  readonly pods: readonly RunningPod[];
  readonly waiting: readonly WaitingPod[];
  readonly usages: readonly ConsumerUsage[];
  readonly capacity: Quantities;
  readonly disruptions: ReadonlyMap<string, number>;
  /** Whether pods of `from` may be evicted for the good of `to`, but for the grace of `from`. */
  readonly mayReclaim: (from: string, to: string) => boolean;
  /** Whether the grace of a consumer is over. */
  readonly isGraceOver: (consumer: string) => boolean;
  /** Pods for which room was made lately in vain. */
  readonly isBarred: (pod: string) => boolean;
}

/** What comes of it. */
export interface StartPlan {
  readonly starts: readonly PlannedStart[];
  /** Consumers that have too much of what somebody waits for, who would start if some of their pods went. */
  readonly wanted: ReadonlySet<string>;
  /** Waiting pods that room is kept for already. */
  readonly held: ReadonlySet<string>;
}

/**
 * Plans with whole pods on nodes. A waiting pod that fits into what is free, or will be when those that are leaving
 * have left, gets that room. One that does not, and that its consumer deserves, gets the room of pods of overused
 * consumers on one node, if there is a set of them without which it fits. Otherwise nobody goes for it.
 */
export function planStarts(need: StartNeed): StartPlan {
  const { nodes, pods, waiting, usages, capacity, disruptions } = need;
  const signatureOf = signatures();
  const rooms = new Map(nodes.map((node) => [node.name, new NodeRoom(node)]));
  for (const pod of pods) if (pod.isLeaving !== true && pod.node !== undefined) rooms.get(pod.node)?.add(pod);
  const used = new Map(usages.map(({ name, used: uses }) => [name, new Map(uses)]));
  const start = (room: NodeRoom, pod: WaitingPod): void => {
    room.hold(pod);
    take(used.get(pod.consumer), pod.uses, 1);
  };
  const held = new Set<string>();
  const open: WaitingPod[] = [];
  for (const pod of [...waiting].sort(firstToStart)) {
    const room = rooms.get(pod.nominated ?? '');
    if (room === undefined) open.push(pod);
    else {
      start(room, pod);
      held.add(pod.id);
    }
  }
  const without: ReadonlySet<RunningPod> = new Set();
  const late = new Set<string>();
  const unplaced = open.filter((pod) => {
    const signature = signatureOf(pod);
    // Room only shrinks here: where one did not fit, no other that is alike does.
    const found = late.has(signature)
      ? undefined
      : [...rooms.values()].find((room) => room.admits(pod) && room.fits(pod, without));
    if (found !== undefined) start(found, pod);
    else late.add(signature);
    return found === undefined;
  });
  const holders = new Map(
    usages.map(({ name, deserved, reserved }): [string, Holder] => [
      name,
      { name, deserved, reserved, used: used.get(name) ?? new Map<string, number>() },
    ]),
  );
  const allowed = new Map(disruptions);
  const rules: VictimRules = {
    holderOf: (name) => holders.get(name),
    allowed,
    capacity,
    mayReclaim: (from, to) => need.isGraceOver(from) && need.mayReclaim(from, to),
  };
  /** Waiting pods that the scheduler serves first, one of each sort. */
  const ahead = ({ priority }: WaitingPod): readonly WaitingPod[] => {
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
  for (const pod of unplaced) {
    const signature = signatureOf(pod);
    const holder = holders.get(pod.consumer);
    if (holder === undefined || failed.has(signature) || need.isBarred(pod.id) || !deserves(holder, pod)) continue;
    // Others went for somebody else: there may be room now.
    const free = [...rooms.values()].find((room) => room.admits(pod) && room.fits(pod, without));
    if (free !== undefined) {
      start(free, pod);
      continue;
    }
    const first = ahead(pod);
    const found = bestSet(rooms, pod, rules, first);
    if (found === null) {
      failed.add(signature);
      const later = bestSet(rooms, pod, { ...rules, mayReclaim: () => true, takesSpared: true }, first);
      if (later !== null)
        for (const name of overusedOf(holders, shortOn(later.room, pod), pod.consumer)) wanted.add(name);
      continue;
    }
    const { room, victims } = found;
    const short = shortOn(room, pod);
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
    // What was in the way may not be any more.
    failed.clear();
  }
  return { starts, wanted, held };
}

/** Whether a consumer has no more than it deserves once the pod runs. */
function deserves({ used, deserved }: Holder, { uses }: WaitingPod): boolean {
  for (const [resource, amount] of uses)
    if (amount > 0 && of(used, resource) + amount > of(deserved, resource)) return false;
  return true;
}

/**
 * The set whose most important pod is the least important; of those the smallest. None whose room somebody else would
 * take, who is more important and waits as well.
 */
function bestSet(
  rooms: ReadonlyMap<string, NodeRoom>,
  pod: WaitingPod,
  rules: VictimRules,
  ahead: readonly WaitingPod[],
): { readonly room: NodeRoom; readonly victims: readonly RunningPod[] } | null {
  let best: { readonly room: NodeRoom; readonly victims: readonly RunningPod[] } | null = null;
  for (const room of rooms.values()) {
    const victims = room.admits(pod) ? victimSet(room, pod, rules) : null;
    if (victims === null || (best !== null && !isBetter(victims, best.victims))) continue;
    const gone = new Set(victims);
    const isTaken = ahead.some(
      (other) => other.nominated !== room.node.name && room.admits(other) && room.fits(other, gone),
    );
    if (!isTaken) best = { room, victims };
  }
  return best;
}

function isBetter(a: readonly RunningPod[], b: readonly RunningPod[]): boolean {
  const [one, other] = [mostImportant(a), mostImportant(b)];
  if (one.priority !== other.priority) return one.priority < other.priority;
  if (a.length !== b.length) return a.length < b.length;
  return firstToGo(one, other) < 0;
}

function mostImportant(pods: readonly RunningPod[]): RunningPod {
  return pods.reduce((most, pod) => (firstToGo(most, pod) < 0 ? pod : most));
}

/** Consumers that have too much of what is short. */
function overusedOf(
  holders: ReadonlyMap<string, Holder>,
  short: readonly string[],
  beneficiary: string,
): readonly string[] {
  return [...holders.values()].flatMap(({ name, used, deserved }) =>
    name !== beneficiary && short.some((resource) => of(used, resource) > of(deserved, resource)) ? [name] : [],
  );
}

/** What a victim goes for: of what is short the resource that its consumer has too much of. */
function resourceOf(
  { consumer, uses }: RunningPod,
  short: readonly string[],
  holders: ReadonlyMap<string, Holder>,
): string {
  const holder = holders.get(consumer);
  const held = short.filter((resource) => of(uses, resource) > 0);
  const over = held.find((resource) => of(holder?.used ?? uses, resource) > of(holder?.deserved ?? uses, resource));
  return over ?? held[0] ?? '';
}

function take(sum: Map<string, number> | undefined, uses: Quantities, times: 1 | -1): void {
  for (const [resource, amount] of uses) sum?.set(resource, of(sum, resource) + times * amount);
}

/** Equal for pods that are alike: pods of one template share their set of nodes. */
function signatures(): (pod: WaitingPod) => string {
  const numbers = new Map<ReadonlySet<string> | null, number>();
  return ({ consumer, uses, priority, nodes }) => {
    const number = numbers.get(nodes) ?? numbers.size;
    numbers.set(nodes, number);
    return `${consumer} ${priority} ${number} ${[...uses].map(([resource, amount]) => `${resource}=${amount}`).join()}`;
  };
}
