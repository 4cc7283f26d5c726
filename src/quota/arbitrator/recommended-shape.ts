import { of, type Quantities } from '../../manifests/quantities.js';

/** What to ask for in place of a request, so that it fits. */
export interface RecommendedShape {
  /** `asIs`: all fits. `fewer`: fewer pods of the same size. `smaller`: one pod, smaller where room is short. */
  readonly change: 'asIs' | 'fewer' | 'smaller';
  readonly pods: number;
  /** The amounts of all pods together. */
  readonly uses: Quantities;
}

/**
 * The request of a workload that fits into `free` and is nearest to what it asks for: all of its pods, else as many as
 * fit, else one pod with as much of each amount as there is. Null if an amount that the pods need is used up. `uses`
 * are the amounts of all `pods` together, and the pods are alike.
 */
export function recommendedShape(free: Quantities, uses: Quantities, pods: number): RecommendedShape | null {
  const asked = [...uses].filter(([, amount]) => amount > 0);
  const perPod = asked.map(([key, amount]) => [key, Math.ceil(amount / Math.max(1, pods))] as const);
  const fitting = Math.min(...perPod.map(([key, amount]) => Math.floor(Math.max(0, of(free, key)) / amount)));
  if (asked.every(([key, amount]) => amount <= of(free, key))) return { change: 'asIs', pods, uses: new Map(asked) };
  if (fitting >= 1)
    return { change: 'fewer', pods: fitting, uses: new Map(perPod.map(([key, amount]) => [key, amount * fitting])) };
  const smaller = perPod.map(([key, amount]) => [key, Math.min(amount, Math.max(0, of(free, key)))] as const);
  return smaller.some(([, amount]) => amount === 0) ? null : { change: 'smaller', pods: 1, uses: new Map(smaller) };
}
