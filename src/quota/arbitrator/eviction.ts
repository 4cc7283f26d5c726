import { VictimSource, type Chosen, type Eviction } from './victim.js';
import { of, total, type Quantities } from './quantities.js';
import { firstToGo, type RunningPod } from './running-pod.js';
import { missing, waiting, type ConsumerUsage } from './consumer-usage.js';

/** What a plan is made of. */
export interface EvictionNeed {
  readonly capacity: Quantities;
  readonly usages: readonly ConsumerUsage[];
  readonly pods: readonly RunningPod[];
  /** How many pods each disruption budget lets go now. One that is not named lets go none. */
  readonly disruptions: ReadonlyMap<string, number>;
  /**
   * Whether pods of `from` may be evicted for the good of `to` now: grace and cool-down are kept by the caller. Yes
   * without.
   */
  readonly mayReclaim?: ((from: string, to: string) => boolean) | undefined;
}

/**
 * Who has to go so that those who wait get what they deserve: nobody while what they wait for is free or becoming free.
 * One pod after the other: of the consumer that is most above what it deserves of something that is missing, its pod of
 * the lowest priority, the last that came first. Disruption budgets are kept, nobody falls below what is reserved for
 * it, and whoever turns out not to be needed in the end stays. In the order in which they were chosen. Pods of
 * consumers without a usage are left alone.
 */
export function planEvictions({
  capacity,
  usages,
  pods,
  disruptions,
  mayReclaim = () => true,
}: EvictionNeed): readonly Eviction[] {
  const wants = missing(capacity, usages);
  if (wants.size === 0) return [];
  const needed = new Map(wants);
  const allowed = new Map(disruptions);
  const names = waiting(usages);
  const sources = new Map(usages.map((usage) => [usage.name, new VictimSource(usage, names, mayReclaim)]));
  for (const pod of pods)
    if (pod.isLeaving !== true && pod.isProtected !== true && pod.isSpared !== true)
      sources.get(pod.consumer)?.candidates.push(pod);
  const open = new Set([...sources.values()].filter(({ candidates }) => candidates.length > 0));
  for (const source of open) source.open(needed, capacity);
  const chosen: Chosen[] = [];
  while (needed.size > 0) {
    const source = mostOverused(open);
    if (source === null) break;
    const next = source.next(needed, allowed);
    if (next === null) {
      open.delete(source);
      continue;
    }
    chosen.push(next);
    for (const budget of next.pod.budgets ?? []) allowed.set(budget, (allowed.get(budget) as number) - 1);
    const before = needed.size;
    for (const [resource, amount] of next.pod.uses) {
      const still = of(needed, resource) - amount;
      if (still > 0) needed.set(resource, still);
      else needed.delete(resource);
    }
    // What is still missing decides how overused somebody is.
    for (const each of needed.size < before ? open : [source]) each.rescore(needed, capacity);
  }
  return withoutNeedless(chosen, wants);
}

/** The one with the highest score above zero; the first by name among equals. */
function mostOverused(sources: ReadonlySet<VictimSource>): VictimSource | null {
  let found: VictimSource | null = null;
  for (const source of sources) {
    if (
      source.score > 0 &&
      (found === null || source.score > found.score || (source.score === found.score && source.name < found.name))
    )
      found = source;
  }
  return found;
}

/** Lets those stay without whom the others are enough: the most important first. */
function withoutNeedless(chosen: readonly Chosen[], wants: Quantities): readonly Eviction[] {
  const freed = total(chosen.map(({ pod }) => pod.uses));
  const enough = (resource: string, amount: number): boolean => of(freed, resource) - amount >= of(wants, resource);
  const stays = new Set<RunningPod>();
  for (const { pod } of [...chosen].sort((a, b) => -firstToGo(a.pod, b.pod))) {
    // Where not all that is missing could be freed, everything counts.
    if (
      ![...wants.keys()].every((resource) => of(pod.uses, resource) === 0 || enough(resource, of(pod.uses, resource)))
    )
      continue;
    stays.add(pod);
    for (const [resource, amount] of pod.uses) freed.set(resource, of(freed, resource) - amount);
  }
  return chosen.filter(({ pod }) => !stays.has(pod)).map(({ eviction }) => eviction);
}
