import { of, total, type Quantities } from './quantities.js';

/** A pod that holds resources. */
export interface RunningPod {
  /** Unique: a uid, or namespace and name. */
  readonly id: string;
  /** Name of its consumer. */
  readonly consumer: string;
  /** Its requests. */
  readonly uses: Quantities;
  readonly priority: number;
  /** When it started, milliseconds. Null where that is not known: such pods are chosen by their ids, scattered. */
  readonly startedAt: number | null;
  /** Names of the disruption budgets that guard it; see `EvictionNeed.disruptions`. */
  readonly budgets?: readonly string[] | undefined;
  /** Never a victim: of a daemon set, of the system, or its eviction was refused a moment ago. */
  readonly isProtected?: boolean | undefined;
  /** It is going already: what it holds will be free without another eviction. */
  readonly isLeaving?: boolean | undefined;
}

/** How a consumer stands. */
export interface Standing {
  readonly name: string;
  readonly deserved: Quantities;
  readonly reserved: Quantities;
  /** Of its pods that are not leaving. */
  readonly used: Quantities;
  /** Of its pods that wait for a node. */
  readonly pending: Quantities;
}

/** What a plan is made of. */
export interface EvictionNeed {
  readonly capacity: Quantities;
  readonly standings: readonly Standing[];
  readonly pods: readonly RunningPod[];
  /** How many pods each disruption budget lets go now. One that is not named lets go none. */
  readonly disruptions: ReadonlyMap<string, number>;
  /** Whether pods of `from` may be evicted for the good of `to` now: grace and cool-down are kept by the caller. Yes without. */
  readonly mayReclaim?: ((from: string, to: string) => boolean) | undefined;
}

/** One pod that has to go. */
export interface Eviction {
  readonly pod: string;
  readonly consumer: string;
  /** For whom: who waits for something that the pod holds and its consumer has too much of. */
  readonly beneficiaries: readonly string[];
}

/** What a consumer uses beyond what it deserves. */
export function excessOf({ used, deserved }: Pick<Standing, 'used' | 'deserved'>): Quantities {
  return new Map([...used].flatMap(([resource, amount]) => {
    const excess = amount - of(deserved, resource);
    return excess > 0 ? [[resource, excess] as const] : [];
  }));
}

/** What a consumer waits for and deserves. */
export function lackOf({ used, pending, deserved }: Pick<Standing, 'used' | 'pending' | 'deserved'>): Quantities {
  return new Map([...pending].flatMap(([resource, waits]) => {
    const lack = Math.min(of(deserved, resource), of(used, resource) + waits) - of(used, resource);
    return lack > 0 ? [[resource, lack] as const] : [];
  }));
}

/** What is missing for those who wait for what they deserve, once everything that is leaving has left. */
export function missing(capacity: Quantities, standings: readonly Standing[]): Map<string, number> {
  const used = total(standings.map((standing) => standing.used));
  const found = new Map<string, number>();
  for (const [resource, lack] of total(standings.map(lackOf))) {
    const short = lack - (of(capacity, resource) - of(used, resource));
    if (short > 0) found.set(resource, short);
  }
  return found;
}

interface Side extends Standing {
  readonly remaining: Map<string, number>;
  readonly candidates: RunningPod[];
}

/**
 * Who has to go so that those who wait get what they deserve: nobody while what they wait for is free or becoming free. One pod after the
 * other: of the consumer that is most above what it deserves of something that is missing, its pod of the lowest priority, the last that
 * came first. Disruption budgets are kept, nobody falls below what is reserved for it, and whoever turns out not to be needed in the end
 * stays. In the order in which they were chosen. Pods of consumers without a standing are left alone.
 */
export function planEvictions({ capacity, standings, pods, disruptions, mayReclaim = () => true }: EvictionNeed): readonly Eviction[] {
  const wants = missing(capacity, standings);
  if (wants.size === 0) return [];
  const needed = new Map(wants);
  const lacks = standings.map((standing) => ({ name: standing.name, lack: lackOf(standing) }));
  const waitFor = (from: string, pod: RunningPod, side: Side): readonly string[] =>
    lacks.filter(({ name, lack }) => name !== from && mayReclaim(from, name) && helps(pod, side, needed, lack)).map(({ name }) => name);
  const allowed = new Map(disruptions);
  const sides = standings.map((standing): Side => ({ ...standing, remaining: new Map(standing.used), candidates: [] }));
  const byName = new Map(sides.map((side) => [side.name, side]));
  for (const pod of pods) if (pod.isLeaving !== true && pod.isProtected !== true) byName.get(pod.consumer)?.candidates.push(pod);
  for (const { candidates } of sides) candidates.sort(firstToGo);
  const chosen: { readonly pod: RunningPod; readonly eviction: Eviction }[] = [];
  const open = new Set(sides.filter(({ candidates }) => candidates.length > 0));
  while (open.size > 0 && needed.size > 0) {
    const side = mostOverused(open, needed, capacity);
    if (side === null) break;
    const at = side.candidates.findIndex((pod) => (pod.budgets ?? []).every((budget) => (allowed.get(budget) ?? 0) > 0)
      && keepsReserved(pod, side) && waitFor(side.name, pod, side).length > 0);
    const pod = side.candidates[at];
    if (pod === undefined) {
      open.delete(side);
      continue;
    }
    side.candidates.splice(at, 1);
    chosen.push({ pod, eviction: { pod: pod.id, consumer: side.name, beneficiaries: waitFor(side.name, pod, side) } });
    for (const budget of pod.budgets ?? []) allowed.set(budget, (allowed.get(budget) as number) - 1);
    for (const [resource, amount] of pod.uses) {
      side.remaining.set(resource, of(side.remaining, resource) - amount);
      const still = of(needed, resource) - amount;
      if (still > 0) needed.set(resource, still);
      else needed.delete(resource);
    }
  }
  return withoutNeedless(chosen, wants);
}

/** Whether a pod holds something that is missing, that somebody lacks, and that its consumer has too much of. */
function helps(pod: RunningPod, side: Side, needed: Quantities, lack: Quantities): boolean {
  return [...pod.uses].some(([resource, amount]) => amount > 0 && needed.has(resource) && lack.has(resource) && of(side.remaining, resource) > of(side.deserved, resource));
}

function keepsReserved(pod: RunningPod, { remaining, reserved }: Side): boolean {
  return [...pod.uses].every(([resource, amount]) => amount === 0 || of(remaining, resource) - amount >= of(reserved, resource));
}

/** The consumer that is farthest above what it deserves of something that is missing, in parts of the cluster; the first by name among equals. */
function mostOverused(sides: ReadonlySet<Side>, needed: Quantities, capacity: Quantities): Side | null {
  let [found, most]: [Side | null, number] = [null, 0];
  for (const side of sides) {
    let score = 0;
    for (const resource of needed.keys()) score = Math.max(score, (of(side.remaining, resource) - of(side.deserved, resource)) / of(capacity, resource));
    if (score > most || (score === most && found !== null && score > 0 && side.name < found.name)) [found, most] = [side, score];
  }
  return found;
}

function firstToGo(a: RunningPod, b: RunningPod): number {
  if (a.priority !== b.priority) return a.priority - b.priority;
  if (a.startedAt !== b.startedAt) {
    // Whoever's age nobody knows goes before those of whom it is known that they were there earlier.
    if (a.startedAt === null || b.startedAt === null) return a.startedAt === null ? -1 : 1;
    return b.startedAt - a.startedAt;
  }
  const [one, other] = a.startedAt === null ? [scattered(a.id), scattered(b.id)] : [0, 0];
  return one - other || (a.id < b.id ? -1 : 1);
}

/** A number that says nothing about what the text says: FNV-1a. */
function scattered(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** Lets those stay without whom the others are enough: the most important first. */
function withoutNeedless(chosen: readonly { readonly pod: RunningPod; readonly eviction: Eviction }[], wants: Quantities): readonly Eviction[] {
  const freed = total(chosen.map(({ pod }) => pod.uses));
  const enough = (resource: string, amount: number): boolean => of(freed, resource) - amount >= of(wants, resource);
  const stays = new Set<RunningPod>();
  for (const { pod } of [...chosen].sort((a, b) => -firstToGo(a.pod, b.pod))) {
    // Where not all that is missing could be freed, everything counts.
    if (![...wants.keys()].every((resource) => of(pod.uses, resource) === 0 || enough(resource, of(pod.uses, resource)))) continue;
    stays.add(pod);
    for (const [resource, amount] of pod.uses) freed.set(resource, of(freed, resource) - amount);
  }
  return chosen.filter(({ pod }) => !stays.has(pod)).map(({ eviction }) => eviction);
}

