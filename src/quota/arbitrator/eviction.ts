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
  /** What it goes for: something that is missing, that it holds and of which its consumer has too much. */
  readonly resource: string;
  /** Who waits for that. */
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

/** Who waits for something that it deserves: names by resource. */
export function waiting(standings: readonly Standing[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const standing of standings) {
    for (const resource of lackOf(standing).keys()) {
      const names = found.get(resource);
      if (names === undefined) found.set(resource, [standing.name]);
      else names.push(standing.name);
    }
  }
  return found;
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
  const allowed = new Map(disruptions);
  const names = waiting(standings);
  const sides = new Map(standings.map((standing) => [standing.name, new Side(standing, names, mayReclaim)]));
  for (const pod of pods) if (pod.isLeaving !== true && pod.isProtected !== true) sides.get(pod.consumer)?.candidates.push(pod);
  const open = new Set([...sides.values()].filter(({ candidates }) => candidates.length > 0));
  for (const side of open) side.open(needed, capacity);
  const chosen: Chosen[] = [];
  while (needed.size > 0) {
    const side = mostOverused(open);
    if (side === null) break;
    const next = side.next(needed, allowed);
    if (next === null) {
      open.delete(side);
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
    for (const each of needed.size < before ? open : [side]) each.rescore(needed, capacity);
  }
  return withoutNeedless(chosen, wants);
}

interface Chosen {
  readonly pod: RunningPod;
  readonly eviction: Eviction;
}

/** A consumer that may lose pods. What it can not lose once it can not lose later: budgets, needs and what it has only fall. */
class Side {
  readonly name: string;
  readonly candidates: RunningPod[] = [];
  /** How far it is above what it deserves of something that is missing, in parts of the cluster. */
  score = 0;
  readonly #standing: Standing;
  readonly #remaining: Map<string, number>;
  readonly #waiting: ReadonlyMap<string, readonly string[]>;
  readonly #mayReclaim: (from: string, to: string) => boolean;
  /** For whom it may lose something, by resource. */
  readonly #beneficiaries = new Map<string, readonly string[]>();
  #at = 0;

  constructor(standing: Standing, waitingFor: ReadonlyMap<string, readonly string[]>, mayReclaim: (from: string, to: string) => boolean) {
    this.name = standing.name;
    this.#standing = standing;
    this.#remaining = new Map(standing.used);
    this.#waiting = waitingFor;
    this.#mayReclaim = mayReclaim;
  }

  open(needed: Quantities, capacity: Quantities): void {
    this.candidates.sort(firstToGo);
    this.rescore(needed, capacity);
  }

  rescore(needed: Quantities, capacity: Quantities): void {
    this.score = 0;
    for (const resource of needed.keys()) this.score = Math.max(this.score, this.#excess(resource) / of(capacity, resource));
  }

  /** Takes the next pod that may go and helps somebody. */
  next(needed: Quantities, allowed: ReadonlyMap<string, number>): Chosen | null {
    for (; this.#at < this.candidates.length; this.#at++) {
      const pod = this.candidates[this.#at] as RunningPod;
      if (!(pod.budgets ?? []).every((budget) => (allowed.get(budget) ?? 0) > 0) || !this.#keepsReserved(pod)) continue;
      const resource = this.#helpsWith(pod, needed);
      if (resource === null) continue;
      this.#at++;
      for (const [resource, amount] of pod.uses) this.#remaining.set(resource, of(this.#remaining, resource) - amount);
      return { pod, eviction: { pod: pod.id, consumer: this.name, resource, beneficiaries: this.#waitingFor(resource) } };
    }
    return null;
  }

  #excess(resource: string): number {
    return of(this.#remaining, resource) - of(this.#standing.deserved, resource);
  }

  #keepsReserved({ uses }: RunningPod): boolean {
    for (const [resource, amount] of uses) if (amount > 0 && of(this.#remaining, resource) - amount < of(this.#standing.reserved, resource)) return false;
    return true;
  }

  /** Of what its going would bring the largest part of what is missing, if its consumer has too much of that; null for nothing. */
  #helpsWith({ uses }: RunningPod, needed: Quantities): string | null {
    let [found, largest]: [string | null, number] = [null, 0];
    for (const [resource, amount] of uses) {
      const part = amount / of(needed, resource);
      if (part > largest && part < Infinity && this.#excess(resource) > 0 && this.#waitingFor(resource).length > 0) [found, largest] = [resource, part];
    }
    return found;
  }

  #waitingFor(resource: string): readonly string[] {
    let names = this.#beneficiaries.get(resource);
    if (names === undefined) {
      names = (this.#waiting.get(resource) ?? []).filter((name) => name !== this.name && this.#mayReclaim(this.name, name));
      this.#beneficiaries.set(resource, names);
    }
    return names;
  }
}

/** The one with the highest score above zero; the first by name among equals. */
function mostOverused(sides: ReadonlySet<Side>): Side | null {
  let found: Side | null = null;
  for (const side of sides) {
    if (side.score > 0 && (found === null || side.score > found.score || (side.score === found.score && side.name < found.name))) found = side;
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
function withoutNeedless(chosen: readonly Chosen[], wants: Quantities): readonly Eviction[] {
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

