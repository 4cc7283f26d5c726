import { counted, counter, histogram, readAt, type Metric, type MetricsPart } from '../../http/metrics.js';
import type { Allocation, Quantities } from '../../quota/arbitrator/index.js';
import { unitOfKey } from '../../quota/core/key.js';
import type { EvictionResult } from './evictor.js';

type Allocations = readonly Allocation[];

const amounts = (
  what: 'deserved' | 'allocated',
  help: string,
  of: (allocation: Allocation) => Quantities,
): Metric<Allocations> => ({
  name: `quota_arbitrator_${what}`,
  type: 'gauge',
  help,
  labels: ['consumer', 'resource'],
  *read(allocations) {
    for (const allocation of allocations) {
      for (const [resource, amount] of of(allocation))
        if (amount > 0)
          yield { labels: { consumer: allocation.name, resource }, value: amount / 10 ** unitOfKey(resource).decimals };
    }
  },
});

const AMOUNTS: readonly Metric<Allocations>[] = [
  amounts('deserved', 'What a namespace deserves of the cluster: cores, bytes, cards', ({ deserved }) => deserved),
  amounts(
    'allocated',
    'What the pods of a namespace that have a node ask for: cores, bytes, cards',
    ({ used }) => used,
  ),
];

const OVERUSED = {
  name: 'quota_arbitrator_overused_seconds_total',
  type: 'counter',
  help: 'For how long a namespace had more than it deserves of something',
  labels: ['consumer'],
} as const;

const EVICTIONS = {
  name: 'quota_arbitrator_evictions_total',
  type: 'counter',
  help: 'Pods that were to be evicted, by what came of it: evicted, refused by a disruption budget, failed',
  labels: ['result'],
} as const;

const CYCLES = {
  name: 'quota_arbitrator_cycle_seconds',
  type: 'histogram',
  help: 'Time to look at the cluster, decide, evict and write',
  labels: [],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
} as const;

/** The metrics of the arbitrator. */
export class ArbitratorMetrics {
  readonly #overused = counter(OVERUSED);
  readonly #evictions = counter(EVICTIONS);
  readonly #cycles = histogram(CYCLES);
  #allocations: Allocations = [];

  /** For the page of the quota service. */
  readonly parts: readonly MetricsPart[] = [
    readAt(AMOUNTS, () => this.#allocations),
    counted([this.#overused, this.#evictions, this.#cycles]),
  ];

  /** Of the cycle that just ended; empty when another replica goes on. */
  stand(allocations: Allocations): void {
    this.#allocations = allocations;
  }

  evicted(result: EvictionResult): void {
    this.#evictions.inc({ result });
  }

  cycle(seconds: number): void {
    this.#cycles.observe(seconds);
  }

  /** Time passed while every namespace stood as in the last cycle. */
  passed(seconds: number): void {
    for (const { name, overused } of this.#allocations)
      if (overused.length > 0) this.#overused.inc({ consumer: name }, seconds);
  }
}
