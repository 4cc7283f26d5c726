import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Allocation, Quantities } from '../../quota/arbitrator/index.js';
import { unitOfKey } from '../../quota/core/key.js';
import type { EvictionResult } from './evictor.js';

/** What the arbitrator tells Prometheus. */
export class ArbitratorMetrics {
  readonly #overused: Counter;
  readonly #evictions: Counter;
  readonly #cycles: Histogram;
  #allocations: readonly Allocation[] = [];

  constructor(registry: Registry) {
    const registers = [registry];
    const amounts = (
      what: 'deserved' | 'allocated',
      help: string,
      of: (allocation: Allocation) => Quantities,
    ): Gauge => {
      const gauge: Gauge = new Gauge({
        name: `quota_arbitrator_${what}`,
        help,
        labelNames: ['consumer', 'resource'],
        registers,
        // Of the last cycle, and only when somebody asks: a thousand namespaces have ten resources each.
        collect: () => {
          gauge.reset();
          for (const allocation of this.#allocations) {
            for (const [resource, amount] of of(allocation))
              if (amount > 0)
                gauge.set({ consumer: allocation.name, resource }, amount / 10 ** unitOfKey(resource).decimals);
          }
        },
      });
      return gauge;
    };
    amounts('deserved', 'What a namespace deserves of the cluster: cores, bytes, cards', ({ deserved }) => deserved);
    amounts(
      'allocated',
      'What the pods of a namespace that have a node ask for: cores, bytes, cards',
      ({ used }) => used,
    );
    this.#overused = new Counter({
      name: 'quota_arbitrator_overused_seconds_total',
      help: 'For how long a namespace had more than it deserves of something',
      labelNames: ['consumer'],
      registers,
    });
    this.#evictions = new Counter({
      name: 'quota_arbitrator_evictions_total',
      help: 'Pods that were to be evicted, by what came of it: evicted, refused by a disruption budget, failed',
      labelNames: ['result'],
      registers,
    });
    this.#cycles = new Histogram({
      name: 'quota_arbitrator_cycle_seconds',
      help: 'Time to look at the cluster, decide, evict and write',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    });
  }

  /** Of the cycle that just ended; empty when another replica goes on. */
  stand(allocations: readonly Allocation[]): void {
    this.#allocations = allocations;
  }

  evicted(result: EvictionResult): void {
    this.#evictions.inc({ result });
  }

  cycle(seconds: number): void {
    this.#cycles.observe(seconds);
  }

  /** Time went by, and everybody stood as in the last cycle. */
  passed(seconds: number): void {
    for (const { name, overused } of this.#allocations)
      if (overused.length > 0) this.#overused.inc({ consumer: name }, seconds);
  }
}
