import type { ConsumerSpec } from './consumer.js';
import { sharesByArea } from './area.js';
import type { Eviction } from './victim.js';
import { planEvictions } from './eviction.js';
import { NOTHING, of, total, type Quantities } from './quantities.js';
import type { ArbitratedNode } from './node-room.js';
import { planStarts, type PlannedStart, type StartPlan } from './planned-start.js';
import type { RunningPod } from './running-pod.js';
import type { WaitingPod } from './waiting-pod.js';
import { excessOf, missing, waiting, type ConsumerUsage } from './consumer-usage.js';

/** Everything that the arbitrator looks at in one period. */
export interface Situation {
  /** Milliseconds; only differences count. */
  readonly now: number;
  /** What the nodes have for pods, together. */
  readonly capacity: Quantities;
  /** A consumer that pods name and that is not here has no limit and nothing reserved. */
  readonly consumers: readonly ConsumerSpec[];
  /** Pods that have a node and are not done. */
  readonly pods: readonly RunningPod[];
  /** What pods without a node ask for, by consumer. */
  readonly pending: ReadonlyMap<string, Quantities>;
  /** How many pods each disruption budget lets go now. */
  readonly disruptions: ReadonlyMap<string, number>;
  /**
   * The nodes that pods can come to. With them whole pods are planned: one is evicted only where a waiting pod starts
   * in its place. Without, amounts of the cluster are compared, and what is freed may be too scattered for who waits.
   */
  readonly nodes?: readonly ArbitratedNode[] | undefined;
  /** The pods that wait, with `nodes`. */
  readonly waiting?: readonly WaitingPod[] | undefined;
}

export interface ArbitratorPolicy {
  /** How long an overused consumer may delete pods itself before the arbitrator evicts them. */
  readonly graceMs: number;
  /** For so long after an eviction no other pod of the same consumer goes for the same beneficiary. */
  readonly cooldownMs: number;
  /** What is reserved and not asked for goes to others. */
  readonly lendReserved: boolean;
  /** How long room that was made for a pod is kept for it, after what was there has left. */
  readonly holdMs: number;
  /** For so long nobody goes for a pod that did not start though room was made for it. */
  readonly barMs: number;
}

export const DEFAULT_ARBITRATOR_POLICY: ArbitratorPolicy = {
  graceMs: 30_000,
  cooldownMs: 60_000,
  lendReserved: false,
  holdMs: 300_000,
  barMs: 1_800_000,
};

/**
 * What one period tells the next. A value: keep it, hand it in again. An arbitrator that starts anew starts without,
 * and gives grace anew.
 */
export interface ArbitratorMemory {
  /** Since when somebody waits for what a consumer has too much of, milliseconds by name. */
  readonly noticedAt: ReadonlyMap<string, number>;
  /** When pods of one consumer last went for another, milliseconds: by name, then by name of the beneficiary. */
  readonly evictedAt: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Waiting pods that room is kept for, by id. */
  readonly holds: ReadonlyMap<string, Hold>;
  /** Pods that nobody goes for until then, milliseconds by id: room was made for them in vain. */
  readonly barredUntil: ReadonlyMap<string, number>;
}

/** Room that is kept for a waiting pod. */
export interface Hold {
  readonly node: string;
  /** Since when what was there has left, as far as is known; milliseconds. */
  readonly since: number;
  /** Somebody else keeps it, as the API server says: it ends when the API server no longer says so. */
  readonly isAdopted?: boolean | undefined;
}

export const NO_MEMORY: ArbitratorMemory = {
  noticedAt: new Map(),
  evictedAt: new Map(),
  holds: new Map(),
  barredUntil: new Map(),
};

/** What is to be written to the Allocation of a consumer. */
export interface Allocation extends ConsumerUsage {
  readonly hard: Quantities | undefined;
  /** The largest part of the cluster that it uses of anything. */
  readonly dominantShare: number;
  /** Resources of which it uses more than it deserves. */
  readonly overused: readonly string[];
  /** Resources of which it has something reserved and more is reserved than there is. */
  readonly notGuaranteed: readonly string[];
  /**
   * When pods of it may be evicted if it does not let them go before, milliseconds; null while nobody waits for what
   * they hold.
   */
  readonly reclaimAt: number | null;
}

/** What one period leads to. Nothing has happened yet. */
export interface ArbitrationPlan {
  /** By name, ascending. */
  readonly allocations: readonly Allocation[];
  /**
   * Pods to evict now, in this order, gracefully and through the eviction API. One that the API refuses is
   * `isSpared` in a second call with the same situation, whose plan has somebody else in its place.
   */
  readonly evictions: readonly Eviction[];
  /**
   * With nodes: for which pods the evictions make room, and where. The room is to be kept for them, by
   * `status.nominatedNodeName`.
   */
  readonly starts: readonly PlannedStart[];
  /** For the next period, if the evictions are carried out. */
  readonly memory: ArbitratorMemory;
}

/** Decides one period: what everybody deserves, who has too much, and who has to go. */
export function arbitrate(
  situation: Situation,
  memory: ArbitratorMemory = NO_MEMORY,
  policy: Partial<ArbitratorPolicy> = {},
): ArbitrationPlan {
  const complete = { ...DEFAULT_ARBITRATOR_POLICY, ...policy };
  const { graceMs, cooldownMs, lendReserved } = complete;
  const { now, capacity, pods, disruptions } = situation;
  const specs = specsOf(situation);
  const used = usedBy(pods);
  const claims = specs.map((spec) => {
    const pending = situation.pending.get(spec.name) ?? NOTHING;
    return {
      ...spec,
      pending,
      used: used.get(spec.name) ?? NOTHING,
      request: total([used.get(spec.name) ?? NOTHING, pending]),
    };
  });
  const shares = sharesByArea(claims, capacity, { lendReserved });
  const usages = claims.map(({ name, hard, reserved = NOTHING, used: uses, pending }) => ({
    name,
    hard,
    reserved,
    used: uses,
    pending,
    deserved: shares.of.get(name) ?? NOTHING,
  }));
  const isCool = (from: string, to: string): boolean =>
    now - (memory.evictedAt.get(from)?.get(to) ?? -Infinity) >= cooldownMs;
  const kept = holdsOf(situation, memory, complete);
  const startPlan = situation.nodes === undefined ? null : planned(situation, usages, memory, complete, kept, isCool);
  const noticedAt =
    startPlan === null
      ? notices(capacity, usages, memory, now)
      : new Map([...startPlan.wanted].map((name) => [name, Math.min(now, memory.noticedAt.get(name) ?? now)]));
  const mayReclaim = (from: string, to: string): boolean =>
    now - (noticedAt.get(from) ?? Infinity) >= graceMs && isCool(from, to);
  const starts = startPlan?.starts ?? [];
  const evictions =
    startPlan === null
      ? planEvictions({ capacity, usages, pods, disruptions, mayReclaim })
      : starts.flatMap(({ victims }) => victims);
  const allocations = usages.map((usage): Allocation => {
    const noticed = noticedAt.get(usage.name);
    return {
      ...usage,
      dominantShare: dominantShare(usage.used, capacity),
      overused: [...excessOf(usage).keys()].sort(),
      notGuaranteed: shares.notGuaranteed.filter((resource) => of(usage.reserved, resource) > 0),
      reclaimAt: noticed === undefined ? null : noticed + graceMs,
    };
  });
  return {
    allocations,
    evictions,
    starts,
    memory: {
      noticedAt,
      evictedAt: remembered(memory.evictedAt, evictions, now, cooldownMs),
      holds: new Map([...kept.holds, ...starts.map(({ pod, node }) => [pod, { node, since: now }] as const)]),
      barredUntil: kept.barredUntil,
    },
  };
}

function planned(
  { now, nodes = [], waiting = [], pods, capacity, disruptions }: Situation,
  usages: readonly ConsumerUsage[],
  memory: ArbitratorMemory,
  { graceMs }: ArbitratorPolicy,
  { holds, barredUntil }: Pick<ArbitratorMemory, 'holds' | 'barredUntil'>,
  mayReclaim: (from: string, to: string) => boolean,
): StartPlan {
  return planStarts({
    nodes,
    pods,
    usages,
    capacity,
    disruptions,
    mayReclaim,
    waiting: waiting.map((pod) => ({ ...pod, nominated: holds.get(pod.id)?.node ?? null })),
    isGraceOver: (name) => now - (memory.noticedAt.get(name) ?? now) >= graceMs,
    isBarred: (pod) => barredUntil.has(pod),
  });
}

/**
 * Room that is kept: for waiting pods that were promised it, and for those that the API server says are nominated, by
 * an earlier arbitrator or by the scheduler. It ends when the pod does not start though what was there has left.
 */
function holdsOf(
  { now, nodes = [], waiting = [], pods }: Situation,
  memory: ArbitratorMemory,
  { holdMs, barMs }: ArbitratorPolicy,
): Pick<ArbitratorMemory, 'holds' | 'barredUntil'> {
  const known = new Set(nodes.map(({ name }) => name));
  const emptying = new Set(
    pods.flatMap(({ isLeaving, node }) => (isLeaving === true && node !== undefined ? [node] : [])),
  );
  const waits = new Set(waiting.map(({ id }) => id));
  const barredUntil = new Map([...memory.barredUntil].filter(([pod, until]) => waits.has(pod) && until > now));
  const holds = new Map<string, Hold>();
  for (const { id, nominated } of waiting) {
    if (barredUntil.has(id)) continue;
    const hold = memory.holds.get(id);
    const own = hold?.isAdopted === true ? undefined : hold?.node;
    const node = own ?? nominated ?? '';
    if (!known.has(node)) continue;
    const since = emptying.has(node) || hold?.node !== node ? now : hold.since;
    if (now - since < holdMs) holds.set(id, { node, since, ...(own === undefined ? { isAdopted: true } : {}) });
    else barredUntil.set(id, now + barMs);
  }
  return { holds, barredUntil };
}

/** The consumers by name; those that only pods name among them. */
function specsOf({ consumers, pods, pending }: Situation): readonly ConsumerSpec[] {
  const specs = new Map<string, ConsumerSpec>();
  for (const name of [...pods.map(({ consumer }) => consumer), ...pending.keys()]) specs.set(name, { name });
  for (const spec of consumers) specs.set(spec.name, spec);
  return [...specs.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** What stays: pods that are leaving are not counted. */
function usedBy(pods: readonly RunningPod[]): ReadonlyMap<string, Quantities> {
  const used = new Map<string, Map<string, number>>();
  for (const { consumer, uses, isLeaving } of pods) {
    if (isLeaving === true) continue;
    const sum = used.get(consumer) ?? new Map<string, number>();
    for (const [resource, amount] of uses) sum.set(resource, of(sum, resource) + amount);
    used.set(consumer, sum);
  }
  return used;
}

/**
 * Since when somebody else waits for what a consumer has too much of. It ends, and starts anew, when that is no longer
 * so.
 */
function notices(
  capacity: Quantities,
  usages: readonly ConsumerUsage[],
  memory: ArbitratorMemory,
  now: number,
): ReadonlyMap<string, number> {
  const short = missing(capacity, usages);
  const names = waiting(usages);
  return new Map(
    usages.flatMap((usage) => {
      const { name } = usage;
      const excess = excessOf(usage);
      const isWanted = [...short.keys()].some(
        (resource) => excess.has(resource) && names.get(resource)?.some((other) => other !== name) === true,
      );
      return isWanted ? [[name, Math.min(now, memory.noticedAt.get(name) ?? now)] as const] : [];
    }),
  );
}

/**
 * What the next period is told of evictions, old ones and those of now. A plan's memory has it for all of its own; who
 * carried out only some of them, or those of several plans of one period, puts together theirs.
 */
export function remembered(
  before: ArbitratorMemory['evictedAt'],
  evictions: readonly Eviction[],
  now: number,
  cooldownMs: number,
): ArbitratorMemory['evictedAt'] {
  const evictedAt = new Map<string, Map<string, number>>();
  const note = (from: string, to: string, at: number): void => {
    const last = evictedAt.get(from) ?? new Map<string, number>();
    evictedAt.set(from, last.set(to, at));
  };
  for (const [from, last] of before) for (const [to, at] of last) if (now - at < cooldownMs) note(from, to, at);
  const noted = new Set<string>();
  for (const { consumer, resource, beneficiaries } of evictions) {
    const pair = `${consumer} ${resource}`;
    if (!noted.has(pair)) for (const to of beneficiaries) note(consumer, to, now);
    noted.add(pair);
  }
  return evictedAt;
}

function dominantShare(used: Quantities, capacity: Quantities): number {
  return [...used].reduce(
    (most, [resource, amount]) => (of(capacity, resource) > 0 ? Math.max(most, amount / of(capacity, resource)) : most),
    0,
  );
}
