import type { Demand, PodSet, Resources, Types } from '../../quota/internal.js';
import { readQuantity } from '../../manifests/quantity.js';

/**
 * Returns what an owned object requests beyond its owner's charge: null where a pod set of the owner covers it in
 * number and in each resource; the whole demand where the owner is charged to another group or has no pods.
 */
export function beyondOwner(demand: Demand, owner: Demand): Demand | null {
  const sets = owner.podSets.filter(({ count }) => count > 0);
  const isSameGroup = owner.group !== '' && (demand.group === '' || demand.group === owner.group);
  const types = demand.types ?? {};
  if (sets.length === 0 || !isSameGroup || !isOfTypes(types, owner.types)) return demand;
  const podSets = demand.podSets.flatMap((podSet) => least(sets.map((set) => beyondSet(podSet, set))));
  if (podSets.length === 0) return null;
  // The owner's charge counts the object. An object without a type has the type of its owner.
  const { objects: _, ...rest } = demand;
  return { ...rest, types: { ...owner.types, ...types }, podSets };
}

/**
 * What an object requests beyond the Workload of Kueue that stands for it. The object itself stays counted, and its pod
 * sets stay without pods, as in an object that Kueue has not started.
 */
export function beyondWorkload(demand: Demand, workload: Demand | 'everything' | null): Demand {
  if (workload === null) return demand;
  const rest = workload === 'everything' ? null : beyondOwner(demand, workload);
  if (rest === demand) return demand;
  const podSets = rest?.podSets ?? demand.podSets.map((podSet) => ({ ...podSet, count: 0 }));
  return { ...demand, podSets };
}

/** Whether pods with `types` are of the types of their owner; a pod without a type has that of its owner. */
export function isOfTypes(types: Types = {}, owner: Types = {}): boolean {
  return Object.keys(types).every((family) => types[family] === owner[family]);
}

/** A pod that runs below a workload. */
export interface RunningPod {
  /** Equal pods have the same object. */
  readonly podSet: PodSet;
  /** It is being deleted, and its replacement may run beside it. */
  readonly isEnding: boolean;
}

/**
 * Adds to a demand the pods that run beyond it: in sum, `covering` covers no more pods than it has, and of each pod no
 * more than it has of a resource. With `isReplacedEarly` it covers no pod that is being deleted, because the
 * replacement runs beside it.
 */
export function withRunning(
  demand: Demand,
  covering: readonly PodSet[],
  running: readonly RunningPod[],
  isReplacedEarly: boolean,
): Demand {
  const free = covering.map(({ count }) => count);
  const beyondOf = remainders(covering);
  const beside: PodSet[] = [];
  const coverable = isReplacedEarly ? running.filter(({ isEnding }) => !isEnding) : running;
  const larger: PodSet[] = [];
  // Pods that stay are covered first.
  for (const { podSet } of [...coverable].sort((a, b) => Number(a.isEnding) - Number(b.isEnding))) {
    const at = beyondOf(podSet).findIndex((rest, index) => rest === null && (free[index] as number) > 0);
    if (at < 0) larger.push(podSet);
    else free[at] = (free[at] as number) - 1;
  }
  for (const podSet of larger) {
    const rests = beyondOf(podSet).map((rest, index) => (rest !== null && (free[index] as number) > 0 ? rest : null));
    const [least] = rests.flatMap((rest) => rest ?? []).sort((a, b) => sizeOf([a]) - sizeOf([b]));
    beside.push(least ?? podSet);
    const at = least === undefined ? -1 : rests.indexOf(least);
    if (at >= 0) free[at] = (free[at] as number) - 1;
  }
  if (isReplacedEarly) for (const { podSet, isEnding } of running) if (isEnding) beside.push(podSet);
  if (beside.length === 0) return demand;
  let prefix = '+';
  while (demand.podSets.some(({ name = '' }) => name.startsWith(prefix))) prefix += '+';
  return { ...demand, podSets: [...demand.podSets, ...counted(beside, prefix)] };
}

/** Distinct sizes of pods that are told apart; an engine accepts a thousand pod sets. */
const MOST_SIZES = 100;

/**
 * Equal pods as sets with a count. Sizes beyond the first ones form one set of pods that are as large as any of them.
 */
function counted(pods: readonly PodSet[], prefix: string): readonly PodSet[] {
  const contents = new Map<PodSet, string>();
  const sets = new Map<string, { readonly podSet: PodSet; count: number }>();
  const text = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}` : value);
  for (const podSet of pods) {
    const content = contents.get(podSet) ?? JSON.stringify([podSet.requests, podSet.limits], text);
    contents.set(podSet, content);
    const known = sets.get(content);
    if (known === undefined) sets.set(content, { podSet, count: 1 });
    else known.count++;
  }
  const all = [...sets.values()];
  const rest = all.splice(MOST_SIZES);
  if (rest.length > 0)
    all.push({
      podSet: rest.map(({ podSet }) => podSet).reduce(largestOf),
      count: rest.reduce((sum, { count }) => sum + count, 0),
    });
  return all.map(({ podSet, count }, index) => ({ ...podSet, name: `${prefix}${index + 1}`, count }));
}

function largestOf(a: PodSet, b: PodSet): PodSet {
  const larger = (these: Resources = {}, those: Resources = {}): Resources => ({
    ...those,
    ...these,
    ...exceeding(those, these),
  });
  return { ...a, requests: larger(a.requests, b.requests), limits: larger(a.limits, b.limits) };
}

/** The amounts of `wanted` that exceed those of `owned`. */
function exceeding(wanted: Resources, owned: Resources): Resources {
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([resource, quantity]) => amountOf(resource, quantity) > amountOf(resource, owned[resource] ?? 0),
    ),
  );
}

/** What a pod asks for beyond one pod of each set; null where a set covers it. Computed once for equal pods. */
function remainders(covering: readonly PodSet[]): (pod: PodSet) => readonly (PodSet | null)[] {
  const known = new Map<PodSet, readonly (PodSet | null)[]>();
  return (pod) => {
    const found =
      known.get(pod) ?? covering.map((set) => beyondSet({ ...pod, count: 1 }, { ...set, count: 1 })[0] ?? null);
    known.set(pod, found);
    return found;
  };
}

/** Whether a demand has no pods. */
export function asksForNothing({ podSets }: Demand): boolean {
  return podSets.every(({ count }) => count === 0);
}

/** Owners can have several pod sets; the object is matched with the one that leaves the smallest remainder. */
function least(candidates: readonly (readonly PodSet[])[]): readonly PodSet[] {
  return candidates.reduce((best, candidate) => (sizeOf(candidate) < sizeOf(best) ? candidate : best));
}

function sizeOf(podSets: readonly PodSet[]): number {
  return podSets.reduce(
    (sum, { requests = {}, limits = {} }) => sum + Object.keys({ ...requests, ...limits }).length,
    0,
  );
}

/** Returns the requests beyond an equal number of pods of another set: larger requests per pod, and additional pods. */
function beyondSet(podSet: PodSet, owned: PodSet): readonly PodSet[] {
  const within = Math.min(podSet.count, owned.count);
  const requests = beyond(podSet.requests, owned.requests);
  const limits = beyond(podSet.limits, owned.limits);
  const isMore = Object.keys(requests).length + Object.keys(limits).length > 0;
  const name = podSet.name ?? '';
  return [
    ...(isMore && within > 0 ? [{ name: `${name}+`, count: within, requests, limits, unspecified: [] }] : []),
    ...(podSet.count > within ? [{ ...podSet, count: podSet.count - within }] : []),
  ];
}

function beyond(wanted: Resources = {}, owned: Resources = {}): Resources {
  return Object.fromEntries(
    Object.entries(wanted).flatMap(([resource, quantity]): [string, bigint][] => {
      const [more, had] = [amountOf(resource, quantity), amountOf(resource, owned[resource] ?? 0)];
      return more > had ? [[resource, more - had]] : [];
    }),
  );
}

function amountOf(resource: string, quantity: NonNullable<Resources[string]>): bigint {
  const read = readQuantity(resource, quantity, 'up');
  return read.ok ? BigInt(read.amount) : 0n;
}
