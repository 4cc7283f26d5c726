import { VictimSource, type ChosenVictim, type Eviction } from './victim.js';
import { of, total, type Quantities } from '../../manifests/quantities.js';
import { byEvictionOrder, type RunningPod } from './running-pod.js';
import { missing, waiting, type ConsumerUsage } from './consumer-usage.js';

/** Input of `planEvictions`. */
export interface EvictionNeed {
  readonly capacity: Quantities;
  readonly usages: readonly ConsumerUsage[];
  readonly pods: readonly RunningPod[];
  /** How many evictions each disruption budget allows now; a missing budget allows none. */
  readonly disruptions: ReadonlyMap<string, number>;
  /** Whether pods of `from` may be evicted for `to` now; the caller checks grace and cooldown. Default: always. */
  readonly mayReclaim?: ((from: string, to: string) => boolean) | undefined;
}

/**
 * Chooses victims so that waiting consumers get their fair shares; none while the missing resources are free or
 * becoming free. Each step takes the consumer whose usage exceeds its fair share of a missing resource most, and of its
 * pods the one with the lowest priority, then the youngest. Disruption budgets and reservations are respected. In the
 * end, victims that turned out to be unneeded are removed. Pods of consumers without a usage are not victims.
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
    if (pod.isLeaving !== true && pod.isProtected !== true && pod.isDeferred !== true)
      sources.get(pod.consumer)?.candidates.push(pod);
  const open = new Set([...sources.values()].filter(({ candidates }) => candidates.length > 0));
  for (const source of open) source.open(needed, capacity);
  const chosen: ChosenVictim[] = [];
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
    // The scores depend on the resources that are still missing.
    for (const each of needed.size < before ? open : [source]) each.rescore(needed, capacity);
  }
  return withoutUnneeded(chosen, wants);
}

/** The consumer with the highest score above zero; the first by name among equals. */
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

/** Removes victims that the others make unnecessary, the most important pod first. */
function withoutUnneeded(chosen: readonly ChosenVictim[], wants: Quantities): readonly Eviction[] {
  const freed = total(chosen.map(({ pod }) => pod.uses));
  const enough = (resource: string, amount: number): boolean => of(freed, resource) - amount >= of(wants, resource);
  const stays = new Set<RunningPod>();
  for (const { pod } of [...chosen].sort((a, b) => -byEvictionOrder(a.pod, b.pod))) {
    // If the plan cannot free all missing resources, every victim that frees some of them stays.
    if (
      ![...wants.keys()].every((resource) => of(pod.uses, resource) === 0 || enough(resource, of(pod.uses, resource)))
    )
      continue;
    stays.add(pod);
    for (const [resource, amount] of pod.uses) freed.set(resource, of(freed, resource) - amount);
  }
  return chosen.filter(({ pod }) => !stays.has(pod)).map(({ eviction }) => eviction);
}
