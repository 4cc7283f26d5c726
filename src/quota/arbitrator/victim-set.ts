import { of, type Quantities } from './quantities.js';
import { firstToGo, type RunningPod } from './running-pod.js';
import type { NodeRoom } from './node-room.js';
import type { WaitingPod } from './waiting-pod.js';

/** What of a consumer decides whether it may lose pods. */
export interface Holder {
  readonly name: string;
  readonly deserved: Quantities;
  readonly reserved: Quantities;
  /** What it uses now, and what room is kept for. */
  readonly used: Quantities;
}

/** Under which rules pods may go. */
export interface VictimRules {
  readonly holderOf: (consumer: string) => Holder | undefined;
  /** How many pods each disruption budget lets go now. */
  readonly allowed: ReadonlyMap<string, number>;
  /** Whether pods of `from` may go for the good of `to`. */
  readonly mayReclaim: (from: string, to: string) => boolean;
  /** Whether pods that are spared at first may be victims too. */
  readonly takesSpared?: boolean;
  /** How much there is of a resource in the cluster. */
  readonly capacity: Quantities;
}

/** An exact search ends after so many steps. */
const MOST_STEPS = 4_000;

/**
 * Pods of one node without which a waiting pod fits there, as few and as unimportant as the order of `firstToGo` finds;
 * null where there are none. Nothing of a higher priority goes: what comes in its place would be first.
 */
export function victimSet(room: NodeRoom, pod: WaitingPod, rules: VictimRules): readonly RunningPod[] | null {
  const candidates = candidatesOn(room, pod, rules);
  if (candidates.length === 0 || !room.fits(pod, new Set(candidates))) return null;
  const short = shortOn(room, pod);
  const greedy = new Set<RunningPod>();
  for (const candidate of candidates) {
    if (room.fits(pod, greedy)) break;
    if (mayGo([...greedy, candidate], short, rules)) greedy.add(candidate);
  }
  const found = room.fits(pod, greedy) ? greedy : searched(room, pod, candidates, short, rules);
  return found === null ? null : withoutNeedless(room, pod, found);
}

/** Resources that a pod lacks on a node; where sums would be enough, everything that it asks for. */
export function shortOn(room: NodeRoom, pod: WaitingPod): readonly string[] {
  const short = room.shortOf(pod);
  return short.length > 0 ? short : [...pod.uses].flatMap(([resource, amount]) => (amount > 0 ? [resource] : []));
}

/**
 * Whether a set of pods may go together: each budget lets so many go, nobody falls below what is reserved for it, and
 * each consumer has too much of something that is short until the last of its pods goes.
 */
export function mayGo(set: readonly RunningPod[], short: readonly string[], rules: VictimRules): boolean {
  const going = new Map<string, number>();
  for (const { budgets = [] } of set)
    for (const budget of budgets) {
      const count = (going.get(budget) ?? 0) + 1;
      if (count > (rules.allowed.get(budget) ?? 0)) return false;
      going.set(budget, count);
    }
  return [...new Set(set.map(({ consumer }) => consumer))].every((name) => {
    const holder = rules.holderOf(name);
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

function mayLose({ used, reserved, deserved }: Holder, set: readonly RunningPod[], short: readonly string[]): boolean {
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

/** Those that might go, in the order in which they should: of who has most too much first. */
function candidatesOn(room: NodeRoom, pod: WaitingPod, rules: VictimRules): readonly RunningPod[] {
  const short = shortOn(room, pod);
  const scores = new Map<string, number>();
  const scoreOf = (consumer: string): number => {
    const known = scores.get(consumer);
    if (known !== undefined) return known;
    const holder = rules.holderOf(consumer);
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
        (candidate.isSpared !== true || rules.takesSpared === true) &&
        candidate.consumer !== pod.consumer &&
        candidate.priority <= pod.priority &&
        scoreOf(candidate.consumer) > 0 &&
        rules.mayReclaim(candidate.consumer, pod.consumer) &&
        mayGo([candidate], short, rules),
    )
    .sort((a, b) => scoreOf(b.consumer) - scoreOf(a.consumer) || firstToGo(a, b));
}

/**
 * Looks through all sets, those of the first candidates first. Pods that are alike are taken in their order only; a set
 * that may not go is in no larger one that may.
 */
function searched(
  room: NodeRoom,
  pod: WaitingPod,
  candidates: readonly RunningPod[],
  short: readonly string[],
  rules: VictimRules,
): ReadonlySet<RunningPod> | null {
  let steps = 0;
  const signatures = candidates.map(signatureOf);
  const extend = (chosen: readonly RunningPod[], from: number): ReadonlySet<RunningPod> | null => {
    const set = new Set(chosen);
    if (room.fits(pod, set)) return set;
    if (!room.fits(pod, new Set([...chosen, ...candidates.slice(from)]))) return null;
    const tried = new Set<string>();
    for (let index = from; index < candidates.length && steps < MOST_STEPS; index++) {
      const signature = signatures[index] as string;
      if (tried.has(signature)) continue;
      tried.add(signature);
      steps++;
      const next = [...chosen, candidates[index] as RunningPod];
      const found = mayGo(next, short, rules) ? extend(next, index + 1) : null;
      if (found !== null) return found;
    }
    return null;
  };
  return extend([], 0);
}

function signatureOf({ consumer, uses, budgets = [], place = '' }: RunningPod): string {
  return JSON.stringify([consumer, [...uses].sort(([a], [b]) => (a < b ? -1 : 1)), budgets, place]);
}

/** Lets those stay without whom the others are enough: the most important first. */
function withoutNeedless(room: NodeRoom, pod: WaitingPod, found: ReadonlySet<RunningPod>): readonly RunningPod[] {
  const set = new Set(found);
  for (const victim of [...found].sort((a, b) => -firstToGo(a, b))) {
    set.delete(victim);
    if (!room.fits(pod, set)) set.add(victim);
  }
  return [...found].filter((victim) => set.has(victim));
}
