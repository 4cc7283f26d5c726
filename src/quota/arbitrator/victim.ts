import { of, type Quantities } from '../../manifests/quantities.js';
import { byEvictionOrder, type RunningPod } from './running-pod.js';
import type { ConsumerUsage } from './consumer-usage.js';

/** The planned eviction of one pod. */
export interface Eviction {
  readonly pod: string;
  readonly consumer: string;
  /** The missing resource for which the pod is evicted; its consumer overuses it. */
  readonly resource: string;
  /** Consumers that wait for this resource. */
  readonly beneficiaries: readonly string[];
}

export interface ChosenVictim {
  readonly pod: RunningPod;
  readonly eviction: Eviction;
}

/**
 * A consumer that may lose pods. A pod that was rejected once stays rejected, because budgets, needs and usage only
 * decrease.
 */
export class VictimSource {
  readonly name: string;
  readonly candidates: RunningPod[] = [];
  /** Largest excess over the fair share of any missing resource, as a fraction of the cluster. */
  score = 0;
  readonly #usage: ConsumerUsage;
  readonly #remaining: Map<string, number>;
  readonly #waiting: ReadonlyMap<string, readonly string[]>;
  readonly #mayReclaim: (from: string, to: string) => boolean;
  /** Consumers that benefit from this consumer's evictions, by resource. */
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
    this.candidates.sort(byEvictionOrder);
    this.rescore(needed, capacity);
  }

  rescore(needed: Quantities, capacity: Quantities): void {
    this.score = 0;
    for (const resource of needed.keys())
      this.score = Math.max(this.score, this.#excess(resource) / of(capacity, resource));
  }

  /** Takes the next pod that may be evicted and whose eviction helps another consumer. */
  next(needed: Quantities, allowed: ReadonlyMap<string, number>): ChosenVictim | null {
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
   * The overused resource for which the pod's eviction frees the largest fraction of the missing amount; null for none.
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
