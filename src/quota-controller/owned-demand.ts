import type { Demand, PodSet, Resources } from '../quota/index.js';
import { readQuantity } from '../manifests/quantity.js';

/**
 * Returns what an owned object requests beyond its owner's charge: null where a pod set of the owner covers it in
 * number and in each resource; the whole demand where the owner is charged to another group or has no pods.
 */
export function beyondOwner(demand: Demand, owner: Demand): Demand | null {
  const sets = owner.podSets.filter(({ count }) => count > 0);
  const isSameGroup = owner.group !== '' && (demand.group === '' || demand.group === owner.group);
  const types = demand.types ?? {};
  const isSameType = Object.keys(types).every((family) => types[family] === owner.types?.[family]);
  if (sets.length === 0 || !isSameGroup || !isSameType) return demand;
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
export function beyondWorkload(demand: Demand, workload: Demand | 'everything'): Demand {
  const rest = workload === 'everything' ? null : beyondOwner(demand, workload);
  if (rest === demand) return demand;
  const podSets = rest?.podSets ?? demand.podSets.map((podSet) => ({ ...podSet, count: 0 }));
  return { ...demand, podSets };
}

/** Whether a demand has no pods. */
export function asksForNothing({ podSets }: Demand): boolean {
  return podSets.every(({ count }) => count === 0);
}

/** Owners can have several pod sets; the object is matched with the one that leaves the smallest remainder. */
function least(candidates: readonly (readonly PodSet[])[]): readonly PodSet[] {
  const sizeOf = (podSets: readonly PodSet[]): number =>
    podSets.reduce((sum, { requests = {}, limits = {} }) => sum + Object.keys({ ...requests, ...limits }).length, 0);
  return candidates.reduce((best, candidate) => (sizeOf(candidate) < sizeOf(best) ? candidate : best));
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
