import type { ConsumerSpec } from './consumer.js';
import { sharesByArea } from './area.js';
import type { Eviction } from './victim.js';
import { planEvictions } from './eviction.js';
import { NOTHING, of, total, type Quantities } from '../../manifests/quantities.js';
import type { ArbitratedNode } from './node-room.js';
import { planStarts, type PlannedStart, type StartPlan } from './planned-start.js';
import type { RunningPod } from './running-pod.js';
import { storageShares, type StorageSituation, type StorageUsage } from './storage.js';
import type { WaitingPod } from './waiting-pod.js';
import { excessOf, missing, waiting, type ConsumerUsage } from './consumer-usage.js';

/** Input of one arbitration period. */
export interface Situation {
  /** Milliseconds; only differences matter. */
  readonly now: number;
  /** Sum of the nodes' allocatable resources. */
  readonly capacity: Quantities;
  /** A consumer that is named only by pods has no limit and no reservation. */
  readonly consumers: readonly ConsumerSpec[];
  /** Pods that have a node and are not finished. */
  readonly pods: readonly RunningPod[];
  /** Requests of pods without a node, by consumer. */
  readonly pending: ReadonlyMap<string, Quantities>;
  /** How many evictions each disruption budget allows now. */
  readonly disruptions: ReadonlyMap<string, number>;
  /**
   * Nodes that accept pods. With nodes, evictions are planned so that a whole waiting pod can start on one of them.
   * Without nodes, only sums over the cluster are compared: the plan is good for shares and reports, but what its
   * evictions free may be spread over several nodes, so that no pod starts.
   */
  readonly nodes?: readonly ArbitratedNode[] | undefined;
  /** The waiting pods; used only with `nodes`. */
  readonly waiting?: readonly WaitingPod[] | undefined;
  /** Storage of the consumers, where it is known. It is divided beside the rest, and no pod is evicted for it. */
  readonly storage?: StorageSituation | undefined;
}

export interface ArbitratorPolicy {
  /** How long an overused consumer may delete pods itself before the arbitrator evicts them. */
  readonly graceMs: number;
  /** How long after an eviction no other pod of the same consumer is evicted for the same beneficiary. */
  readonly cooldownMs: number;
  /** Whether other consumers may use reserved amounts that the consumer does not request. */
  readonly lendReserved: boolean;
  /** Whether no eviction may take a consumer below its reservation. */
  readonly keepsReserved: boolean;
  /** How long a nominated pod may take to start after the victims have left. */
  readonly nominationMs: number;
  /** How long no pod is evicted for a pod that did not start on its nominated node. */
  readonly backoffMs: number;
}

export const DEFAULT_ARBITRATOR_POLICY: ArbitratorPolicy = {
  graceMs: 30_000,
  cooldownMs: 60_000,
  lendReserved: false,
  keepsReserved: true,
  nominationMs: 300_000,
  backoffMs: 1_800_000,
};

/** State from one period to the next; immutable. Without it, the grace periods begin again. */
export interface ArbitratorMemory {
  /** When other consumers began to wait for resources that a consumer overuses, milliseconds by consumer. */
  readonly wantedSince: ReadonlyMap<string, number>;
  /** Last eviction from one consumer for another, milliseconds by consumer, then by beneficiary. */
  readonly evictedAt: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Nominated waiting pods, by id. */
  readonly nominations: ReadonlyMap<string, Nomination>;
  /** End of the time in which no pod is evicted for a waiting pod, milliseconds by id. */
  readonly backoffUntil: ReadonlyMap<string, number>;
}

/** The node that is nominated for a waiting pod: its room is kept for the pod. */
export interface Nomination {
  readonly node: string;
  /** When the last victim left the node, as far as known; milliseconds. */
  readonly since: number;
  /** Nominated by the scheduler or another arbitrator; the nomination ends when the API server no longer shows it. */
  readonly isExternal?: boolean | undefined;
}

export const NO_MEMORY: ArbitratorMemory = {
  wantedSince: new Map(),
  evictedAt: new Map(),
  nominations: new Map(),
  backoffUntil: new Map(),
};

/** Content of a consumer's Allocation. */
export interface Allocation extends ConsumerUsage {
  readonly hard: Quantities | undefined;
  /** The largest fraction of the cluster that the consumer uses of any resource. */
  readonly dominantShare: number;
  /** Resources whose usage by the consumer exceeds its fair share. */
  readonly overused: readonly string[];
  /** Resources that the consumer has reserved and whose reservations together exceed the capacity. */
  readonly notGuaranteed: readonly string[];
  /**
   * When evictions of the consumer's pods may begin, milliseconds; null while no other consumer waits for resources
   * that it overuses.
   */
  readonly reclaimAt: number | null;
}

/** Result of one period; nothing has been executed. */
export interface ArbitrationPlan {
  /** Sorted by name. */
  readonly allocations: readonly Allocation[];
  /**
   * Pods to evict now, in this order, through the eviction API. If the API refuses one, mark it `isDeferred` and call
   * again with the same situation: the plan then has other victims.
   */
  readonly evictions: readonly Eviction[];
  /**
   * With `nodes`: the pods for which the evictions make room. Nominate these nodes by `status.nominatedNodeName`, so
   * that the scheduler keeps the room.
   */
  readonly starts: readonly PlannedStart[];
  /** With `nodes`: waiting pods without a nomination that fit without evictions. */
  readonly fitting: readonly string[];
  /** With `nodes`: waiting pods within the fair shares of their consumers that do not fit yet. */
  readonly due: readonly string[];
  /** Input of the next period, if the evictions are executed. */
  readonly memory: ArbitratorMemory;
}

/** Decides one period: fair shares, overused consumers and evictions. */
export function arbitrate(
  situation: Situation,
  memory: ArbitratorMemory = NO_MEMORY,
  policy: Partial<ArbitratorPolicy> = {},
): ArbitrationPlan {
  const unknown = Object.keys(policy).find((name) => !Object.hasOwn(DEFAULT_ARBITRATOR_POLICY, name));
  if (unknown !== undefined)
    throw new TypeError(
      `arbitrate: unknown option "${unknown}"; expected one of ${Object.keys(DEFAULT_ARBITRATOR_POLICY).join(', ')}`,
    );
  const complete = { ...DEFAULT_ARBITRATOR_POLICY, ...policy };
  const { graceMs, cooldownMs, lendReserved } = complete;
  const { now, capacity, pods, disruptions } = situation;
  const specs = allConsumers(situation);
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
  const isCooledDown = (from: string, to: string): boolean =>
    now - (memory.evictedAt.get(from)?.get(to) ?? -Infinity) >= cooldownMs;
  const kept = nominationsOf(situation, memory, complete);
  const startPlan =
    situation.nodes === undefined ? null : planOnNodes(situation, usages, memory, complete, kept, isCooledDown);
  const wantedSince =
    startPlan === null
      ? wantedSinceOf(capacity, usages, memory, now)
      : new Map([...startPlan.wanted].map((name) => [name, Math.min(now, memory.wantedSince.get(name) ?? now)]));
  const mayReclaim = (from: string, to: string): boolean =>
    now - (wantedSince.get(from) ?? Infinity) >= graceMs && isCooledDown(from, to);
  const starts = startPlan?.starts ?? [];
  const evictions =
    startPlan === null
      ? planEvictions({ capacity, usages, pods, disruptions, mayReclaim })
      : starts.flatMap(({ victims }) => victims);
  const storage = situation.storage === undefined ? null : storageShares(specs, situation.storage, lendReserved);
  const notGuaranteed = [...shares.notGuaranteed, ...(storage?.notGuaranteed ?? [])].sort();
  const allocations = usages.map((compute): Allocation => {
    const usage = withStorage(compute, storage?.of.get(compute.name));
    const since = wantedSince.get(usage.name);
    return {
      ...usage,
      dominantShare: dominantShare(compute.used, capacity),
      overused: [...excessOf(usage).keys()].sort(),
      notGuaranteed: notGuaranteed.filter((resource) => of(usage.reserved, resource) > 0),
      reclaimAt: since === undefined ? null : since + graceMs,
    };
  });
  return {
    allocations,
    evictions,
    starts,
    fitting: startPlan?.fitting ?? [],
    due: startPlan?.due ?? [],
    memory: {
      wantedSince,
      evictedAt: evictionTimes(memory.evictedAt, evictions, now, cooldownMs),
      nominations: new Map([
        ...kept.nominations,
        ...starts.map(({ pod, node }) => [pod, { node, since: now }] as const),
      ]),
      backoffUntil: kept.backoffUntil,
    },
  };
}

/** The usage of a consumer, by resource. Evictions are planned without storage. */
function withStorage<T extends ConsumerUsage>(usage: T, storage: StorageUsage | undefined): T {
  if (storage === undefined) return usage;
  return {
    ...usage,
    used: total([usage.used, storage.used]),
    pending: total([usage.pending, storage.pending]),
    deserved: total([usage.deserved, storage.deserved]),
  };
}

function planOnNodes(
  { now, nodes = [], waiting = [], pods, capacity, disruptions }: Situation,
  usages: readonly ConsumerUsage[],
  memory: ArbitratorMemory,
  { graceMs, keepsReserved }: ArbitratorPolicy,
  { nominations, backoffUntil }: Pick<ArbitratorMemory, 'nominations' | 'backoffUntil'>,
  mayReclaim: (from: string, to: string) => boolean,
): StartPlan {
  return planStarts({
    nodes,
    pods,
    usages: keepsReserved ? usages : usages.map((usage) => ({ ...usage, reserved: NOTHING })),
    capacity,
    disruptions,
    mayReclaim,
    waiting: waiting.map((pod) => ({ ...pod, nominated: nominations.get(pod.id)?.node ?? null })),
    isGraceOver: (name) => now - (memory.wantedSince.get(name) ?? now) >= graceMs,
    isBackedOff: (pod) => backoffUntil.has(pod),
  });
}

/**
 * Valid nominations: evictions by this arbitrator, and evictions by an earlier arbitrator or the scheduler according to
 * the API server. A nomination ends when its pod has not started in time after the victims left.
 */
function nominationsOf(
  { now, nodes = [], waiting = [], pods }: Situation,
  memory: ArbitratorMemory,
  { nominationMs, backoffMs }: ArbitratorPolicy,
): Pick<ArbitratorMemory, 'nominations' | 'backoffUntil'> {
  const known = new Set(nodes.map(({ name }) => name));
  const draining = new Set(
    pods.flatMap(({ isLeaving, node }) => (isLeaving === true && node !== undefined ? [node] : [])),
  );
  const waitingIds = new Set(waiting.map(({ id }) => id));
  const backoffUntil = new Map([...memory.backoffUntil].filter(([pod, until]) => waitingIds.has(pod) && until > now));
  const nominations = new Map<string, Nomination>();
  for (const { id, nominated } of waiting) {
    if (backoffUntil.has(id)) continue;
    const nomination = memory.nominations.get(id);
    const own = nomination?.isExternal === true ? undefined : nomination?.node;
    const node = own ?? nominated ?? '';
    if (!known.has(node)) continue;
    const since = draining.has(node) || nomination?.node !== node ? now : nomination.since;
    if (now - since < nominationMs)
      nominations.set(id, { node, since, ...(own === undefined ? { isExternal: true } : {}) });
    else backoffUntil.set(id, now + backoffMs);
  }
  return { nominations, backoffUntil };
}

/** All consumers, sorted by name, including consumers that only pods name. */
function allConsumers({ consumers, pods, pending, storage }: Situation): readonly ConsumerSpec[] {
  const specs = new Map<string, ConsumerSpec>();
  const claiming = storage === undefined ? [] : [...storage.used.keys(), ...storage.pending.keys()];
  for (const name of [...pods.map(({ consumer }) => consumer), ...pending.keys(), ...claiming])
    specs.set(name, { name });
  for (const spec of consumers) specs.set(spec.name, spec);
  return [...specs.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Usage by consumer, without pods that are leaving. */
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
 * When other consumers began to wait for resources that a consumer overuses. The time starts again after an
 * interruption.
 */
function wantedSinceOf(
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
      return isWanted ? [[name, Math.min(now, memory.wantedSince.get(name) ?? now)] as const] : [];
    }),
  );
}

/**
 * Times of past and new evictions, for the next period. The memory of a plan assumes all its evictions; a caller that
 * executed only some evictions, or evictions of several plans, computes the times with this function.
 */
export function evictionTimes(
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
  const counted = new Set<string>();
  for (const { consumer, resource, beneficiaries } of evictions) {
    const pair = `${consumer} ${resource}`;
    if (!counted.has(pair)) for (const to of beneficiaries) note(consumer, to, now);
    counted.add(pair);
  }
  return evictedAt;
}

function dominantShare(used: Quantities, capacity: Quantities): number {
  return [...used].reduce(
    (most, [resource, amount]) => (of(capacity, resource) > 0 ? Math.max(most, amount / of(capacity, resource)) : most),
    0,
  );
}
