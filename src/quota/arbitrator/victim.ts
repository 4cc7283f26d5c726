import { of, type Quantities } from './quantities.js';
import { firstToGo, type RunningPod } from './running-pod.js';
import type { ConsumerUsage } from './consumer-usage.js';

/** One pod that has to go. */
export interface Eviction {
  readonly pod: string;
  readonly consumer: string;
  /** What it goes for: something that is missing, that it holds and of which its consumer has too much. */
  readonly resource: string;
  /** Who waits for that. */
  readonly beneficiaries: readonly string[];
}

/** A pod that was chosen. */
export interface Chosen {
  readonly pod: RunningPod;
  readonly eviction: Eviction;
}

/**
 * A consumer that may lose pods. What it can not lose once it can not lose later: budgets, needs and what it has only
 * fall.
 */
export class VictimSource {
  readonly name: string;
  readonly candidates: RunningPod[] = [];
  /** How far it is above what it deserves of something that is missing, in parts of the cluster. */
  score = 0;
  readonly #usage: ConsumerUsage;
  readonly #remaining: Map<string, number>;
  readonly #waiting: ReadonlyMap<string, readonly string[]>;
  readonly #mayReclaim: (from: string, to: string) => boolean;
  /** For whom it may lose something, by resource. */
  readonly #beneficiaries = new Map<string, readonly string[]>();
  #at = 0;

  constructor(
    usage: ConsumerUsage,
    waitingFor: ReadonlyMap<string, readonly string[]>,
    mayReclaim: (from: string, to: string) => boolean,
  ) {
    this.name = usage.name;
    this.#usage = usage;
    this.#remaining = new Map(usage.used);
    this.#waiting = waitingFor;
    this.#mayReclaim = mayReclaim;
  }

  open(needed: Quantities, capacity: Quantities): void {
    this.candidates.sort(firstToGo);
    this.rescore(needed, capacity);
  }

  rescore(needed: Quantities, capacity: Quantities): void {
    this.score = 0;
    for (const resource of needed.keys())
      this.score = Math.max(this.score, this.#excess(resource) / of(capacity, resource));
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
      return {
        pod,
        eviction: { pod: pod.id, consumer: this.name, resource, beneficiaries: this.#waitingFor(resource) },
      };
    }
    return null;
  }

  #excess(resource: string): number {
    return of(this.#remaining, resource) - of(this.#usage.deserved, resource);
  }

  #keepsReserved({ uses }: RunningPod): boolean {
    for (const [resource, amount] of uses)
      if (amount > 0 && of(this.#remaining, resource) - amount < of(this.#usage.reserved, resource)) return false;
    return true;
  }

  /**
   * Of what its going would bring the largest part of what is missing, if its consumer has too much of that; null for
   * nothing.
   */
  #helpsWith({ uses }: RunningPod, needed: Quantities): string | null {
    let [found, largest]: [string | null, number] = [null, 0];
    for (const [resource, amount] of uses) {
      const part = amount / of(needed, resource);
      if (part > largest && part < Infinity && this.#excess(resource) > 0 && this.#waitingFor(resource).length > 0)
        [found, largest] = [resource, part];
    }
    return found;
  }

  #waitingFor(resource: string): readonly string[] {
    let names = this.#beneficiaries.get(resource);
    if (names === undefined) {
      names = (this.#waiting.get(resource) ?? []).filter(
        (name) => name !== this.name && this.#mayReclaim(this.name, name),
      );
      this.#beneficiaries.set(resource, names);
    }
    return names;
  }
}
