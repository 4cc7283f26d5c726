import type { Demand, PodSet, Resources } from '../quota/core/demand.js';
import { readQuantity } from '../quota/core/quantity.js';

/**
 * What an owned object asks for beyond what its owner is charged: nothing (null) where a pod set of the owner covers
 * it, in number and in each resource. Everything, where the owner is charged to another group or makes no pods.
 */
export function beyondOwner(demand: Demand, owner: Demand): Demand | null {
  const sets = owner.podSets.filter(({ count }) => count > 0);
  const isSameGroup = owner.group !== '' && (demand.group === '' || demand.group === owner.group);
  const types = demand.types ?? {};
  const isSameType = Object.keys(types).every((family) => types[family] === owner.types?.[family]);
  if (sets.length === 0 || !isSameGroup || !isSameType) return demand;
  const podSets = demand.podSets.flatMap((podSet) => least(sets.map((set) => beyondSet(podSet, set))));
  if (podSets.length === 0) return null;
  // The object is counted with its owner; the type is that of the owner, where it names none itself.
  const { objects: _, ...rest } = demand;
  return { ...rest, types: { ...owner.types, ...types }, podSets };
}

/** Whether a demand is for no pods at all. */
export function asksForNothing({ podSets }: Demand): boolean {
  return podSets.every(({ count }) => count === 0);
}

/** The pod sets of the owner differ; an object belongs to the one that leaves the least of it. */
function least(candidates: readonly (readonly PodSet[])[]): readonly PodSet[] {
  const sizeOf = (podSets: readonly PodSet[]): number =>
    podSets.reduce((sum, { requests = {}, limits = {} }) => sum + Object.keys({ ...requests, ...limits }).length, 0);
  return candidates.reduce((best, candidate) => (sizeOf(candidate) < sizeOf(best) ? candidate : best));
}

/** What pods ask for beyond as many pods of another set: more in each, and more of them. */
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
