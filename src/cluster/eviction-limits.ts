import type { DisruptionBudget } from '../kube/disruption-budget.js';
import type { GroupMinimum, PodGroups } from './pod-groups.js';
import type { PodView } from './pod-view.js';

/** How many pods of a set may be evicted now: of a disruption budget's pods, or of a pod group above its minimum. */
export interface EvictionLimit {
  readonly kind: 'budget' | 'group';
  /** At least 0. */
  readonly allowed: number;
}

/** The limits of evictions, as the API server has them. */
export interface EvictionLimitSource {
  /** All disruption budgets; null if they are not known: not listed yet, or no right to list them. */
  disruptionBudgets(): readonly DisruptionBudget[] | null;
  /** All PodGroups with a minimum; empty if they are not known. */
  groupMinimums(): readonly GroupMinimum[];
}

/** Of a cluster without disruption budgets and PodGroups. */
export const NO_LIMITS: EvictionLimitSource = { disruptionBudgets: () => [], groupMinimums: () => [] };

/** The limits that hold at one moment. */
export class EvictionLimits {
  readonly #budgets = new Map<string, { readonly budget: DisruptionBudget; readonly limit: EvictionLimit }[]>();
  readonly #groupMinimums = new Map<string, number>();
  readonly #groups = new Map<string, EvictionLimit>();
  readonly #members: (group: string) => number;
  /** Whether the cluster's disruption budgets are known. */
  readonly knowsBudgets: boolean;

  /** `members` is the number of running members of a group. */
  constructor(source: EvictionLimitSource, members: (group: string) => number) {
    const budgets = source.disruptionBudgets();
    this.knowsBudgets = budgets !== null;
    for (const budget of budgets ?? []) {
      const there = this.#budgets.get(budget.namespace) ?? [];
      there.push({ budget, limit: { kind: 'budget', allowed: Math.max(0, budget.allowed) } });
      this.#budgets.set(budget.namespace, there);
    }
    for (const { keys, minimum } of source.groupMinimums())
      for (const key of keys) this.#groupMinimums.set(key, minimum);
    this.#members = members;
  }

  /**
   * The limits that the eviction of this pod counts against. None for a pod that is being deleted: its budgets count it
   * already, and its group has lost it.
   */
  of(pod: PodView): readonly EvictionLimit[] {
    if (pod.leaving) return [];
    const limits = (this.#budgets.get(pod.namespace) ?? [])
      .filter(({ budget }) => budget.selects(pod.labels) && !budget.disrupted.has(pod.name))
      .map(({ limit }) => limit);
    return pod.group === null ? limits : [...limits, this.#ofGroup(pod.group, pod.groupMinimum)];
  }

  /** A group whose minimum is not known needs all its members. */
  #ofGroup(group: string, ownMinimum: number | null): EvictionLimit {
    const known = this.#groups.get(group);
    if (known !== undefined) return known;
    const members = this.#members(group);
    const minimum = this.#groupMinimums.get(group) ?? ownMinimum ?? members;
    const limit: EvictionLimit = { kind: 'group', allowed: Math.max(0, members - minimum) };
    this.#groups.set(group, limit);
    return limit;
  }
}

/** Number of running members of a group; those that are being deleted no longer count. */
export function runningMembers(groups: PodGroups, pods: ReadonlyMap<string, PodView>, group: string): number {
  const members = [...(groups.get(group)?.members.keys() ?? [])].map((uid) => pods.get(uid));
  return members.filter((pod) => pod !== undefined && pod.nodeName !== null && !pod.leaving).length;
}

/** Counts evictions against limits. */
export class EvictionCount {
  readonly #evicted = new Map<EvictionLimit, number>();

  constructor(evicted: readonly (readonly EvictionLimit[])[] = []) {
    for (const limits of evicted) this.add(limits);
  }

  add(limits: readonly EvictionLimit[]): void {
    for (const limit of limits) this.#evicted.set(limit, this.#of(limit) + 1);
  }

  remove(limits: readonly EvictionLimit[]): void {
    for (const limit of limits) this.#evicted.set(limit, this.#of(limit) - 1);
  }

  /** Whether one of these limits is exceeded. */
  exceeds(limits: readonly EvictionLimit[]): boolean {
    return limits.some((limit) => this.#of(limit) > limit.allowed);
  }

  /** Number of evictions beyond the limits, of one kind or of all. */
  violations(kind?: EvictionLimit['kind']): number {
    let sum = 0;
    for (const [limit, evicted] of this.#evicted)
      if (kind === undefined || limit.kind === kind) sum += Math.max(0, evicted - limit.allowed);
    return sum;
  }

  #of(limit: EvictionLimit): number {
    return this.#evicted.get(limit) ?? 0;
  }
}
