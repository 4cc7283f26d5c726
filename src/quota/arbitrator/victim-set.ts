import { of, type Quantities } from '../../manifests/quantities.js';
import { byEvictionOrder, type RunningPod } from './running-pod.js';
import type { NodeRoom } from './node-room.js';
import type { WaitingPod } from './waiting-pod.js';

/** Usage and bounds of a consumer, which decide whether it may lose pods. */
export interface ConsumerUse {
  readonly name: string;
  readonly deserved: Quantities;
  readonly reserved: Quantities;
  /** Its usage, with the requests of nominated pods. */
  readonly used: Quantities;
}

/** Rules for choosing victims. */
export interface VictimRules {
  readonly useOf: (consumer: string) => ConsumerUse | undefined;
  /** How many evictions each disruption budget allows now. */
  readonly allowed: ReadonlyMap<string, number>;
  /** Whether pods of `from` may be evicted for `to`. */
  readonly mayReclaim: (from: string, to: string) => boolean;
  /** Whether deferred pods may be victims. */
  readonly includesDeferred?: boolean;
  readonly capacity: Quantities;
}

/** Maximum number of steps of the exact search, unless the node has another. */
const MAX_STEPS = 4_000;

/**
 * Finds victims on a node that make room for a waiting pod: as few and as unimportant as possible by `byEvictionOrder`;
 * null if there are none. Pods of higher priority than the waiting pod are not victims, because the scheduler would
 * serve their replacements first. Pods within their group's quota are victims only if those beyond a quota do not
 * suffice.
 */
export function victimSet(room: NodeRoom, pod: WaitingPod, rules: VictimRules): readonly RunningPod[] | null {
  const candidates = candidatesOn(room, pod, rules);
  const beyond = candidates.filter(({ isBeyondQuota }) => isBeyondQuota === true);
  return (
    (beyond.length === candidates.length ? null : victimsAmong(beyond, room, pod, rules)) ??
    victimsAmong(candidates, room, pod, rules)
  );
}

function victimsAmong(
  candidates: readonly RunningPod[],
  room: NodeRoom,
  pod: WaitingPod,
  rules: VictimRules,
): readonly RunningPod[] | null {
  if (candidates.length === 0 || !room.fits(pod, new Set(candidates))) return null;
  const short = shortOn(room, pod);
  const greedy = new Set<RunningPod>();
  for (const candidate of candidates) {
    if (room.fits(pod, greedy)) break;
    if (mayEvictTogether([...greedy, candidate], short, rules)) greedy.add(candidate);
  }
  const found = room.fits(pod, greedy) ? greedy : searchExactly(room, pod, candidates, short, rules);
  return found === null ? null : withoutUnneeded(room, pod, found);
}

/** Resources that a pod lacks on a node; if the sums are sufficient, all that it requests. */
export function shortOn(room: NodeRoom, pod: WaitingPod): readonly string[] {
  const short = room.shortOf(pod);
  return short.length > 0 ? short : [...pod.uses].flatMap(([resource, amount]) => (amount > 0 ? [resource] : []));
}

/**
 * Whether a set of pods may be evicted together: every budget allows it, no consumer falls below its reservation, and
 * each consumer overuses a missing resource until its last victim has left.
 */
function mayEvictTogether(set: readonly RunningPod[], short: readonly string[], rules: VictimRules): boolean {
  const going = new Map<string, number>();
  for (const { budgets = [] } of set)
    for (const budget of budgets) {
      const count = (going.get(budget) ?? 0) + 1;
      if (count > (rules.allowed.get(budget) ?? 0)) return false;
      going.set(budget, count);
    }
  return [...new Set(set.map(({ consumer }) => consumer))].every((name) => {
    const holder = rules.useOf(name);
    return (
      holder !== undefined &&
      mayLose(
        holder,
        set.filter(({ consumer }) => consumer === name),
        short,
      )
    );
  });
}

function mayLose(
  { used, reserved, deserved }: ConsumerUse,
  set: readonly RunningPod[],
  short: readonly string[],
): boolean {
  const lost = new Map<string, number>();
  for (const { uses } of set) for (const [resource, amount] of uses) lost.set(resource, of(lost, resource) + amount);
  for (const [resource, amount] of lost)
    if (amount > 0 && of(used, resource) - amount < of(reserved, resource)) return false;
  return short.some((resource) => {
    const amounts = set.map(({ uses }) => of(uses, resource));
    const before = of(lost, resource) - Math.max(...amounts);
    return amounts.every((amount) => amount > 0) && of(used, resource) - before > of(deserved, resource);
  });
}

/** Possible victims in the order of eviction: the most overused consumer first. */
function candidatesOn(room: NodeRoom, pod: WaitingPod, rules: VictimRules): readonly RunningPod[] {
  const short = shortOn(room, pod);
  const scores = new Map<string, number>();
  const scoreOf = (consumer: string): number => {
    const known = scores.get(consumer);
    if (known !== undefined) return known;
    const holder = rules.useOf(consumer);
    const score =
      holder === undefined
        ? 0
        : Math.max(
            0,
            ...short.map(
              (resource) =>
                (of(holder.used, resource) - of(holder.deserved, resource)) / Math.max(1, of(rules.capacity, resource)),
            ),
          );
    scores.set(consumer, score);
    return score;
  };
  return [...room.staying]
    .filter(
      (candidate) =>
        candidate.isProtected !== true &&
        (candidate.isDeferred !== true || rules.includesDeferred === true) &&
        candidate.consumer !== pod.consumer &&
        candidate.priority <= pod.priority &&
        (pod.isBeyondQuota !== true || candidate.isBeyondQuota === true) &&
        scoreOf(candidate.consumer) > 0 &&
        rules.mayReclaim(candidate.consumer, pod.consumer) &&
        mayEvictTogether([candidate], short, rules),
    )
    .sort(
      (a, b) =>
        Number(b.isBeyondQuota === true) - Number(a.isBeyondQuota === true) ||
        scoreOf(b.consumer) - scoreOf(a.consumer) ||
        byEvictionOrder(a, b),
    );
}

/**
 * Searches all sets, those with the first candidates first. Equal pods are taken only in their order. A set that may
 * not be evicted together is not extended.
 */
function searchExactly(
  room: NodeRoom,
  pod: WaitingPod,
  candidates: readonly RunningPod[],
  short: readonly string[],
  rules: VictimRules,
): ReadonlySet<RunningPod> | null {
  let steps = 0;
  const { searchSteps = MAX_STEPS } = room.node;
  const signatures = candidates.map(signatureOf);
  const extend = (chosen: readonly RunningPod[], from: number): ReadonlySet<RunningPod> | null => {
    const set = new Set(chosen);
    if (room.fits(pod, set)) return set;
    if (!room.fits(pod, new Set([...chosen, ...candidates.slice(from)]))) return null;
    const tried = new Set<string>();
    for (let index = from; index < candidates.length && steps < searchSteps; index++) {
      const signature = signatures[index] as string;
      if (tried.has(signature)) continue;
      tried.add(signature);
      steps++;
      const next = [...chosen, candidates[index] as RunningPod];
      const found = mayEvictTogether(next, short, rules) ? extend(next, index + 1) : null;
      if (found !== null) return found;
    }
    return null;
  };
  return extend([], 0);
}

function signatureOf({ consumer, uses, budgets = [], place = '', isBeyondQuota = false }: RunningPod): string {
  return JSON.stringify([isBeyondQuota, consumer, [...uses].sort(([a], [b]) => (a < b ? -1 : 1)), budgets, place]);
}

/** Removes victims that the others make unnecessary, the most important pod first. */
export function withoutUnneeded(
  room: NodeRoom,
  pod: WaitingPod,
  found: ReadonlySet<RunningPod>,
): readonly RunningPod[] {
  const set = new Set(found);
  for (const victim of [...found].sort((a, b) => -byEvictionOrder(a, b))) {
    set.delete(victim);
    if (!room.fits(pod, set)) set.add(victim);
  }
  return [...found].filter((victim) => set.has(victim));
}
